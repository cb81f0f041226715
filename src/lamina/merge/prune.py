"""
What leaves an object when an applier no longer states it.

A field goes when its applier stated it last time, does not state it now, and
nobody else owns it. A declared field that holds others goes with the last of
them that had an owner. Something may be emptied whose owner is still there; for
ownership a null stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lamina.merge.fieldset import FieldSet, difference
from lamina.merge.node import ATOMIC, LOOSE, Node


class Claim(NamedTuple):
    """A set of fields somebody owns, and the kind of object it is about, in the version it is written in."""

    node: Node
    fields: FieldSet


def abandoned(last: Claim, claims: Iterable[Claim]) -> FieldSet:
    """
    Return what was stated last time and is nobody's now.

    `claims` are everybody's, the applier's new one included. A claim in
    another version counts for the fields that are called the same there.
    """
    claims = list(claims)
    left = last.fields
    for claim in claims:
        left = difference(left, claim.fields)
        if not left:
            return left
    left = with_named(left, last.node)
    for claim in claims:
        if claim.node is not last.node:
            left = _coarse(left, claim.node)
        left = _unclaimed(left, claim.fields, claim.node)
    return left


def _unclaimed(fields: FieldSet, claimed: FieldSet, node: Node) -> FieldSet:
    """Return what of a set is not claimed; a declared field is when anything in it is."""
    found: FieldSet = {}
    for element, below in fields.items():
        claim = claimed.get(element)
        if claim is None or element == ".":
            found[element] = below
            continue
        taken = not claim or "." in claim or (element[0] == "f" and node.declares(element[2:]))
        if not below:
            if not taken:
                found[element] = below
            continue
        left = _unclaimed(below, claim, _under(node, element) or LOOSE) if claim else below
        if taken and "." in left:
            left = {name: rest for name, rest in left.items() if name != "."}
        if left:
            found[element] = {} if len(left) == 1 and "." in left else left
    return found


def _coarse(fields: FieldSet, node: Node) -> FieldSet:
    """Return the part of a set that makes sense where more is owned whole: all of such a thing, or nothing of it."""
    found: FieldSet = {}
    for element, below in fields.items():
        under = _under(node, element)
        if below and under is not None:
            if under.is_whole:
                if "." in below:
                    found[element] = {}
                continue
            below = _coarse(below, under)
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


def with_named(fields: FieldSet, node: Node) -> FieldSet:
    """Return a set with every declared field on the way to a member made a member itself."""
    found: FieldSet = {}
    for element, below in fields.items():
        if not below:
            found[element] = below
            continue
        if element[0] == "f":
            name = element[2:]
            inside = with_named(below, node.child(name) or LOOSE)
            if "." not in inside and node.declares(name):
                inside = {".": {}, **inside}
        else:
            inside = with_named(below, node.items if node.lists else LOOSE)
        found[element] = inside
    return found


def removed(value: Any, fields: FieldSet, node: Node, *, nulls: bool = True) -> Any:
    """
    Return a value without the members of a set; None where nothing is left of it.

    What is owned whole has no members inside, and what holds nothing that
    could be owned is not one itself. Something that was emptied without being
    a member leaves a null behind, or nothing when `nulls` is false.
    """
    kind = value.__class__
    if kind is dict and value and not node.whole:
        made: dict[str, Any] = {}
        emptied = False
        for name, held in value.items():
            below = fields.get(f"f:{name}")
            if below is None:
                made[name] = held
                continue
            inside = node.child(name) or LOOSE
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
    """Say whether there is anything to own in a declared field; in an empty set there is not."""
    kind = value.__class__
    if kind is list:
        return bool(value) or node.listing == ATOMIC
    if kind is dict and value and not node.whole:
        return any(
            not node.declares(name) or _is_field(held, node.child(name) or LOOSE)
            for name, held in value.items()
        )
    return True


def reconciled(fields: FieldSet, node: Node) -> FieldSet:
    """
    Return a set in the terms of the schema as it is now.

    Who owned parts of something that is owned whole by now, owns it whole.
    """
    made: FieldSet | None = None
    for element, below in fields.items():
        if not below:
            continue
        under = _under(node, element)
        if under is None or (under.values is LOOSE and not under.declared):
            continue
        settled = {} if under.is_whole else reconciled(below, under)
        if settled is not below:
            if made is None:
                made = dict(fields)
            made[element] = settled
    return fields if made is None else made
