"""
What leaves an object when an applier no longer states it.

A field goes when its applier stated it last time, does not state it now, and
nobody else owns it. Taking something away may empty what held it; what became
empty stays as null, because whoever owns the holder still does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from lamina.merge.compare import fields_of
from lamina.merge.fieldset import FieldSet, difference, intersection, union
from lamina.merge.node import ATOMIC, LOOSE, Node

Fields: TypeAlias = Mapping[str, Any]


class View(NamedTuple):
    """An object as one version of its kind shows it."""

    node: Node
    obj: Fields


class Claim(NamedTuple):
    """A set of fields somebody owns, in the words of one version."""

    version: str
    fields: FieldSet


class Pruned(NamedTuple):
    """A pruned object as ownership sees it, with nulls where things were emptied, and as it is kept, without them."""

    seen: Fields
    kept: Fields


def pruned(
    stated: Fields,
    node: Node,
    last: Claim,
    claims: Sequence[Claim],
    shown: Callable[[str, Fields], View | None],
) -> Pruned:
    """
    Return an object without what its applier stated last time and nobody owns now.

    `claims` are everybody's, the applier's new one included. What is owned is
    looked up in the version of each claim, as `shown` shows the object there,
    and taken away here by the same path.
    """
    here = shown(last.version, stated)
    if here is None:
        return Pruned(stated, stated)
    gone = with_named(last.fields, here.node)
    bare: Fields = removed(stated, gone, node) or {}
    by_version: dict[str, FieldSet] = {last.version: {}}
    for claim in claims:
        by_version[claim.version] = union(by_version.get(claim.version, {}), claim.fields)
    for version, owned in by_version.items():
        full, left = shown(version, stated), shown(version, bare)
        if full is not None and left is not None:
            # Put back what somebody owns.
            kept = union(_named_fields(left), with_named(owned, full.node))
            bare = removed(stated, difference(_named_fields(full), kept), node) or {}
    left = shown(last.version, bare) or here
    # And what was never the applier's to take away.
    really = intersection(difference(_named_fields(here), _named_fields(left)), gone)
    if not really:
        return Pruned(stated, stated)
    return Pruned(removed(stated, really, node) or {}, removed(stated, really, node, nulls=False) or {})


def _named_fields(view: View) -> FieldSet:
    return with_named(fields_of(view.obj, view.node), view.node)


def with_named(fields: FieldSet, node: Node) -> FieldSet:
    """Return a set with every declared field on the way to a member made a member itself."""
    found: FieldSet = {}
    for element, below in fields.items():
        if not below:
            found[element] = below
            continue
        is_field = element.startswith("f:")
        name = element[2:]
        next_node = (node.child(name) if is_field else node.items if node.lists else None) or LOOSE
        inside = with_named(below, next_node)
        if is_field and "." not in inside and node.declares(name):
            inside = {".": {}, **inside}
        found[element] = inside
    return found


def removed(value: Any, fields: FieldSet, node: Node, *, nulls: bool = True) -> Any:
    """
    Return a value without the members of a set; None where nothing is left of it.

    Something that was emptied without being a member leaves a null behind, or
    nothing when `nulls` is false.
    """
    kind = value.__class__
    if kind is dict:
        if node.whole or not value:
            return None
        made: dict[str, Any] = {}
        emptied = False
        for name, held in value.items():
            below = fields.get(f"f:{name}")
            if below is None:
                made[name] = held
            elif below and "." not in below:
                left = removed(held, below, node.child(name) or LOOSE, nulls=nulls)
                if left is not None or nulls:
                    made[name] = left
                else:
                    emptied = True
        return made if made or emptied else None
    if kind is list:
        if node.listing == ATOMIC or not value:
            return None
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


def reconciled(fields: FieldSet, node: Node) -> FieldSet:
    """
    Return a set in the terms of the schema as it is now.

    Who owned parts of something that is owned whole by now, owns it whole.
    """
    made: FieldSet | None = None
    for element, below in fields.items():
        if not below:
            continue
        field = element.startswith("f:")
        if field:
            next_node = node.child(element[2:])
        else:
            next_node = node.items if node.lists else None
        if next_node is None or (next_node.values is LOOSE and not next_node.declared):
            continue
        whole = next_node.whole if next_node.maps else next_node.lists and next_node.listing == ATOMIC
        settled = {} if whole else reconciled(below, next_node)
        if settled is not below:
            if made is None:
                made = dict(fields)
            made[element] = settled
    return fields if made is None else made
