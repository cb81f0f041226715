"""
Objects as flat dicts: the path of a leaf to its value.

`{("data", "k"): "v"}` is a ConfigMap with one key. An element of a set, such as a
finalizer, is a leaf whose value is True. Fields that the server sets are no leaves.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Path = tuple[str, ...]
Leaves = dict[Path, Any]

LABELS: Path = ("metadata", "labels")
FINALIZERS: Path = ("metadata", "finalizers")


class Owner(NamedTuple):
    """The owner of a leaf: a manager, by apply or update, perhaps through a subresource."""

    manager: str
    operation: str
    subresource: str = ""


def to_body(leaves: Mapping[Path, Any], *, nulls: bool = False) -> dict[str, Any]:
    """Return the nested object; None values are omitted unless `nulls` is true."""
    body: dict[str, Any] = {}
    for path, value in sorted(leaves.items()):
        if path[:2] == FINALIZERS:
            if value:
                body.setdefault("metadata", {}).setdefault("finalizers", []).append(path[2])
            continue
        if value is None and not nulls:
            continue
        below = body
        for step in path[:-1]:
            below = below.setdefault(step, {})
        below[path[-1]] = value
    return body


def from_object(obj: Mapping[str, Any]) -> Leaves:
    """Return the leaves of an object from the server."""
    leaves: Leaves = {(*LABELS, key): value for key, value in (obj["metadata"].get("labels") or {}).items()}
    for one in obj["metadata"].get("finalizers") or ():
        leaves[*FINALIZERS, one] = True
    for part in ("data", "spec", "status"):
        for key, value in (obj.get(part) or {}).items():
            leaves[part, key] = value
    return leaves


def owners_of(obj: Mapping[str, Any]) -> dict[Path, frozenset[Owner]]:
    """Return the owners of each leaf in managedFields."""
    owners: dict[Path, frozenset[Owner]] = {}
    for entry in obj["metadata"].get("managedFields") or ():
        owner = Owner(entry["manager"], entry["operation"], entry.get("subresource", ""))
        for path in _paths(entry["fieldsV1"]):
            if path[0] in ("data", "spec", "status") or path[:2] in (LABELS, FINALIZERS):
                owners[path] = owners.get(path, frozenset()) | {owner}
    return owners


def _paths(fields: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    for key, below in fields.items():
        if key == ".":
            continue
        kind, _, name = key.partition(":")
        path = (*above, json.loads(name) if kind == "v" else name)
        if below:
            yield from _paths(below, path)
        elif len(path) > 1 and path not in (LABELS, FINALIZERS):
            yield path
