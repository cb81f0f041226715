"""Validates a value against its schema, with structured-merge-diff's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lamina.merge.fieldset import show
from lamina.merge.go_format import plain, type_name
from lamina.merge.schema_node import ATOMIC, Node, UntypableError


class Problem(NamedTuple):
    """An error and its path."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def below(self, prefix: str) -> Problem:
        return Problem(prefix + self.path, self.message)


_FINE: tuple[Problem, ...] = ()


def problems(value: Any, node: Node) -> Sequence[Problem]:
    """
    Return all type errors of a value.

    Duplicates in sets and associative lists are errors. The content of atomic
    values is validated as well.
    """
    if value is None:
        return _FINE
    kind = value.__class__
    if kind is dict:
        return _map_problems(value, node) if node.maps else _unexpected(value, node)
    if kind is list:
        return _list_problems(value, node) if node.lists else _unexpected(value, node)
    return _FINE if kind in node.scalars else _unexpected(value, node)


def _map_problems(value: dict[str, Any], node: Node) -> Sequence[Problem]:
    found: list[Problem] = []
    for name, held in value.items():
        below = node.child(name)
        if below is None:
            found.append(Problem(f".{name}", "field not declared in schema"))
        elif held.__class__ not in below.scalars:
            found += [problem.below(f".{name}") for problem in problems(held, below)]
    return found


def _list_problems(value: list[Any], node: Node) -> Sequence[Problem]:
    found: list[Problem] = []
    seen: set[str] = set()
    for number, item in enumerate(value):
        if node.listing == ATOMIC:
            place = f"i:{number}"
        else:
            try:
                place = node.element(item)
            except UntypableError as error:
                found.append(Problem("", f"element {number}: {error}"))
                return found
            if place in seen:
                found.append(Problem("", f"duplicate entries for key {show([place])}"))
            seen.add(place)
        if item.__class__ not in node.items.scalars:
            found += [problem.below(show([place])) for problem in problems(item, node.items)]
    return found


def _unexpected(value: Any, node: Node) -> Sequence[Problem]:
    if node.maps and not node.scalars:
        message = f"expected map, got &{{{plain(value)}}}"
    elif node.scalar == "numeric":
        message = f"expected numeric (int or float), got {type_name(value)}"
    elif node.scalar == "string":
        message = f"expected string, got &value.valueUnstructured{{Value:{plain(value)}}}"
    elif node.scalar:
        wanted = "boolean" if node.scalar == "boolean" else "any scalar"
        message = f"expected {wanted}, got &{{{plain(value)}}}"
    else:
        message = f"expected list, got &{{{plain(value)}}}"
    return (Problem("", message),)


def refuse_problems(value: Any, node: Node) -> None:
    """Raise UntypableError for a value with type errors."""
    found = problems(value, node)
    if found:
        raise UntypableError(listed(found))


def listed(found: Sequence[Problem]) -> str:
    """Return all errors as one message."""
    if len(found) == 1:
        return str(found[0])
    return "\n".join(["errors:", *(f"  {problem}" for problem in found)])
