"""
The cases of the CEL specification's own suite, fetched once and cached as JSON.

They are a JavaScript module in an npm package. npm fetches it and Node reads it; without
Node, a Python package provides both.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bed import node
from tests.bed.cache import remembered
from tests.bed.trouble import BedError

PACKAGE = "@bufbuild/cel-spec"
VERSION = "0.6.1"
_READ = """
import { writeFileSync } from "node:fs";
import { tests } from "./node_modules/@bufbuild/cel-spec/dist/esm/testdata/conformance.js";
writeFileSync("cases.json", JSON.stringify(tests));
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One test: its file, section and name, and its JSON."""

    file: str
    section: str
    name: str
    test: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.file}/{self.section}/{self.name}"


def cases() -> Iterator[Case]:
    """Yield every case of the suite."""
    folder = remembered("cel-spec", VERSION, _fetch)
    suite = json.loads((folder / "cases.json").read_text())
    for file in suite["suites"]:
        for section in file.get("suites", ()):
            for test in section.get("tests", ()):
                original = test["original"]
                yield Case(file["name"], section["name"], original.get("name") or original["expr"], original)


def _fetch(folder: Path) -> None:
    environment = os.environ | {
        "PATH": node.search_path(),
        "npm_config_update_notifier": "false",
        "npm_config_fund": "false",
    }
    (folder / "package.json").write_text('{"private": true}')
    _run(
        [node.command("npm"), "install", "--silent", "--no-audit", f"{PACKAGE}@{VERSION}"],
        folder,
        environment,
    )
    (folder / "read.mjs").write_text(_READ)
    _run([node.command("node"), "read.mjs"], folder, environment)
    shutil.rmtree(folder / "node_modules")


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise BedError(
            f"the conformance suite {PACKAGE} {VERSION} cannot be had: {command[0]} says why above"
        )
