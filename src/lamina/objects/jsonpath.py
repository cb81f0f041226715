"""
kubectl's JSONPath, as printer columns of a CRD and feedback rules use it.

A path is a chain of steps; each step maps a list of values to those it
selects in them:

    .name  ['na\\.me']           a field; a backslash takes the next character as it is
    [2]  [-1]  [0:3]  [::2]      an element, some elements
    [*]  .*                      all elements, all fields
    [?(@.type=="Ready")]         the elements for which a comparison holds
    [?(@.message)]               the elements in which a path selects something
    [0,1]  ['a','b']             several at once
    ..name                       a field, at any depth

A missing field selects nothing. A step that does not fit a value (an index
into a string, an index out of bounds) is an error, and the table cell is empty.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

Values = list[Any]
Step = Callable[[Values], Values]

_ENDS_NAME: Final = frozenset(" \t\r\n.,[]$@{}")
_QUOTED_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PathError(ValueError):
    """A path that cannot be parsed, or that does not fit a value."""


class JsonPath:
    """A path, parsed once and applied to many objects."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str) -> None:
        """Parse a path as a CRD holds it, without braces. Raises PathError."""
        self.text = text
        self._steps = _Parser(text).steps()

    def find(self, value: Any) -> Values:
        """Return the selected values in order. Raises PathError where a step does not fit."""
        return _walk(self._steps, [value])


def column_path_errors(text: str) -> list[str]:
    """Return kube-apiserver's errors for the path of a printer column; it checks only the first character."""
    if not text:
        return ["must not be empty"]
    return [] if text.startswith(".") else ["must be a simple json path starting with ."]


def _walk(steps: list[Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


class _Parser:
    """Parses the inside of one pair of braces."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        descended = False
        while self._at < len(self._text):
            rest = self._text[self._at :]
            if rest[0] == "}":
                # kube-apiserver puts braces around a path. One inside ends it, and the rest is another path.
                break
            if rest.startswith("[?("):
                steps.append(self._filter())
            elif rest.startswith(".."):
                if descended:
                    raise PathError("invalid multiple recursive descent")
                self._at += 2
                steps.append(_descend)
                descended = True
                if rest[2:3] == "_" or rest[2:3].isalnum():
                    steps.append(self._field())
                    descended = False
                continue
            else:
                if step := self._step(rest[0]):
                    steps += step
            descended = False
        return steps

    def _step(self, first: str) -> list[Step]:
        if first in "\r\n":
            raise PathError("unclosed action")
        if first in "@$ ":
            self._at += 1
            return []
        if first == "[":
            return self._brackets()
        if first in "\"'":
            return [_constant(self._quoted(first))]
        if first == ".":
            self._at += 1
            return [self._field()]
        if first in "+-" or first.isdigit():
            return [_constant(self._number())]
        if first == "_" or first.isalpha():
            return [self._word()]
        raise PathError(f"unrecognized character in action: {first}")

    def _field(self) -> Step:
        name = []
        while self._at < len(self._text) and (letter := self._text[self._at]) not in _ENDS_NAME:
            self._at += 1
            if letter == "\\":
                letter = self._text[self._at : self._at + 1]
                self._at += 1
            name.append(letter)
        field = "".join(name)
        return _children if field == "*" else _member(field)

    def _brackets(self) -> list[Step]:
        end = self._text.find("]", self._at)
        if end < 0 or "\n" in self._text[self._at : end]:
            raise PathError("unterminated array")
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            return [_union([_Parser(f"[{part.strip(' ')}]").steps() for part in parts])]
        if found := _QUOTED_KEY.fullmatch(inside):
            return _Parser(f".{found.group(1)}").steps()
        return [_elements(":" if inside == "*" else inside)]

    def _filter(self) -> Step:
        start = self._at + len("[?(")
        quote, closed = "", False
        for at in range(start, len(self._text)):
            letter = self._text[at]
            if letter == "\n":
                break
            if letter in "\"'":
                if not quote:
                    quote = letter
                elif letter == quote and self._text[at - 1] != "\\":
                    closed = True
            elif letter == ")" and bool(quote) == closed:
                if self._text[at + 1 : at + 2] != "]":
                    raise PathError("unclosed array expect ]")
                self._at = at + 2
                return _filtered(self._text[start:at])
        raise PathError("unterminated filter")

    def _quoted(self, quote: str) -> str:
        start = self._at + 1
        at = self._text.find(quote, start)
        while at > 0 and self._text[at - 1] == "\\":
            at = self._text.find(quote, at + 1)
        if at < 0 or "\n" in self._text[start:at]:
            raise PathError("unterminated quoted string")
        self._at = at + 1
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), self._text[start:at])

    def _number(self) -> int | float:
        found = re.compile(r"[+-]?[0-9.]*").match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        try:
            return int(found.group())
        except ValueError:
            try:
                return float(found.group())
            except ValueError:
                raise PathError(f"cannot parse number {found.group()}") from None

    def _word(self) -> Step:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_NAME:
            self._at += 1
        word = self._text[start : self._at]
        if word in {"true", "false"}:
            return _constant(word == "true")
        return _failing(f"unrecognized identifier {word}")


def _constant(value: Any) -> Step:
    return lambda values: [value for _ in values]


def _failing(why: str) -> Step:
    def step(values: Values) -> Values:
        raise PathError(why)

    return step


def _member(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(values: Values) -> Values:
    return [child for value in values for child in _inside(value)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _descend(values: Values) -> Values:
    return list(_below(values))


def _below(values: Values) -> Iterator[Any]:
    for value in values:
        if children := _inside(value):
            yield value
            yield from _below(children)


def _union(branches: list[list[Step]]) -> Step:
    return lambda values: [found for steps in branches for found in _walk(steps, values)]


def _elements(text: str) -> Step:
    found = _SLICE.fullmatch(text)
    if found is None:
        raise PathError(f"invalid array index {text}")
    first, last, step = (_index(part) for part in found.groups())
    single = found.group(2) is None
    if single:
        last = (first or 0) + 1

    def choose(values: Values) -> Values:
        chosen: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise PathError(f"{type(value).__name__} is not array or slice")
            length = len(value)
            start = (first or 0) + (length if (first or 0) < 0 else 0)
            end = length if last is None else last
            if end < 0 or (end == 0 and single):
                end += length
            if start == end:
                return chosen
            if not 0 <= start < length or not 0 <= end <= length or start > end:
                raise PathError(f"array index out of bounds: index {start}, length {length}")
            if step is not None and step <= 0:
                raise PathError("step must be > 0")
            chosen += value[start : end : step or 1]
        return chosen

    return choose


def _index(part: str | None) -> int | None:
    digits = (part or "").lstrip(":")
    if not digits:
        return None
    if digits == "-":
        raise PathError("array index - is not a number")
    return int(digits)


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _filtered(text: str) -> Step:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        exists = _Parser(text).steps()
        return lambda values: [one for one in _listed(values) if _has(exists, one)]
    left, right = _Parser(found.group(1)).steps(), _Parser(found.group(3)).steps()
    name = found.group(2)
    if name not in _OPERATORS:
        return _failing(f"unrecognized filter operator {name}")
    compare = _OPERATORS[name]

    def holds(one: Any) -> bool:
        sides = _walk(left, [one]), _walk(right, [one])
        if any(len(side) > 1 for side in sides):
            raise PathError("can only compare one element at a time")
        if not all(sides):
            return False
        (lesser,), (greater,) = sides
        if type(lesser) is not type(greater) or not isinstance(lesser, str | int | float):
            raise PathError("incompatible types for comparison")
        if isinstance(lesser, bool) and name not in {"==", "!="}:
            raise PathError("invalid type for comparison")
        return compare(lesser, greater)

    return lambda values: [one for one in _listed(values) if holds(one)]


def _has(steps: list[Step], value: Any) -> bool:
    try:
        return bool(_walk(steps, [value]))
    except PathError:
        return False


def _listed(values: Values) -> Iterator[Any]:
    for value in values:
        if not isinstance(value, list):
            raise PathError("is not array or slice and cannot be filtered")
        yield from value
