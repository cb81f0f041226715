"""
Sets of field paths, in the form of fieldsV1.

A set is a tree of dicts whose keys are path elements, as in managedFields.

    f:NAME            a field of an object or a key of a map
    k:{"key":value}   the element of an associative list with these keys
    v:VALUE           the element of a set
    i:NUMBER          the element of a list at that index

An element is a member of the set when its dict is empty, or holds `.`; the
other keys of the dict are longer paths, which may be members without it.

    {"f:spec": {"f:ports": {".": {}, 'k:{"port":80}': {}}}}   is   .spec.ports, .spec.ports[port=80]

So decoding a set costs nothing, and two sets are equal when the dicts are. This
needs a canonical form, and every set here has it: keys are encoded as
`key_element` and `value_element` encode them, a dict never holds `.` alone, and
elements are in order: fields, keys, values, indexes, each kind sorted.

Sets are values: no function changes its arguments, and results share parts
with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from lamina.merge.go_format import html_escaped
from lamina.objects.go_quote import quoted

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]


class UnreadableFields(ValueError):
    """A set of fields in a request cannot be decoded."""


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
    """Return a scalar as a path element encodes it; cached, since the same names recur."""
    return json_text(value)


def json_text(value: Any, *, html: bool = True) -> str:
    """Return a value as compact JSON, encoded as in Kubernetes' path elements."""
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
    """Return the sort key of an element: fields, then keys, then values, then indexes."""
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
            # `.` is not an element, but comes first among them.
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


# Decoding


def read(fields: Any) -> FieldSet:
    """
    Return a decoded set in canonical form.

    Elements of an unknown kind are left out. Raises UnreadableFields for an
    invalid one.
    """
    return _read(fields, in_set=False)


def _read(fields: Any, *, in_set: bool) -> FieldSet:
    if not isinstance(fields, dict):
        raise UnreadableFields(f"expected an object of fields, got {fields!r}")
    found: FieldSet = {}
    for element, below in fields.items():
        if element != ".":
            canonical = _canonical(element)
            if canonical:
                found[canonical] = _read(below, in_set=True)
    ordered = {element: found[element] for element in sorted(found, key=rank)}
    return {".": {}, **ordered} if in_set and "." in fields and ordered else ordered


def _canonical(element: str) -> str:
    """Return an element in canonical form; empty for one of an unknown kind."""
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
    """Return the set of these paths; an element without a prefix `k:`, `v:` or `i:` is the name of a field."""
    found: FieldSet = {}
    for path in paths:
        lone: FieldSet = {}
        for name in reversed(path):
            lone = {name if name[:2] in ("k:", "v:", "i:", "f:") else f"f:{name}": lone}
        found = union(found, lone)
    return found


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Yield the members in Kubernetes' order: at each level first the members, then the longer paths."""
    for element, below in fields.items():
        if element != "." and (not below or "." in below):
            yield (*prefix, element)
    for element, below in fields.items():
        if below:
            yield from paths(below, (*prefix, element))


def sorted_elements(fields: FieldSet) -> FieldSet:
    """Return a set with its first elements in order; the levels below are unchanged."""
    return {element: fields[element] for element in _order(fields)} if len(fields) > 1 else fields


def in_order(fields: FieldSet) -> FieldSet:
    """Return a set whose elements are in order at every level."""
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
    """Return the paths of the first that are not in the second; longer paths are other paths."""
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
    """Return the rest of a subtree, its own membership included; None for nothing."""
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
