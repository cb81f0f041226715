"""
Generates the tables of built-in types: `python -m tools.tables`, or `make tables`.

All files below `src/lamina/server/kinds/builtin/data` are generated, from packages
that are downloaded to a temporary folder. The output is reproducible.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lamina.server.kinds.builtin.catalogue import CATALOGUE, PACKAGES
from tools import sources
from tools.definitions import definitions
from tools.golang import documentation
from tools.protos import messages

DATA: Final = Path(__file__).parents[1] / "src/lamina/server/kinds/builtin/data"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"

PUBLISHED: Final = (
    *(f"{META}.{kind}" for kind in ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions")),
    *(f"{META}.{kind}" for kind in ("Condition", "DeleteOptions", "Patch", "Status", "WatchEvent")),
    "io.k8s.apimachinery.pkg.version.Info",
)
"""Definitions that belong to no resource of the catalogue."""

OPTIONS: Final = tuple(
    f"{verb}Options" for verb in ("Apply", "Create", "Delete", "Get", "List", "Patch", "Update")
)
"""Bodies and query parameters of every group version."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="lamina-tables-") as scratch:
        try:
            found = sources.fetch(Path(scratch))
        except sources.SourceMissing as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 1
        written = write(found, DATA)
    print(f"{len(written)} files, {sum(path.stat().st_size for path in written)} bytes in {DATA}")
    return 0


def write(found: sources.Sources, folder: Path) -> list[Path]:
    """Write every table, remove stale files, and return the files."""
    by_package: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, definition in definitions(found, (*_kinds(), *_lists(), *PUBLISHED)).items():
        by_package[name.rpartition(".")[0]][name] = definition
    tables: dict[str, Any] = {
        **by_package,
        "messages": _messages(found),
        "parameters": _parameters(found),
    }
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.json.z" for name in tables]
    for path, table in zip(files, tables.values(), strict=True):
        path.write_bytes(zlib.compress(_text(table), 9))
    provenance = folder / "PROVENANCE.txt"
    provenance.write_text(_provenance(found))
    for stale in set(folder.glob("*.z")) - set(files):
        stale.unlink()
    return [*files, provenance]


def _kinds() -> Iterator[str]:
    """Yield the definitions of every kind that a request may carry."""
    for resource in CATALOGUE:
        yield resource.definition
        for sub in resource.subresources:
            yield f"{PACKAGES[sub.group, sub.version]}.{sub.kind}"


def _lists() -> Iterator[str]:
    for resource in CATALOGUE:
        if resource.stored:
            yield f"{resource.definition}List"


def _messages(found: sources.Sources) -> dict[str, Any]:
    kinds: dict[str, dict[str, str]] = defaultdict(dict)
    versions = {package: "/".join(filter(None, key)) for key, package in PACKAGES.items()}
    for name in _kinds():
        package, _, kind = name.rpartition(".")
        kinds[versions[package]][kind] = name
    options = {kind: f"{META}.{kind}" for kind in OPTIONS}
    return {
        "kinds": kinds,
        "options": options,
        "messages": messages(found, (*_kinds(), *options.values())),
    }


def _parameters(found: sources.Sources) -> dict[str, dict[str, str]]:
    """Return the descriptions of query parameters, which are in no definition."""
    meta = documentation(found.folder(META))
    core = documentation(found.folder("io.k8s.api.core.v1"))
    return {**{name: meta[name] for name in OPTIONS}, "PodLogOptions": core["PodLogOptions"]}


def _text(table: Any) -> bytes:
    return json.dumps(table, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _provenance(found: sources.Sources) -> str:
    modules = "\n".join(
        f"  k8s.io/{module} {sources.MODULES_VERSION} {found.sums[module]}" for module in sources.MODULES
    )
    schemas = f"{sources.SCHEMAS} {sources.SCHEMAS_VERSION} (a Python package), {sources.SCHEMAS_EDITION}"
    return f"""\
The tables in this folder are facts about the Kubernetes API, taken from

  {schemas}: OpenAPI definitions
{modules}
  (Go modules): field numbers, JSON names, defaults, and the sentences about query parameters

all of them under the Apache License, Version 2.0; the descriptions in the definitions are
Copyright The Kubernetes Authors. Trimmed to the kinds that lamina serves and what those refer to.

`make tables` makes them again. Do not edit them.
"""


if __name__ == "__main__":
    sys.exit(main())
