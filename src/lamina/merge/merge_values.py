"""
Merges an applied configuration into a live object.

Applied scalars, atomic maps and atomic lists replace the old value. Other maps
are merged key by key. Sets and associative lists are merged element by element,
and no element is removed.

The order of a merged list: applied elements are in the order of the applied
list, the others in their old order; an element on both sides is preceded by
those that preceded it in the old list.

One walk over the applied configuration computes the merged object, the applied
fields, and the changes: merge, `fields_of` and `compare` in one, so that an
apply that changes nothing costs little.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, NamedTuple, TypeAlias

from lamina.merge.compare import added, compare_lists, compare_values, elements_of, fields_of
from lamina.merge.fieldset import FieldSet
from lamina.merge.schema import MISSING
from lamina.merge.schema_node import ATOMIC, Node, UntypableError
from lamina.merge.typed_check import refuse_problems
from lamina.objects.diff import is_same


class Merged(NamedTuple):
    """
    A live object with a configuration merged into it.

    `obj` shares its unchanged parts with the live object, and is the live
    object itself where nothing changes. `fields` are the applied fields, in
    no order: sorting is rarely needed, since they are mostly those of the
    last apply.
    """

    obj: Mapping[str, Any]
    fields: FieldSet
    changed: FieldSet
    removed: FieldSet


_Change: TypeAlias = tuple[FieldSet | None, FieldSet | None]
_MergedValue: TypeAlias = tuple[Any, FieldSet | None, FieldSet | None, FieldSet | None]
"""A value, the fields inside it or None for an atomic one, what is new or different, and what was removed."""


def merge_values(live: Mapping[str, Any], applied: Mapping[str, Any], node: Node) -> Merged:
    """Merge an applied configuration into a live object; raises UntypableError where it does not fit the schema."""
    obj, fields, changed, removed = _merge_map(live, applied, node)
    return Merged(obj, fields or {}, changed or {}, removed or {})


def _merge_map(live: Mapping[str, Any], applied: Mapping[str, Any], node: Node) -> _MergedValue:
    made: dict[str, Any] | None = None
    fields: FieldSet = {}
    changed: FieldSet | None = None
    removed: FieldSet | None = None
    declared, nodes, values = node.declared, node.fields, node.values
    for name, new in applied.items():
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
            value, inside, came, gone = _merge_value(old, new, name, node, below)
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


def _merge_value(old: Any, new: Any, name: str, holder: Node, node: Node) -> _MergedValue:
    """Merge a map, a list or a null into the old value."""
    kind, before = new.__class__, old.__class__
    inside: FieldSet | None = None
    value = new
    if new is None:
        if old and ((before is dict and not node.atomic) or (before is list and node.listing != ATOMIC)):
            # A null does not apply to the content.
            value = old
    elif kind is dict and node.maps:
        if node.atomic:
            refuse_problems(new, node)
        elif not new:
            value = old if before is dict else new
        elif before is dict:
            return _merge_map(old, new, node)
        else:
            inside = fields_of(new, node)
    elif kind is list and node.lists:
        if node.listing == ATOMIC:
            refuse_problems(new, node)
        elif before is list:
            return _merge_list(old, new, node)
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


def _merge_list(old: list[Any], new: list[Any], node: Node) -> _MergedValue:
    ours = {node.element(item): item for item in new}
    if len(ours) < len(new):
        raise UntypableError("an applied list has the same element twice")
    order = list(ours)
    theirs = order if node.are_aligned(old, new) else [node.element(item) for item in old]
    before = dict(zip(theirs, old, strict=True))
    unique = len(before) == len(theirs)
    if not unique:
        # Elements with equal keys are not merged; the applied one replaces them all.
        before = {element: item for element, item in before.items() if theirs.count(element) == 1}
    fields: FieldSet = {}
    changed: FieldSet = {}
    removed: FieldSet = {}
    merged_items: dict[str, Any] = {}
    for element, item in ours.items():
        merged_items[element], inside, came, gone = _merge_item(
            before.get(element, MISSING), item, node.items
        )
        fields[element] = {".": {}, **inside} if inside else {}
        if came is not None:
            changed[element] = came
        if gone is not None:
            removed[element] = gone
    if order == theirs:
        merged = list(merged_items.values())
    else:
        places = _interleaved(theirs, order)
        merged = [merged_items[element] if place is None else old[place] for element, place in places]
    if len(merged) == len(old) and all(map(is_, merged, old)):
        merged = old
    if not unique:
        return merged, fields, *compare_lists(old, merged, node)
    return merged, fields, changed or None, removed or None


def _merge_item(old: Any, new: Any, node: Node) -> _MergedValue:
    if new.__class__ is dict and not node.atomic:
        if old.__class__ is dict:
            return _merge_map(old, new, node)
        return new, fields_of(new, node), added(new, node), None
    if new.__class__ not in node.scalars:
        refuse_problems(new, node)
    if old is not MISSING and is_same(old, new):
        return old, None, None, None
    return new, None, {}, None


def _interleaved(theirs: list[str], ours: list[str]) -> list[tuple[str, int | None]]:
    """
    Return the order of a merged list: applied elements with None, elements of only the old list with their index.

    Both lists are read from the front. Elements of only the old list (`theirs`)
    are taken at once. A shared element is taken in the applied order (`ours`);
    until then it delays the old elements that follow it, unless an earlier
    shared element has not been taken yet.
    """
    known, applied, taken = set(theirs), set(ours), set[str]()
    waiting = (element for element in ours if element in known)
    next_shared = next(waiting, None)
    order: list[tuple[str, int | None]] = []
    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs):
            element = theirs[left]
            if element not in applied:
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
