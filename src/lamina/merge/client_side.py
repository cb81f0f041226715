"""
kubectl's client-side apply: a three-way merge of the last applied, the live and the new object.

Fields of the new manifest are merged into the live object, lists by the schema.
Fields of the last applied one that the new one lacks are removed, whichever
manager owns them; all other fields stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.merge.go_format import html_escaped
from lamina.merge.last_applied import ANNOTATION
from lamina.merge.patches import strategic_merge
from lamina.merge.schema import Schema
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj

_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""Metadata that the server sets, and that a manifest cannot."""


def annotated(applied: Obj) -> Made:
    """Return a manifest with its last-applied-configuration annotation."""
    metadata = {name: value for name, value in applied["metadata"].items() if name not in _SERVERS}
    own = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != ANNOTATION}
    kept = {**applied, "metadata": {**metadata, "annotations": own}}
    text = html_escaped(json.dumps(kept, ensure_ascii=False, sort_keys=True, separators=(",", ":"))) + "\n"
    return {**applied, "metadata": {**metadata, "annotations": {**own, ANNOTATION: text}}}


def client_side(live: Obj, applied: Obj, schema: Schema) -> Made:
    """Return a live object after kubectl applied a manifest to it."""
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    last = _read(text) if text else {}
    return strategic_merge(live, _map_patch(live, last, annotated(applied), schema), schema)


def _read(text: str) -> Obj:
    try:
        last = json.loads(text)
    except ValueError:
        return {}
    return last if isinstance(last, dict) else {}


def _map_patch(live: Any, last: Any, applied: Obj, schema: Schema | None, *, retains: bool = False) -> Made:
    """Return the patch that makes a map of a live object what the manifest says."""
    live, last = _map(live), _map(last)
    patch: Made = {name: None for name in last if name not in applied}
    for name, value in applied.items():
        below = schema.child(name) if schema is not None else None
        if isinstance(value, dict) and below is not None and "replace" in below.patch_strategies:
            patch[name] = value
        elif isinstance(value, dict):
            retained = below is not None and "retainKeys" in below.patch_strategies
            patch[name] = _map_patch(live.get(name), last.get(name), value, below, retains=retained)
        elif isinstance(value, list) and below is not None and "merge" in below.patch_strategies:
            patch |= _list_patch(name, _list(live.get(name)), _list(last.get(name)), value, below)
        else:
            patch[name] = value
    if retains and live and any(not is_same(live.get(name), value) for name, value in applied.items()):
        # A union: when the manifest chooses another member, the defaults of the first are removed.
        patch["$retainKeys"] = [name for name, value in applied.items() if value is not None]
        patch = {name: value for name, value in patch.items() if value is not None}
    return patch


def _list_patch(
    name: str, live: Sequence[Any], last: Sequence[Any], applied: Sequence[Any], schema: Schema
) -> Made:
    """Return the patch that makes a merged list what the manifest says."""
    key = schema.patch_key
    if not all(isinstance(one, dict) and key in one for one in (*live, *last, *applied)):
        gone = [one for one in last if one not in applied]
        return {name: list(applied), **({f"$deleteFromPrimitiveList/{name}": gone} if gone else {})}
    was, said = _by_key(live, key), _by_key(last, key)
    retains, items = "retainKeys" in schema.patch_strategies, schema.items
    patches = []
    for one in applied:
        there, then = _taken(was, one[key]), _taken(said, one[key])
        patch = _map_patch(there, then, one, items, retains=retains)
        # A patch changes the first of several elements with one key; those that are equal already need none.
        if there is None or items is None or not is_same(strategic_merge(there, patch, items), there):
            patches.append(patch)
    kept = {one[key] for one in applied}
    gone = [{"$patch": "delete", key: one} for one in said if one not in kept]
    return {name: [*patches, *gone]} if patches or gone or not live else {}


def _by_key(elements: Sequence[Any], key: str) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for one in elements:
        found.setdefault(one[key], []).append(one)
    return found


def _taken(found: Mapping[Any, list[Any]], value: Any) -> Any:
    """Remove and return the first element left with a key, if there is one."""
    left = found.get(value)
    return left.pop(0) if left else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
