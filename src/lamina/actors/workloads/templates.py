"""
Pod templates: when two are the same, and a short mark to tell others by.

The label that carries the mark is no part of what is marked.
"""

from __future__ import annotations

from typing import Any

from lamina.objects.digest import short
from lamina.objects.types import Made, Obj

HASH_LABEL = "pod-template-hash"


def mark(template: Obj, collisions: int | None = None) -> str:
    """
    Return the mark of a template.

    Equal templates have equal marks. `collisions` counts how often the mark
    turned out to be taken by another template, and makes it another.
    """
    plain = without_mark(template)
    return short([plain, collisions] if collisions is not None else [plain])


def is_same(one: Obj, other: Obj) -> bool:
    """Say whether two templates ask for the same pods."""
    return without_mark(one) == without_mark(other)


def without_mark(template: Obj) -> Made:
    """Return a template without the mark it may carry, in the one form that equal templates share."""
    head: Made = dict(template.get("metadata") or {})
    head["labels"] = {key: value for key, value in (head.get("labels") or {}).items() if key != HASH_LABEL}
    shown: Made = {"spec": _plain(template.get("spec") or {})}
    kept = {field: value for field, value in head.items() if value}
    if kept:
        shown["metadata"] = kept
    return shown


def _plain(value: Any) -> Any:
    """Drop what says nothing: a field that is null, and a list without entries."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None and inner != []}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
