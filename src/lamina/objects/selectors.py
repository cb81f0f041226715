"""
Label selectors: as a query parameter, as a LabelSelector object, as a plain map.

A selector is parsed once and matched against many objects, so it is compiled
to one predicate. `!=` and `notin` also match objects without the key. Error
texts are those of kube-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lamina.errors import BadRequest
from lamina.objects import names
from lamina.objects.field_selectors import FieldSelector, parse_field_selector
from lamina.objects.go_quote import quoted, shown

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldSelector",
    "LabelSelector",
    "Requirement",
    "from_labels",
    "from_object",
    "parse_field_selector",
    "parse_label_selector",
]

Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

_NO_LABELS: Labels = {}


class Requirement(NamedTuple):
    """
    One term of a label selector.

    `operator` is as written, or a word: `=`, `==`, `!=`, `in`, `notin`, `exists`, `!`, `gt`, `lt`.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Matches where all requirements match: one without any matches everything; `NOTHING` matches nothing."""

    requirements: tuple[Requirement, ...]
    nothing: bool = False
    _predicate: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        predicate = (lambda labels: False) if self.nothing else _predicate(self.requirements)
        object.__setattr__(self, "_predicate", predicate)

    def matches(self, labels: Labels | None) -> bool:
        return self._predicate(labels or _NO_LABELS)

    def __call__(self, labels: Labels) -> bool:
        return self._predicate(labels)

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _predicate(requirements: Sequence[Requirement]) -> Predicate:
    equals = {one.key: one.values[0] for one in requirements if one.operator in ("=", "==")}
    if len(requirements) > 1 and len(equals) == len(requirements):
        # Nearly every selector is of this form, and comparing item views is the fastest check.
        wanted = equals.items()
        return lambda labels: wanted <= labels.items()
    return _all(map(_compiled, requirements))


def _all(predicates: Iterable[Predicate]) -> Predicate:
    match tuple(predicates):
        case ():
            return lambda labels: True
        case (only,):
            return only
        case (first, second):
            return lambda labels: first(labels) and second(labels)
        case several:
            return lambda labels: all(predicate(labels) for predicate in several)


def _compiled(requirement: Requirement) -> Predicate:
    key, operator, values = requirement
    match operator:
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case "=" | "==":
            (value,) = values
            return lambda labels: labels.get(key) == value
        case "!=":
            (value,) = values
            return lambda labels: labels.get(key) != value
        case "in":
            wanted = frozenset(values)
            return lambda labels: labels.get(key) in wanted
        case "notin":
            unwanted = frozenset(values)
            return lambda labels: labels.get(key) not in unwanted
        case "gt":
            bound = int(values[0])
            return lambda labels: (number := _integer(labels.get(key))) is not None and number > bound
        case _:
            bound = int(values[0])
            return lambda labels: (number := _integer(labels.get(key))) is not None and number < bound


def _integer(text: str | None) -> int | None:
    if text is None or not re.fullmatch("[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


EVERYTHING = LabelSelector(())
NOTHING = LabelSelector((), nothing=True)


_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_BINARY = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})


def parse_label_selector(text: str) -> LabelSelector:
    """
    Return the selector of a query parameter.

    Raises BadRequest with kube-apiserver's message for an invalid one.
    """
    if not text:
        return EVERYTHING
    try:
        requirements = _LabelParser(text).requirements()
    except _InvalidSelector as invalid:
        raise BadRequest(str(invalid)) from None
    return LabelSelector(tuple(sorted(requirements, key=lambda one: one.key)))


class _InvalidSelector(Exception):
    """A selector is invalid; the message is kube-apiserver's."""


class _LabelParser:
    """Parses requirements token by token; the end is an empty token."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            ahead = self._peek()
            if not ahead:
                return found
            if ahead != "!" and ahead in _SYMBOLS:
                raise _InvalidSelector(f"found '{ahead}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except _InvalidSelector as invalid:
                raise _InvalidSelector(f"unable to parse requirement: {invalid}") from None
            token = self._take()
            if not token:
                return found
            if token != ",":
                raise _InvalidSelector(f"found '{token}', expected: ',' or 'end of string'")
            ahead = self._peek()
            if not ahead or (ahead != "!" and ahead in _SYMBOLS):
                raise _InvalidSelector(f"found '{ahead}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        token = self._take()
        absent = token == "!"
        if absent:
            token = self._take()
        if not token or token in _SYMBOLS:
            raise _InvalidSelector(f"found '{token}', expected: identifier")
        key = token
        if errors := names.qualified(key):
            raise _InvalidSelector(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(errors)}")
        if absent:
            return Requirement(key, "!")
        if self._peek() in {"", ","}:
            return Requirement(key, "exists")
        written = self._take()
        operator = _BINARY.get(written)
        if operator is None:
            raise _InvalidSelector(f"found '{written}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in {"in", "notin"} else (self._value(),)
        return requirement(key, operator, values)

    def _values(self) -> tuple[str, ...]:
        token = self._take()
        if token != "(":
            raise _InvalidSelector(f"found '{token}' expected: '('")
        ahead = self._peek()
        if ahead == ")":
            self._take()
            return ("",)
        if ahead != "," and (not ahead or ahead in _SYMBOLS):
            raise _InvalidSelector(f"found '{ahead}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            token = self._take()
            if token == ",":
                if not values:
                    values.add("")
                if self._peek() == ")":
                    values.add("")
                    break
                if self._peek() == ",":
                    values.add("")
            elif token and token not in _SYMBOLS:
                values.add(token)
                after = self._peek()
                if after == ")":
                    break
                if after != ",":
                    raise _InvalidSelector(f"found '{after}', expected: ',' or ')'")
            else:
                raise _InvalidSelector(f"found '{token}', expected: ',', or identifier")
        self._take()
        return tuple(sorted(values))

    def _value(self) -> str:
        if self._peek() in {"", ","}:
            return ""
        token = self._take()
        if token in _SYMBOLS:
            raise _InvalidSelector(f"found '{token}', expected: identifier")
        return token

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


def _tokens(text: str) -> list[str]:
    # As in apimachinery's lexer, a NUL ends the text.
    return _TOKEN.findall(text.partition("\0")[0])


def requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    """
    Return a requirement after validation of its key and values.

    Raises _InvalidSelector with all that is wrong, as field errors.
    """
    found: list[str] = []
    if errors := names.qualified(key):
        found.append(f"key: Invalid value: {quoted(key)}: {'; '.join(errors)}")
    match operator:
        case "in" | "notin":
            if not values:
                found.append(
                    "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                )
        case "exists" | "!":
            if values:
                rule = "values set must be empty for exists and does not exist"
                found.append(f"values: Invalid value: {shown(list(values))}: {rule}")
        case "gt" | "lt":
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            found += (
                f"values[{index}]: Invalid value: {quoted(value)}: {rule}"
                for index, value in enumerate(values)
                if _integer(value) is None
            )
    for index, value in enumerate(values):
        if errors := names.label_value(value):
            found.append(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(errors)}")
    if found:
        raise _InvalidSelector(found[0] if len(found) == 1 else f"[{', '.join(found)}]")
    return Requirement(key, operator, tuple(values))


_OBJECT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """
    Return the selector of a LabelSelector object: absent matches nothing, empty matches everything.

    Raises BadRequest where it is not valid.
    """
    if selector is None:
        return NOTHING
    requirements: list[Requirement] = []
    try:
        for key, value in (selector.get("matchLabels") or {}).items():
            requirements.append(requirement(key, "=", (value,)))
        for expression in selector.get("matchExpressions") or ():
            written = expression.get("operator") or ""
            operator = _OBJECT_OPERATORS.get(written)
            if operator is None:
                raise _InvalidSelector(f"{quoted(written)} is not a valid label selector operator")
            requirements.append(
                requirement(expression.get("key") or "", operator, expression.get("values") or ())
            )
    except _InvalidSelector as invalid:
        raise BadRequest(str(invalid)) from None
    return LabelSelector(tuple(sorted(requirements, key=lambda one: one.key)))


def from_labels(labels: Labels | None) -> LabelSelector:
    """Return a selector for exactly these values, as the map of a Service; an empty map matches everything."""
    return LabelSelector(
        tuple(Requirement(key, "=", (value,)) for key, value in sorted((labels or {}).items()))
    )
