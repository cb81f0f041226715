"""
Desired against observed children: create, update, replace, delete.

The caller compares them, by a three-way merge or a dry run; the action follows from
the result and the update method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from lamina.objects import meta
from lamina.objects.types import Obj

Key = TypeVar("Key")


class Method(StrEnum):
    """What is done about a child that differs from what is desired."""

    ON_DELETE = "OnDelete"
    RECREATE = "Recreate"
    IN_PLACE = "InPlace"


class ChildAction(StrEnum):
    """What is done about one child."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    """It is deleted now, and created again once it is gone."""
    DELETE = "delete"
    KEEP = "keep"
    LEAVE = "leave"
    """It differs, and is left as it is until it is deleted."""
    WAIT = "wait"
    """It is being deleted, and nothing is done before it is gone."""


class Child(Struct, Generic[Key], frozen=True, kw_only=True):
    """One child as it is desired and as it was observed; `differs` says whether it has to be updated."""

    key: Key
    desired: Obj | None
    observed: Obj | None
    differs: bool = False
    method: Method = Method.ON_DELETE


def decide(child: Child[Key]) -> ChildAction:
    """Return what is done about one child."""
    if child.observed is None:
        return ChildAction.CREATE if child.desired is not None else ChildAction.KEEP
    if meta.is_deleting(child.observed):
        return ChildAction.WAIT
    if child.desired is None:
        return ChildAction.DELETE
    if not child.differs:
        return ChildAction.KEEP
    match child.method:
        case Method.IN_PLACE:
            return ChildAction.UPDATE
        case Method.RECREATE:
            return ChildAction.REPLACE
        case Method.ON_DELETE:
            return ChildAction.LEAVE


def sort_out(children: Sequence[Child[Key]]) -> Mapping[ChildAction, tuple[Child[Key], ...]]:
    """Return the children by what is done about them, in the order given."""
    sorted_out: dict[ChildAction, list[Child[Key]]] = {}
    for child in children:
        sorted_out.setdefault(decide(child), []).append(child)
    return {action: tuple(those) for action, those in sorted_out.items()}
