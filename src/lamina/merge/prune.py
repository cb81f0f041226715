"""
Removes the fields that an applier no longer applies.

A field is removed when its applier applied it last time, does not apply it now,
and no other manager owns it. A declared field that holds others is removed with
the last of them that had an owner. A map or list may become empty while it has
an owner; for ownership it counts as a null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lamina.merge.fieldset import FieldSet, difference
from lamina.merge.schema_node import ATOMIC, DEDUCED, Node


class VersionedSet(NamedTuple):
    """A manager's set of fields, and the schema of the version it is written in."""

    node: Node
    fields: FieldSet


def unowned(last: VersionedSet, owned: Iterable[VersionedSet]) -> FieldSet:
    """
    Return the fields that were applied last time and have no owner now.

    `owned` has the sets of all managers, the applier's new one included. A set
    in another version counts for the fields with the same names there.
    """
    owned = list(owned)
    left = last.fields
    for one in owned:
        left = difference(left, one.fields)
        if not left:
            return left
    left = with_declared_ancestors(left, last.node)
    for one in owned:
        if one.node is not last.node:
            left = _without_parts_of_atomics(left, one.node)
        left = _not_in(left, one.fields, one.node)
    return left


def _not_in(fields: FieldSet, owned: FieldSet, node: Node) -> FieldSet:
    """Return the part of a set that is not owned; a declared field is owned when anything in it is."""
    found: FieldSet = {}
    for element, below in fields.items():
        other = owned.get(element)
        if other is None or element == ".":
            found[element] = below
            continue
        taken = not other or "." in other or (element[0] == "f" and node.declares(element[2:]))
        if not below:
            if not taken:
                found[element] = below
            continue
        left = _not_in(below, other, _under(node, element) or DEDUCED) if other else below
        if taken and "." in left:
            left = {name: rest for name, rest in left.items() if name != "."}
        if left:
            found[element] = {} if len(left) == 1 and "." in left else left
    return found


def _without_parts_of_atomics(fields: FieldSet, node: Node) -> FieldSet:
    """Return a set without fields inside of maps and lists that this schema declares atomic."""
    found: FieldSet = {}
    for element, below in fields.items():
        under = _under(node, element)
        if below and under is not None:
            if under.is_atomic:
                if "." in below:
                    found[element] = {}
                continue
            below = _without_parts_of_atomics(below, under)
            if not below:
                continue
            if len(below) == 1 and "." in below:
                below = {}
        found[element] = below
    return found


def _under(node: Node, element: str) -> Node | None:
    if element[0] == "f":
        return node.child(element[2:])
    return node.items if node.lists else None


def with_declared_ancestors(fields: FieldSet, node: Node) -> FieldSet:
    """Return a set with every declared field on the way to a member made a member itself."""
    found: FieldSet = {}
    for element, below in fields.items():
        if not below:
            found[element] = below
            continue
        if element[0] == "f":
            name = element[2:]
            inside = with_declared_ancestors(below, node.child(name) or DEDUCED)
            if "." not in inside and node.declares(name):
                inside = {".": {}, **inside}
        else:
            inside = with_declared_ancestors(below, node.items if node.lists else DEDUCED)
        found[element] = inside
    return found


def removed(value: Any, fields: FieldSet, node: Node, *, nulls: bool = True) -> Any:
    """
    Return a value without the members of a set; None where nothing is left of it.

    An atomic value has no members inside, and a value without anything to own
    is not a member. A map or list that becomes empty without being a member
    is replaced by a null, or removed when `nulls` is false.
    """
    kind = value.__class__
    if kind is dict and value and not node.atomic:
        made: dict[str, Any] = {}
        emptied = False
        for name, held in value.items():
            below = fields.get(f"f:{name}")
            if below is None:
                made[name] = held
                continue
            inside = node.child(name) or DEDUCED
            if not below or "." in below:
                if node.declares(name) and not _is_field(held, inside):
                    made[name] = held
                continue
            left = removed(held, below, inside, nulls=nulls)
            if left is not None or nulls:
                made[name] = left
            else:
                emptied = True
        return made if made or emptied else None
    if kind is list and value and node.listing != ATOMIC:
        kept = []
        for item in value:
            below = fields.get(node.element(item))
            if below is None:
                kept.append(item)
            elif below and "." not in below:
                left = removed(item, below, node.items, nulls=nulls)
                if left is not None or nulls:
                    kept.append(left)
        return kept or None
    return value


def _is_field(value: Any, node: Node) -> bool:
    """Say whether there is anything to own in a declared field; an empty set has nothing."""
    kind = value.__class__
    if kind is list:
        return bool(value) or node.listing == ATOMIC
    if kind is dict and value and not node.atomic:
        return any(
            not node.declares(name) or _is_field(held, node.child(name) or DEDUCED)
            for name, held in value.items()
        )
    return True


def reconciled(fields: FieldSet, node: Node) -> FieldSet:
    """
    Return a set reconciled with the current schema.

    An owner of parts of a value that has become atomic owns the whole value.
    """
    made: FieldSet | None = None
    for element, below in fields.items():
        if not below:
            continue
        under = _under(node, element)
        if under is None or (under.values is DEDUCED and not under.declared):
            continue
        settled = {} if under.is_atomic else reconciled(below, under)
        if settled is not below:
            if made is None:
                made = dict(fields)
            made[element] = settled
    return fields if made is None else made
