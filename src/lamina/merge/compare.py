"""
Which fields a value has, and which of them differ between two values.

Three questions, and each has its own idea of when something that holds other
things is a field of its own:

    fields_of   what somebody who states a value owns: leaves, elements of
                lists, and keys of maps; a declared field that holds others
                is only the way to them
    added       what somebody owns who wrote a value where there was none:
                everything, what holds others included
    compare     what somebody changed, and what is gone

Answers are field sets. Below the top they are subtrees: what a field set holds
at an element, whose own membership `.` or emptiness tells; None for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.merge.check import refuse_problems
from lamina.merge.fieldset import FieldSet, show, sorted_elements
from lamina.merge.node import ATOMIC, Node, UntypableError
from lamina.merge.schema import MISSING
from lamina.objects.diff import is_same


class Comparison(NamedTuple):
    """What is new or different on the right side, and what only the left side has."""

    changed: FieldSet
    removed: FieldSet


# What a value states


def fields_of(value: Mapping[str, Any], node: Node) -> FieldSet:
    """
    Return the fields somebody owns who states this much of an object, in no order.

    Raises UntypableError for what the schema does not allow.
    """
    found: FieldSet = {}
    declared, nodes, values = node.declared, node.fields, node.values
    for name, held in value.items():
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
        kind = held.__class__
        if kind in below.scalars:
            found[f"f:{name}"] = {}
            continue
        if kind is dict and held and below.maps and not below.whole:
            inside = fields_of(held, below)
        elif kind is list and below.lists and below.listing != ATOMIC:
            inside = elements_of(held, below)
        else:
            refuse_problems(held, below)
            found[f"f:{name}"] = {}
            continue
        if inside:
            found[f"f:{name}"] = inside if known else {".": {}, **inside}
        elif not known:
            found[f"f:{name}"] = {}
    return found


def elements_of(items: list[Any], node: Node) -> FieldSet:
    """Return the fields somebody owns who states these elements of a set or a list of keyed elements."""
    found: FieldSet = {}
    below = node.items
    for item in items:
        element = node.element(item)
        if element in found:
            raise UntypableError(f"duplicate entries for key {show([element])}")
        if item.__class__ is dict and below.maps and not below.whole:
            inside = fields_of(item, below)
            found[element] = {".": {}, **inside} if inside else {}
        else:
            if item.__class__ not in below.scalars:
                refuse_problems(item, below)
            found[element] = {}
    return found


# What a value adds


def added(value: Any, node: Node) -> FieldSet:
    """Return the subtree of a value that was not there before. The value itself is always a member."""
    kind = value.__class__
    inside: FieldSet
    if kind is dict and value and not node.whole:
        inside = {}
        for name in sorted(value):
            element, below, _ = node.way(name)
            if below is not None:
                held = value[name]
                inside[element] = added(held, below) if held.__class__ in (dict, list) else {}
    elif kind is list and value and node.listing != ATOMIC:
        inside = {}
        twice: set[str] = set()
        for item in value:
            element = node.element(item)
            if element in inside:
                twice.add(element)
            inside[element] = added(item, node.items)
        for element in twice:
            inside[element] = {}
        inside = sorted_elements(inside)
    else:
        return {}
    return {".": {}, **inside} if inside else {}


def everything(new: Mapping[str, Any], node: Node) -> FieldSet:
    """Return what an object has that was not there before: what comparing it with nothing would find."""
    found: FieldSet = {}
    for name in sorted(new):
        held = new[name]
        element, below, zero = node.way(name)
        if below is None or (held is None and node.named):
            continue
        if zero is MISSING:
            found[element] = added(held, below) if held.__class__ in (dict, list) else {}
        elif zero == {} and held.__class__ is dict and not below.whole:
            # A struct that is always there: only what is in it is new.
            if inside := everything(held, below):
                found[element] = inside
        else:
            came, _ = compare_values(zero, held, below)
            if came is not None:
                found[element] = came
    return found


# What differs


def compare(before: Mapping[str, Any], after: Mapping[str, Any], node: Node) -> Comparison:
    """Return where two objects differ; what they share is not looked at."""
    changed, removed = _compare_maps(before, after, node)
    return Comparison(changed or {}, removed or {})


def compare_values(before: Any, after: Any, node: Node) -> tuple[FieldSet | None, FieldSet | None]:
    """Return where two values of a field differ, as subtrees of what changed and of what is gone."""
    one, two = before.__class__, after.__class__
    if one is dict or two is dict:
        return _compare_with_map(before, after, node)
    if (one is list or two is list) and node.listing != ATOMIC and (before or after):
        lists = (one is list or before is None) and (two is list or after is None)
        if lists:
            return compare_lists(before or [], after or [], node)
    return (None, None) if is_same(before, after) else ({}, None)


def _compare_with_map(before: Any, after: Any, node: Node) -> tuple[FieldSet | None, FieldSet | None]:
    one, two = before.__class__, after.__class__
    if node.whole or not (before or after):
        return (None, None) if is_same(before, after) else ({}, None)
    if (one is dict or before is None) and (two is dict or after is None):
        return _compare_maps(before or {}, after or {}, node)
    # One is a map and the other is something else altogether: the field is a
    # different one, and what the maps held came and went.
    came = added(after, node) if two is dict else {}
    gone = _inside(added(before, node)) if one is dict else None
    return came, gone or None


def _inside(subtree: FieldSet) -> FieldSet:
    return {element: below for element, below in subtree.items() if element != "."}


def _compare_maps(
    before: Mapping[str, Any], after: Mapping[str, Any], node: Node
) -> tuple[FieldSet | None, FieldSet | None]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    exact = node.exact
    for name, new in after.items():
        old = before.get(name, MISSING)
        if old is new or (exact and old == new):
            continue
        below = node.child(name)
        if below is None:
            continue
        if old is MISSING:
            old = node.zero(name)
            if new is None and node.named:
                continue
            if old is MISSING:
                changed[f"f:{name}"] = added(new, below)
                continue
        came, gone = compare_values(old, new, below)
        if came is not None:
            changed[f"f:{name}"] = came
        if gone is not None:
            removed[f"f:{name}"] = gone
    for name, old in before.items():
        if name in after:
            continue
        below = node.child(name)
        if below is None:
            continue
        new = node.zero(name)
        if old is None and node.named:
            continue
        if new is MISSING:
            removed[f"f:{name}"] = added(old, below)
            continue
        came, gone = compare_values(old, new, below)
        if came is not None:
            changed[f"f:{name}"] = came
        if gone is not None:
            removed[f"f:{name}"] = gone
    return (sorted_elements(changed) or None), (sorted_elements(removed) or None)


def compare_lists(before: list[Any], after: list[Any], node: Node) -> tuple[FieldSet | None, FieldSet | None]:
    """Return where two sets or lists of keyed elements differ, as subtrees."""
    if node.exact and before == after:
        return None, None
    old, new = _by_element(before, node), _by_element(after, node)
    changed: FieldSet = {}
    removed: FieldSet = {}
    for element, theirs in new.items():
        ours = old.get(element, [])
        came, gone = _compare_elements(ours, theirs, node.items)
        if came is not None:
            changed[element] = came
        if gone is not None:
            removed[element] = gone
    for element, ours in old.items():
        if element not in new:
            removed[element] = added(ours[0], node.items) if len(ours) == 1 else {}
    return (sorted_elements(changed) or None), (sorted_elements(removed) or None)


def _compare_elements(
    before: list[Any], after: list[Any], node: Node
) -> tuple[FieldSet | None, FieldSet | None]:
    """Compare the elements that one path element stands for, which is more than one where they are not unique."""
    match len(before), len(after):
        case 1, 1:
            return compare_values(before[0], after[0], node)
        case 0, 1:
            return added(after[0], node), None
        case 0, _:
            return {}, None
        case 1, _:
            return {}, added(before[0], node)
        case _, 1:
            return added(after[0], node), {}
        case _:
            return (None, None) if is_same(before, after) else ({}, None)


def _by_element(items: list[Any], node: Node) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(node.element(item), []).append(item)
    return found
