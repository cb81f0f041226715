"""Tools from Python packages, each in an environment of its own."""

import subprocess
import sys
import venv
from pathlib import Path


def installed(folder: Path, package: str) -> bool:
    """Install a package into a new environment in a folder; return whether that succeeded."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, package], cwd=folder, stdout=sys.stderr, check=False)
    return done.returncode == 0
