"""
Desired against observed: create, update, replace, delete.

What an object would become is somebody else's business: it may be merged with
what was applied last, or worked out by the server. Here it is only compared
with what is there.
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


class Deed(StrEnum):
    """What is done about one child."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    """Delete it now; it is made anew once it is really gone."""
    DELETE = "delete"
    KEEP = "keep"
    LEAVE = "leave"
    """It differs, and is left as it is until somebody deletes it."""
    WAIT = "wait"
    """It is on its way out, and nothing can be done before it is gone."""


class Child(Struct, Generic[Key], frozen=True, kw_only=True):
    """One child as it should be and as it is; `differs` says whether those are two things."""

    key: Key
    desired: Obj | None
    observed: Obj | None
    differs: bool = False
    method: Method = Method.ON_DELETE


def decide(child: Child[Key]) -> Deed:
    """Return what is done about one child."""
    if child.observed is None:
        return Deed.CREATE if child.desired is not None else Deed.KEEP
    if meta.is_deleting(child.observed):
        return Deed.WAIT
    if child.desired is None:
        return Deed.DELETE
    if not child.differs:
        return Deed.KEEP
    match child.method:
        case Method.IN_PLACE:
            return Deed.UPDATE
        case Method.RECREATE:
            return Deed.REPLACE
        case Method.ON_DELETE:
            return Deed.LEAVE


def sort_out(children: Sequence[Child[Key]]) -> Mapping[Deed, tuple[Child[Key], ...]]:
    """Return the children by what is done about them, in the order given."""
    sorted_out: dict[Deed, list[Child[Key]]] = {}
    for child in children:
        sorted_out.setdefault(decide(child), []).append(child)
    return {deed: tuple(those) for deed, those in sorted_out.items()}
