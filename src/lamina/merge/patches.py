"""
JSON patch, merge patch, strategic merge patch.

Each takes an object and a patch and returns a new object. Arguments are never
changed; the result shares unchanged parts with the object, and new values with
the patch. The top level and metadata of a result are never shared, so that the
caller may set fields there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.errors import BadRequest
from lamina.merge import jsonpatch, strategic
from lamina.merge.go_format import json_kind
from lamina.merge.schema import Schema
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj


def json_patch(target: Any, operations: Any) -> Any:
    """
    Return an object with a list of operations done to it, one after the other (RFC 6902).

    Raises BadRequest for a patch that is not such a list, TooLarge for one
    that is too long, and Invalid where an operation does not apply.
    """
    return _with_own_metadata(jsonpatch.json_patch(target, operations))


def merge_patch(target: Any, patch: Any) -> Any:
    """
    Return an object with a merge patch applied (RFC 7386): objects merge, null deletes, all else replaces.

    As in kube-apiserver, objects inside a list of the patch lose their nulls too.
    """
    if not isinstance(patch, dict):
        kind = json_kind(patch)
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _with_own_metadata(_merged(target, patch))


def strategic_merge(target: Obj, patch: Any, schema: Schema) -> Made:
    """
    Return an object with a strategic merge patch applied: lists are merged by the schema.

    Raises BadRequest for a patch that is not well formed and Invalid for one
    that cannot be applied.
    """
    made: Made = _with_own_metadata(strategic.merged(target, patch, schema))
    return made


def create_merge_patch(before: Obj, after: Obj) -> Made:
    """Return the merge patch that changes one object into another; empty where they are equal."""
    patch: Made = {}
    for key, new in after.items():
        if key not in before:
            patch[key] = new
            continue
        old = before[key]
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            below = create_merge_patch(old, new)
            if below:
                patch[key] = below
        elif not is_same(old, new):
            patch[key] = new
    for key in before:
        if key not in after:
            patch[key] = None
    return patch


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return _without_nulls(new)
    made = dict(old)
    for key, value in new.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key), value)
    return made


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(held) for key, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_without_nulls(held) for held in value]
    return value


def _with_own_metadata(result: Any) -> Any:
    if not isinstance(result, dict):
        return result
    made = dict(result)
    if isinstance(made.get("metadata"), dict):
        made["metadata"] = dict(made["metadata"])
    return made
