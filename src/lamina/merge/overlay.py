"""
What an object becomes when somebody states part of it.

Stated scalars, atomic maps and atomic lists take the place of what was there.
Other maps are merged key by key. Sets and lists of keyed elements are merged
element by element, and nothing leaves them.

The order of a merged list: elements that were stated stand in the order they
were stated in, the others in the order they had; an element that both sides
have draws those that stood before it in the old list along with it.

One walk over what was stated answers everything apply asks about it: the object
it makes, the fields it states, and what it changes. They are `overlay`,
`fields_of` and `compare` in one, because an apply that changes nothing should
cost as little as reading what was applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, NamedTuple, TypeAlias

from lamina.merge.check import refuse_problems
from lamina.merge.compare import added, compare_lists, compare_values, elements_of, fields_of
from lamina.merge.fieldset import FieldSet
from lamina.merge.node import ATOMIC, Node, UntypableError
from lamina.merge.schema import MISSING
from lamina.objects.diff import is_same


class Overlay(NamedTuple):
    """
    A live object with part of it stated anew.

    `obj` shares with the live object what does not change, and is the live
    object itself where nothing does. `fields` are the fields that were stated,
    in no order: it is rarely needed, since they are mostly those of last time.
    """

    obj: Mapping[str, Any]
    fields: FieldSet
    changed: FieldSet
    removed: FieldSet


_Change: TypeAlias = tuple[FieldSet | None, FieldSet | None]
_Laid: TypeAlias = tuple[Any, FieldSet | None, FieldSet | None, FieldSet | None]
"""A value, the fields inside it or None for one that is owned whole, what is new or different, and what is gone."""


def overlay(live: Mapping[str, Any], stated: Mapping[str, Any], node: Node) -> Overlay:
    """Lay what was stated over a live object; raises UntypableError for what its schema does not allow."""
    obj, fields, changed, removed = _lay_map(live, stated, node)
    return Overlay(obj, fields or {}, changed or {}, removed or {})


def _lay_map(live: Mapping[str, Any], stated: Mapping[str, Any], node: Node) -> _Laid:
    made: dict[str, Any] | None = None
    fields: FieldSet = {}
    changed: FieldSet | None = None
    removed: FieldSet | None = None
    declared, nodes, values = node.declared, node.fields, node.values
    for name, new in stated.items():
        known = declared
        if declared:
            try:
                below = nodes[name]
            except KeyError:
                known = False
        if not known:
            if values is None:
                raise UntypableError(f"there is no field {name}")
            below = values
        old = live.get(name, MISSING)
        kind = new.__class__
        if kind in below.scalars:
            fields[f"f:{name}"] = {}
            if old.__class__ is kind and old == new:
                continue
            value = new
            came, gone = _change(old, new, name, node, below)
        else:
            value, inside, came, gone = _lay_value(old, new, name, node, below)
            if inside:
                fields[f"f:{name}"] = inside if known else {".": {}, **inside}
            elif inside is None or not known:
                fields[f"f:{name}"] = {}
            if value is old:
                continue
        if came is not None:
            if changed is None:
                changed = {}
            changed[f"f:{name}"] = came
        if gone is not None:
            if removed is None:
                removed = {}
            removed[f"f:{name}"] = gone
        if made is None:
            made = dict(live)
        made[name] = value
    return (live if made is None else made), fields, changed, removed


def _lay_value(old: Any, new: Any, name: str, holder: Node, node: Node) -> _Laid:
    """Lay a map, a list or a null over what was there."""
    kind, before = new.__class__, old.__class__
    inside: FieldSet | None = None
    value = new
    if new is None:
        if old and ((before is dict and not node.whole) or (before is list and node.listing != ATOMIC)):
            # Nothing is stated about what is inside.
            value = old
    elif kind is dict and node.maps:
        if node.whole:
            refuse_problems(new, node)
        elif not new:
            value = old if before is dict else new
        elif before is dict:
            return _lay_map(old, new, node)
        else:
            inside = fields_of(new, node)
    elif kind is list and node.lists:
        if node.listing == ATOMIC:
            refuse_problems(new, node)
        elif before is list:
            return _lay_list(old, new, node)
        else:
            inside = elements_of(new, node)
    else:
        refuse_problems(new, node)
    if old is not MISSING and is_same(old, value):
        return old, inside, None, None
    return value, inside, *_change(old, value, name, holder, node)


def _change(old: Any, new: Any, name: str, holder: Node, node: Node) -> _Change:
    if old is MISSING:
        if new is None and holder.named:
            return None, None
        old = holder.zero(name)
        if old is MISSING:
            return added(new, node), None
    return compare_values(old, new, node)


# Lists


def _lay_list(old: list[Any], new: list[Any], node: Node) -> _Laid:
    ours = {node.element(item): item for item in new}
    if len(ours) < len(new):
        raise UntypableError("a stated list has the same element twice")
    order = list(ours)
    theirs = order if node.are_aligned(old, new) else [node.element(item) for item in old]
    before = dict(zip(theirs, old, strict=True))
    unique = len(before) == len(theirs)
    if not unique:
        # Elements that cannot be told apart are not merged; the stated one takes the place of all.
        before = {element: item for element, item in before.items() if theirs.count(element) == 1}
    fields: FieldSet = {}
    changed: FieldSet = {}
    removed: FieldSet = {}
    laid: dict[str, Any] = {}
    for element, item in ours.items():
        laid[element], inside, came, gone = _lay_item(before.get(element, MISSING), item, node.items)
        fields[element] = {".": {}, **inside} if inside else {}
        if came is not None:
            changed[element] = came
        if gone is not None:
            removed[element] = gone
    if order == theirs:
        merged = list(laid.values())
    else:
        places = _interleaved(theirs, order)
        merged = [laid[element] if place is None else old[place] for element, place in places]
    if len(merged) == len(old) and all(map(is_, merged, old)):
        merged = old
    if not unique:
        return merged, fields, *compare_lists(old, merged, node)
    return merged, fields, changed or None, removed or None


def _lay_item(old: Any, new: Any, node: Node) -> _Laid:
    if new.__class__ is dict and not node.whole:
        if old.__class__ is dict:
            return _lay_map(old, new, node)
        return new, fields_of(new, node), added(new, node), None
    if new.__class__ not in node.scalars:
        refuse_problems(new, node)
    if old is not MISSING and is_same(old, new):
        return old, None, None, None
    return new, None, {}, None


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
