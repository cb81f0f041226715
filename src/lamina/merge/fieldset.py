"""
Sets of field paths, and managedFields to and fro.

A set is kept the way managedFields writes it down: a tree of dicts whose keys
are the elements of paths.

    f:NAME            a field of an object or a key of a map
    k:{"key":value}   the element of a list that has these keys
    v:VALUE           the element of a set
    i:NUMBER          the element of a list at that place

An element is a member of the set when its dict is empty, or holds `.`; what
else the dict holds are longer paths, which may be members without it.

    {"f:spec": {"f:ports": {".": {}, 'k:{"port":80}': {}}}}   is   .spec.ports, .spec.ports[port=80]

So reading a set costs nothing, and two sets are equal when the dicts are. It
needs one form for each set, and every set here is in it: keys are spelled as
`key_element` and `value_element` spell them, a dict never holds `.` alone, and
elements stand in order: fields, keys, values, indexes, each kind sorted.

Sets are values: no function changes one it was given, and results share parts
with their arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from lamina.merge.wording import html_escaped, quoted

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]


class UnreadableFields(ValueError):
    """Somebody wrote a set of fields that cannot be understood."""


# Elements


def key_element(keys: Mapping[str, Any]) -> str:
    """Return the element that selects by keys: `k:{"containerPort":80,"protocol":"TCP"}`."""
    inside = ",".join(f"{json_text(name, html=False)}:{json_text(keys[name])}" for name in sorted(keys))
    return f"k:{{{inside}}}"


def value_element(value: Any) -> str:
    """Return the element that selects by value: `v:"x"`."""
    return f"v:{scalar_text(value)}"


@lru_cache(maxsize=8192, typed=True)
def scalar_text(value: Any) -> str:
    """Return a scalar as an element spells it; remembered, since the same few names come again and again."""
    return json_text(value)


def json_text(value: Any, *, html: bool = True) -> str:
    """Return a value as compact JSON, spelled as Kubernetes spells it inside an element."""
    match value:
        case str():
            text = json.dumps(value, ensure_ascii=False)
            if "\b" in value or "\f" in value:
                text = _SHORT_ESCAPE.sub(lambda found: _LONG_ESCAPE.get(found[0], found[0]), text)
            if html:
                text = html_escaped(text)
            return text
        case float() if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        case dict():
            inside = (f"{json_text(name)}:{json_text(value[name])}" for name in sorted(value))
            return f"{{{','.join(inside)}}}"
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case _:
            return json.dumps(value)


_SHORT_ESCAPE = re.compile(r"\\.")
_LONG_ESCAPE = {"\\b": "\\u0008", "\\f": "\\u000c"}


@lru_cache(maxsize=8192)
def rank(element: str) -> tuple[Any, ...]:
    """Return what elements are sorted by: fields, then keys, then values, then indexes."""
    text = element[2:]
    match element[:2]:
        case "f:":
            return (0, text)
        case "k:":
            keys = json.loads(text)
            return (1, *((name, *_value_rank(keys[name])) for name in sorted(keys)))
        case "v:":
            return (2, *_value_rank(json.loads(text)))
        case "i:":
            return (3, int(text))
        case _:
            # `.` is no element, but stands among them, and first.
            return (-1, element)


def _value_rank(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case None:
            return (5, 0)
        case _:
            return (3, json_text(value))


def show(path: Iterable[str]) -> str:
    """Return a path as messages show it: `.spec.ports[containerPort=80,protocol="TCP"].name`."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    text = element[2:]
    match element[:2]:
        case "f:":
            return f".{text}"
        case "k:":
            keys = json.loads(text)
            return f"[{','.join(f'{name}={_shown_value(keys[name])}' for name in sorted(keys))}]"
        case "v:":
            return f"[={_shown_value(json.loads(text))}]"
        case _:
            return f"[{text}]"


def _shown_value(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json_text(value)


# To and fro


def read(fields: Any) -> FieldSet:
    """
    Return a set as somebody else wrote it, in the one form sets have here.

    Elements of a kind we have never heard of are left out. Raises
    UnreadableFields for one that is misspelt.
    """
    return _read(fields, in_set=False)


def _read(fields: Any, *, in_set: bool) -> FieldSet:
    if not isinstance(fields, dict):
        raise UnreadableFields(f"expected an object of fields, got {fields!r}")
    found: FieldSet = {}
    for element, below in fields.items():
        if element != ".":
            spelled = _spelled(element)
            if spelled:
                found[spelled] = _read(below, in_set=True)
    ordered = {element: found[element] for element in sorted(found, key=rank)}
    return {".": {}, **ordered} if in_set and "." in fields and ordered else ordered


def _spelled(element: str) -> str:
    """Return an element in its one spelling; empty for one of a kind nobody knows."""
    if len(element) < 2:
        raise UnreadableFields(f"key must be 2 characters long: {element}")
    if element[1] != ":":
        raise UnreadableFields(f"missing colon: {element}")
    try:
        match element[0]:
            case "f":
                return element
            case "k":
                keys = json.loads(element[2:])
                if not isinstance(keys, dict):
                    raise UnreadableFields(f"keys are no object: {element}")
                return key_element(keys)
            case "v":
                return f"v:{json_text(json.loads(element[2:]))}"
            case "i":
                return f"i:{int(element[2:])}"
            case _:
                return ""
    except ValueError as error:
        raise UnreadableFields(f"{element}: {error}") from None


def of(*paths: Sequence[str]) -> FieldSet:
    """Return the set of these paths; an element without `k:`, `v:` or `i:` in front is the name of a field."""
    found: FieldSet = {}
    for path in paths:
        lone: FieldSet = {}
        for name in reversed(path):
            lone = {name if name[:2] in ("k:", "v:", "i:", "f:") else f"f:{name}": lone}
        found = union(found, lone)
    return found


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Yield the members in Kubernetes' order: at each level first the members, then what lies below."""
    for element, below in fields.items():
        if element != "." and (not below or "." in below):
            yield (*prefix, element)
    for element, below in fields.items():
        if below:
            yield from paths(below, (*prefix, element))


def sorted_elements(fields: FieldSet) -> FieldSet:
    """Return a set with its first elements in order; what lies below them is as it was."""
    return {element: fields[element] for element in _order(fields)} if len(fields) > 1 else fields


def in_order(fields: FieldSet) -> FieldSet:
    """Return a set whose elements are in order all the way down."""
    return {element: in_order(below) if (below := fields[element]) else below for element in _order(fields)}


def _order(fields: FieldSet) -> list[str]:
    elements = sorted(fields)
    # Fields sort by their names, and before elements of any other kind.
    if elements and elements[-1][0] != "f":
        elements.sort(key=rank)
    return elements


# Algebra


def has(fields: FieldSet, path: Sequence[str]) -> bool:
    """Say whether a path is a member."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and (not node or "." in node)


def union(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return the paths that are in either."""
    if not two or one is two:
        return one
    if not one:
        return two
    found = dict(one)
    new = False
    for element, below in two.items():
        if element == ".":
            continue
        known = found.get(element)
        if known is None:
            found[element] = below
            new = True
        elif known != below:
            found[element] = _united(known, below)
    if new:
        found = sorted_elements(found)
    if "." in two and "." not in found:
        found = {".": {}, **found}
    return found


def _united(one: FieldSet, two: FieldSet) -> FieldSet:
    if not one:
        return two if "." in two else {".": {}, **two}
    if not two:
        return one if "." in one else {".": {}, **one}
    return union(one, two)


def difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return the paths of the first that are not in the second; what lies below a path is another path."""
    if not one or not two:
        return one
    found: FieldSet | None = None
    for element, other in two.items():
        below = one.get(element)
        if below is None or element == ".":
            continue
        left = _left(below, other)
        if left is not below:
            if found is None:
                found = dict(one)
            if left is None:
                del found[element]
            else:
                found[element] = left
    return one if found is None else found


def _left(below: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what is left of a subtree, its own membership included; None for nothing."""
    member = not below or "." in below
    taken = member and (not other or "." in other)
    if not below:
        return None if taken else below
    kept = difference(below, other) if other else below
    if taken and "." in kept:
        kept = {element: rest for element, rest in kept.items() if element != "."}
    if len(kept) == 1 and "." in kept:
        return {}
    return kept or None


def intersection(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return the paths that are in both."""
    if one is two:
        return one
    found: FieldSet = {}
    for element, below in one.items():
        other = two.get(element)
        if other is None or element == ".":
            continue
        member = (not below or "." in below) and (not other or "." in other)
        shared = intersection(below, other) if below and other else {}
        if member:
            found[element] = {".": {}, **shared} if shared else {}
        elif shared:
            found[element] = shared
    return found


def without(fields: FieldSet, dropped: FieldSet) -> FieldSet:
    """Return a set without the given paths and everything below them."""
    if not fields or not dropped:
        return fields
    found: FieldSet | None = None
    for element, other in dropped.items():
        below = fields.get(element)
        if below is None or element == ".":
            continue
        left: FieldSet | None = None
        if other and "." not in other:
            left = without(below, other) if below else below
            if left is not below:
                left = None if not left else {} if len(left) == 1 and "." in left else left
        if left is not below:
            if found is None:
                found = dict(fields)
            if left is None:
                del found[element]
            else:
                found[element] = left
    return fields if found is None else found


def leaves(fields: FieldSet) -> FieldSet:
    """Return the members that have nothing below them."""
    return {element: leaves(below) for element, below in fields.items() if element != "."}


def under(fields: FieldSet, element: str) -> FieldSet:
    """Return the paths below an element, without it."""
    below: FieldSet = fields.get(element) or {}
    return {name: rest for name, rest in below.items() if name != "."} if "." in below else below
