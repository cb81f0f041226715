"""
Pod templates: their equality and their hash.

The hash label itself is not part of the hashed template.
"""

from __future__ import annotations

from typing import Any

from lamina.objects.digest import short
from lamina.objects.types import Made, Obj

HASH_LABEL = "pod-template-hash"


def compute_hash(template: Obj, collisions: int | None = None) -> str:
    """
    Return the hash of a template.

    Equal templates have equal hashes. `collisions` is the collision count of
    the owner, and changes the hash.
    """
    plain = without_hash(template)
    return short([plain, collisions] if collisions is not None else [plain])


def is_same(one: Obj, other: Obj) -> bool:
    """Say whether two templates describe the same pods."""
    return without_hash(one) == without_hash(other)


def without_hash(template: Obj) -> Made:
    """Return a template without its hash label, in a canonical form."""
    head: Made = dict(template.get("metadata") or {})
    head["labels"] = {key: value for key, value in (head.get("labels") or {}).items() if key != HASH_LABEL}
    shown: Made = {"spec": _plain(template.get("spec") or {})}
    kept = {field: value for field, value in head.items() if value}
    if kept:
        shown["metadata"] = kept
    return shown


def _plain(value: Any) -> Any:
    """Drop null fields and empty lists."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None and inner != []}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
