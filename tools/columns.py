"""
Generates the descriptions of the table columns of built-in kinds: `python -m tools.columns`.

It starts a kube-apiserver of the test bed's version, gets a table of every kind,
and keeps the descriptions that differ between kinds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from lamina.server.kinds.builtin.catalogue import CATALOGUE, Resource
from lamina.server.kinds.columns import CREATED_DESCRIPTION, NAME_DESCRIPTION
from tests.bed.real import real_server

TARGET: Final = Path(__file__).parents[1] / "src/lamina/server/kinds/builtin/columns/descriptions.json"
_ACCEPT: Final = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}


def main() -> int:
    found: dict[str, dict[str, str]] = {}
    with real_server() as server:
        api = server.api()
        for resource in CATALOGUE:
            if resource.stored and resource.storage[0] == resource.group:
                answer = api.get(_path(resource), headers=_ACCEPT)
                if columns := described(answer.json["columnDefinitions"]):
                    found[f"{resource.group}/{resource.plural}"] = columns
    TARGET.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{sum(map(len, found.values()))} columns described in {TARGET.name}")
    return 0


def described(columns: list[dict[str, Any]]) -> dict[str, str]:
    """Return the descriptions of columns, without those that all kinds share."""
    return {
        column["name"]: column["description"]
        for column in columns
        if column["description"] not in {NAME_DESCRIPTION, CREATED_DESCRIPTION}
    }


def _path(resource: Resource) -> str:
    prefix = f"/apis/{resource.group}" if resource.group else "/api"
    return f"{prefix}/{resource.version}/{resource.plural}"


if __name__ == "__main__":
    sys.exit(main())
