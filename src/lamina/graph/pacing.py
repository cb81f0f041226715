"""
The items that propagateWhen counts: instances of a definition, or objects of a collection.

An item is the object with its index; two marks, which are no identifiers, say whether it has
the change, and whether it is ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from lamina.objects.types import Made, Obj

_UPDATED: Final = "@updated"
_READY: Final = "@ready"


class Paced(Struct, frozen=True):
    """An object, whether it has the change, and whether it is ready."""

    obj: Obj
    updated: bool = False
    ready: bool = False


def items_of(population: Sequence[Paced]) -> list[Made]:
    """Return the values of the items of a population, in order."""
    return [
        {**one.obj, "index": index, _UPDATED: one.updated, _READY: one.ready}
        for index, one in enumerate(population)
    ]


def is_updated(item: Any) -> bool:
    return isinstance(item, dict) and item.get(_UPDATED) is True


def is_ready(item: Any) -> bool:
    return isinstance(item, dict) and item.get(_READY) is True
