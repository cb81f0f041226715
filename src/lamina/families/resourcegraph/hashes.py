"""
Hashes of definitions and of inputs, and names that are shortened by a hash.

Equal content has the same hash, however it is written: defaults may be stated or left
out, keys and resources may have any order, and an empty list equals a missing one.
"""

from __future__ import annotations

from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj

_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_LENGTH = 32
_MOST_NAME, _MOST_LABEL = 253, 63


def content_hash(content: Obj) -> str:
    """Return the hash of the content of a definition."""
    schema = {"group": "kro.run", "scope": "Namespaced", **_stated(content.get("schema") or {})}
    if metadata := _stated(schema.pop("metadata", None) or {}):
        schema["metadata"] = metadata
    resources = sorted((_resource(one) for one in content.get("resources") or ()), key=_id)
    return digest({"schema": schema, "resources": resources})[:_LENGTH]


def _id(resource: Obj) -> str:
    return str(resource.get("id") or "")


def _resource(resource: Obj) -> Made:
    made = _stated(resource)
    for conditions in ("readyWhen", "includeWhen"):
        if conditions in made:
            made[conditions] = sorted(made[conditions], key=str)
    return made


def _stated(value: Obj) -> Made:
    """Return an object without the fields that are null, empty lists or empty maps."""
    return {key: one for key, one in value.items() if one not in (None, [], {})}


def input_hash(projected_spec: Obj, revision: int) -> str:
    """Return the hash of an instance's spec, as the schema of a revision reads it, and of that revision."""
    return digest({"spec": projected_spec, "rgdRevision": revision})[:_LENGTH]


def fnv32a(text: str) -> str:
    """Return the 32-bit FNV-1a hash of a text, in hexadecimal."""
    found = _FNV_OFFSET
    for byte in text.encode():
        found = (found ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return f"{found:08x}"


def label_value(name: str) -> str:
    """Return a name as the value of a label, which has at most 63 characters."""
    return name if len(name) <= _MOST_LABEL else f"{name[:54]}-{fnv32a(name)}"


def revision_name(owner: str, infix: str, number: int) -> str:
    """Return `<owner>-<infix>-<number>`; an owner whose name is too long is cut, and followed by its hash."""
    suffix = f"-{infix}-{number}"
    if len(owner) + len(suffix) <= _MOST_NAME:
        return owner + suffix
    tail = f"-{fnv32a(owner)}{suffix}"
    return owner[: _MOST_NAME - len(tail)].rstrip(".-") + tail
