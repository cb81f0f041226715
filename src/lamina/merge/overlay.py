"""
What an object becomes when somebody states part of it.

Stated scalars, atomic maps and atomic lists take the place of what was there.
Other maps are merged key by key. Sets and lists of keyed elements are merged
element by element, and nothing leaves them.

The order of a merged list: elements that were stated stand in the order they
were stated in, the others in the order they had; an element that both sides
have draws those that stood before it in the old list along with it.

What does not change is shared with the old object, so a value that is the same
one as before is one that nothing was changed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.merge.node import ATOMIC, Node, UntypableError
from lamina.merge.schema import MISSING
from lamina.objects.diff import is_same


def overlay(live: Mapping[str, Any], stated: Mapping[str, Any], node: Node) -> Mapping[str, Any]:
    """Return the live object with what was stated laid over it; the live object itself where that changes nothing."""
    made: dict[str, Any] | None = None
    for name, new in stated.items():
        old = live.get(name, MISSING)
        if old is new:
            continue
        kind = new.__class__
        if old is MISSING:
            value = new
        elif kind is dict or kind is list or new is None:
            below = node.child(name)
            value = _overlay_value(old, new, below) if below else new
            if value is old:
                continue
        elif old == new and (old.__class__ is kind or is_same(old, new)):
            continue
        else:
            value = new
        if made is None:
            made = dict(live)
        made[name] = value
    return live if made is None else made


def _overlay_value(old: Any, new: Any, node: Node) -> Any:
    """Lay a map, a list or a null over what was there."""
    kind, before = new.__class__, old.__class__
    if kind is dict and before is dict and not node.whole:
        return overlay(old, new, node)
    if kind is list and before is list and node.listing != ATOMIC:
        return _overlay_list(old, new, node) if new else old
    if (
        new is None
        and old
        and ((before is dict and not node.whole) or (before is list and node.listing != ATOMIC))
    ):
        # Nothing is stated about what is inside.
        return old
    return old if is_same(old, new) else new


def _overlay_list(old: list[Any], new: list[Any], node: Node) -> list[Any]:
    theirs = [node.element(item) for item in old]
    ours = [node.element(item) for item in new]
    before = dict(zip(theirs, old, strict=True))
    if len(before) < len(theirs):
        # Elements that cannot be told apart do not take part in a merge; the stated one takes their place.
        for element in theirs:
            if theirs.count(element) > 1:
                before[element] = MISSING
    stated = dict(zip(ours, new, strict=True))
    if len(stated) < len(ours):
        raise UntypableError("a stated list has the same element twice")
    if theirs == ours:
        merged = [_overlay_item(one, two, node.items) for one, two in zip(old, new, strict=True)]
    else:
        merged = [
            old[place] if place is not None else _overlay_item(before.get(element, MISSING), stated[element], node.items)
            for element, place in _interleaved(theirs, ours)
        ]  # fmt: skip
    unchanged = len(merged) == len(old) and all(one is two for one, two in zip(merged, old, strict=True))
    return old if unchanged else merged


def _overlay_item(old: Any, new: Any, node: Node) -> Any:
    if old is MISSING or new.__class__ is not dict or old.__class__ is not dict:
        return old if old is not MISSING and is_same(old, new) else new
    return _overlay_value(old, new, node)


def _interleaved(theirs: list[str], ours: list[str]) -> list[tuple[str, int | None]]:
    """
    Return the order of a merged list: elements of ours without a place, elements only they have with theirs.

    Both lists are read from the front. What only they have is taken as it
    comes. What both have is taken when it is our turn, and until then holds up
    what stands behind it in their list, unless an earlier one of ours does.
    """
    known, stated, taken = set(theirs), set(ours), set[str]()
    waiting = (element for element in ours if element in known)
    next_shared = next(waiting, None)
    order: list[tuple[str, int | None]] = []
    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs):
            element = theirs[left]
            if element not in stated:
                order.append((element, left))
                left += 1
                continue
            both = right < len(ours)
            if both and element == ours[right]:
                left += 1
            elif both and next_shared is not None and next_shared != element:
                left += 1
                continue
            elif element in taken:
                left += 1
        if right < len(ours):
            element = ours[right]
            order.append((element, None))
            taken.add(element)
            right += 1
            if element == next_shared:
                next_shared = next(waiting, None)
    return order
