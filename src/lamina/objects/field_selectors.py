"""
Field selectors: `spec.nodeName=a,status.phase!=Running`.

Each kind defines which fields it has, and how to read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from lamina.errors import BadRequest


class Term(NamedTuple):
    """One term of a field selector."""

    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escaped(self.value)}"


class FieldSelector(Struct, frozen=True):
    """Matches where all terms match."""

    terms: tuple[Term, ...]

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def matches(self, read: Callable[[str], str]) -> bool:
        """Say whether an object matches, given how to read a field of it as text."""
        return all((read(term.field) == term.value) is term.equal for term in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the one value the field must have, None where the selector requires none."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)

    @property
    def is_everything(self) -> bool:
        return not self.terms

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_SPLIT = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL)


def parse_field_selector(text: str) -> FieldSelector:
    """
    Return the field selector of a query parameter; empty terms are skipped.

    Raises BadRequest with kube-apiserver's message for an invalid one.
    """
    if not text:
        return FieldSelector(())
    terms = []
    for part in sorted(_SPLIT.findall(text)):
        found = _TERM.fullmatch(part)
        if found is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
        name, operator, value = found.groups()
        terms.append(Term(name, operator != "!=", _unescaped(value)))
    return FieldSelector(tuple(terms))


def escaped(value: str) -> str:
    """Return a value as it is written in a field selector."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _unescaped(value: str) -> str:
    if "\\" not in value and "," not in value and "=" not in value:
        return value
    plain: list[str] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in {"\\", ",", "="}:
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{following}")
            plain.append(following)
        elif character in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    return "".join(plain)
