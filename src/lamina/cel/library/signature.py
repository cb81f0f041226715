"""The notation of libraries for their functions: a name, an id, and a signature such as `list(T), int -> T`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.cel.declarations import Function, Overload
from lamina.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    ObjectType,
    Type,
    list_of,
    map_of,
    opaque,
    optional_of,
    param,
    type_of,
)

_NAMED: Final = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "duration": DURATION,
    "dyn": DYN,
    "int": INT,
    "null": NULL,
    "string": STRING,
    "timestamp": TIMESTAMP,
    "type": TYPE,
    "uint": UINT,
}
_MADE: Final[dict[str, Callable[..., Type]]] = {
    "list": list_of,
    "map": map_of,
    "optional": optional_of,
    "type": type_of,
}
_WORD: Final = re.compile(r"[A-Za-z_.]+|->|[(),]")


@dataclass(frozen=True, slots=True)
class Definition:
    """One overload, and the function it belongs to."""

    name: str
    overload: Overload


def function(
    name: str,
    overload_id: str,
    signature: str,
    implementation: Callable[..., Any] | None,
    *,
    member: bool = False,
    cost: Callable[[Sequence[Any], Any], int] | None = None,
) -> Definition:
    """Return an overload called as `name(a, b)`."""
    params, result = read(signature)
    return Definition(
        name, Overload(overload_id, params, result, member=member, implementation=implementation, cost=cost)
    )


def method(
    name: str,
    overload_id: str,
    signature: str,
    implementation: Callable[..., Any] | None,
    *,
    cost: Callable[[Sequence[Any], Any], int] | None = None,
) -> Definition:
    """Return an overload called as `a.name(b)`; `a` comes first in the signature."""
    return function(name, overload_id, signature, implementation, member=True, cost=cost)


def to_functions(definitions: Iterable[Definition]) -> tuple[Function, ...]:
    """Return the functions of these definitions, with their overloads."""
    found: dict[str, list[Overload]] = {}
    for definition in definitions:
        found.setdefault(definition.name, []).append(definition.overload)
    return tuple(Function(name, tuple(overloads)) for name, overloads in found.items())


def read(signature: str) -> tuple[tuple[Type, ...], Type]:
    """Return the parameters and the result of a signature."""
    words = _WORD.findall(signature)
    arrow = words.index("->")
    params = _types(words[:arrow])
    (result,) = _types(words[arrow + 1 :])
    return params, result


def _types(words: list[str]) -> tuple[Type, ...]:
    found: list[Type] = []
    place = 0
    while place < len(words):
        word = words[place]
        if word == ",":
            place += 1
        elif place + 1 < len(words) and words[place + 1] == "(":
            end = _closing(words, place + 1)
            found.append(_MADE[word](*_types(words[place + 2 : end])))
            place = end + 1
        else:
            found.append(_one(word))
            place += 1
    return tuple(found)


def _one(word: str) -> Type:
    if word in _NAMED:
        return _NAMED[word]
    if len(word) == 1:
        return param(word)
    return opaque(word) if word.startswith("net.") else ObjectType(word)


def _closing(words: list[str], opening: int) -> int:
    depth = 0
    for place in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[place], 0)
        if not depth:
            return place
    raise ValueError(f"a parenthesis is open in {' '.join(words)}")
