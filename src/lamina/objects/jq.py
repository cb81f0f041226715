"""
jq path expressions: the subset of jq that selects fields.

    .a.b  ."a b"  .["a"]  .[0]  .[-1]     fields and items
    .[]  ..                               all items, everything at any depth
    |  ,  ( )                             pipe, union, grouping
    ?                                     suppresses errors
    select(…)                             values that satisfy a condition
    ==  !=  <  <=  >  >=  and  or  not    conditions
    has("a")  startswith("a")  endswith("a")  contains("a")  length  type
    "text"  1.5  true  false  null        literals

The rest of jq computes new values instead of selecting fields, and is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from lamina.objects.paths import Path


class JqError(ValueError):
    """An expression that cannot be parsed, or that fails on a value."""


class _Found(NamedTuple):
    """A value and its path; None for a value that was computed."""

    path: Path | None
    value: Any


_Filter: TypeAlias = Callable[[_Found], Iterator[_Found]]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>\.\.|==|!=|<=|>=|[.,|()\[\]?<>])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_LITERALS = {"true": True, "false": False, "null": None}
_ORDER: tuple[tuple[type, ...], ...] = ((type(None),), (bool,), (int, float), (str,), (list,), (dict,))


def select_paths(text: str, value: Any) -> list[Path]:
    """Return the paths an expression selects, in order; raises JqError where it cannot be parsed or fails."""
    found = []
    for one in _Parser(text).whole()(_Found((), value)):
        if one.path is None:
            raise JqError("the expression computes values instead of selecting fields")
        found.append(one.path)
    return found


class _Parser:
    """A recursive-descent parser; one method for each level of precedence, the lowest first."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def whole(self) -> _Filter:
        made = self._pipe()
        if self._ahead[0] != "end":
            raise JqError(f"unexpected {self._ahead[1]!r}")
        return made

    @property
    def _ahead(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> str:
        """Consume and return the next token if it is one of these; otherwise return an empty text."""
        kind, text = self._ahead
        if kind in ("sign", "word") and text in signs:
            self._at += 1
            return text
        return ""

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise JqError(f"expected {sign!r}, found {self._ahead[1] or 'the end'!r}")

    def _pipe(self) -> _Filter:
        made = self._comma()
        while self._take("|"):
            made = _pipe_filter(made, self._comma())
        return made

    def _comma(self) -> _Filter:
        made = self._either()
        while self._take(","):
            made = _union(made, self._either())
        return made

    def _either(self) -> _Filter:
        made = self._both()
        while self._take("or"):
            made = _combined(made, self._both(), lambda one, two: _is_truthy(one) or _is_truthy(two))
        return made

    def _both(self) -> _Filter:
        made = self._compared()
        while self._take("and"):
            made = _combined(made, self._compared(), lambda one, two: _is_truthy(one) and _is_truthy(two))
        return made

    def _compared(self) -> _Filter:
        made = self._postfix()
        if sign := self._take("==", "!=", "<", "<=", ">", ">="):
            return _combined(made, self._postfix(), _COMPARISONS[sign])
        return made

    def _postfix(self) -> _Filter:
        made = self._term()
        while True:
            if self._take("?"):
                made = _optional(made)
            elif self._ahead == ("sign", "["):
                made = _pipe_filter(made, self._brackets())
            elif self._take("."):
                made = _pipe_filter(made, self._after_dot())
            else:
                return made

    def _term(self) -> _Filter:
        kind, text = self._ahead
        if self._take("("):
            made = self._pipe()
            self._expect(")")
            return made
        if self._take(".."):
            return _everything
        if self._take("."):
            if self._ahead[0] in ("word", "text") or self._ahead == ("sign", "["):
                return self._after_dot()
            return _identity
        if kind in ("text", "number"):
            self._at += 1
            return _constant(json.loads(text))
        if kind == "word":
            self._at += 1
            return _constant(_LITERALS[text]) if text in _LITERALS else self._call(text)
        raise JqError(f"unexpected {text or 'end'!r}")

    def _after_dot(self) -> _Filter:
        kind, text = self._ahead
        if kind in ("word", "text"):
            self._at += 1
            return _member(text if kind == "word" else json.loads(text))
        return self._brackets()

    def _brackets(self) -> _Filter:
        self._expect("[")
        if self._take("]"):
            return _each
        kind, text = self._ahead
        if kind not in ("text", "number"):
            raise JqError(f"expected a name or a number, found {text or 'the end'!r}")
        self._at += 1
        self._expect("]")
        return _member(json.loads(text))

    def _call(self, name: str) -> _Filter:
        if name in _UNARY_FUNCTIONS:
            return _computed(_UNARY_FUNCTIONS[name])
        if name not in ("select", *_BINARY_FUNCTIONS):
            raise JqError(f"{name} is not a function that selects fields")
        self._expect("(")
        given = self._pipe()
        self._expect(")")
        return _selected(given) if name == "select" else _combined(_identity, given, _BINARY_FUNCTIONS[name])


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise JqError(f"unexpected {text[at:].strip()[:1]!r}")
        assert found.lastgroup is not None
        yield found.lastgroup, found[found.lastgroup]
        if found.lastgroup == "end":
            return
        at = found.end()


# Filters


def _identity(one: _Found) -> Iterator[_Found]:
    yield one


def _constant(value: Any) -> _Filter:
    return lambda one: iter((_Found(None, value),))


def _computed(make: Callable[[Any], Any]) -> _Filter:
    return lambda one: iter((_Found(None, make(one.value)),))


def _pipe_filter(first: _Filter, second: _Filter) -> _Filter:
    return lambda one: (deeper for found in first(one) for deeper in second(found))


def _union(first: _Filter, second: _Filter) -> _Filter:
    def both(one: _Found) -> Iterator[_Found]:
        yield from first(one)
        yield from second(one)

    return both


def _combined(first: _Filter, second: _Filter, combine: Callable[[Any, Any], Any]) -> _Filter:
    def combined(one: _Found) -> Iterator[_Found]:
        for right in second(one):
            for left in first(one):
                yield _Found(None, combine(left.value, right.value))

    return combined


def _optional(inner: _Filter) -> _Filter:
    def optional(one: _Found) -> Iterator[_Found]:
        try:
            yield from inner(one)
        except JqError:
            return

    return optional


def _selected(condition: _Filter) -> _Filter:
    return lambda one: (one for answer in condition(one) if _is_truthy(answer.value))


def _below(one: _Found, step: str | int, value: Any) -> _Found:
    return _Found((*one.path, step) if one.path is not None else None, value)


def _member(key: str | int | float) -> _Filter:
    def member(one: _Found) -> Iterator[_Found]:
        value = one.value
        if value is None:
            yield _below(one, key if isinstance(key, str) else int(key), None)
        elif isinstance(key, str):
            if not isinstance(value, Mapping):
                raise JqError(f"cannot index {_type(value)} with {key!r}")
            yield _below(one, key, value.get(key))
        else:
            if not isinstance(value, list):
                raise JqError(f"cannot index {_type(value)} with a number")
            place = int(key) if key >= 0 else len(value) + int(key)
            yield _below(one, place, value[place] if 0 <= place < len(value) else None)

    return member


def _each(one: _Found) -> Iterator[_Found]:
    if isinstance(one.value, Mapping):
        for key, value in one.value.items():
            yield _below(one, key, value)
    elif isinstance(one.value, list):
        for place, value in enumerate(one.value):
            yield _below(one, place, value)
    else:
        raise JqError(f"cannot iterate over {_type(one.value)}")


def _everything(one: _Found) -> Iterator[_Found]:
    yield one
    if isinstance(one.value, Mapping | list):
        for deeper in _each(one):
            yield from _everything(deeper)


# Conditions and comparisons


def _is_truthy(value: Any) -> bool:
    return value is not None and value is not False


def _type(value: Any) -> str:
    names = ("null", "boolean", "number", "string", "array", "object")
    return names[_rank(value)]


def _rank(value: Any) -> int:
    return next(rank for rank, kind in enumerate(_ORDER) if isinstance(value, kind))


def _sorted(value: Any) -> tuple[int, str]:
    return _rank(value), json.dumps(value, sort_keys=True)


def _is_less(one: Any, two: Any) -> bool:
    if _rank(one) == _rank(two) and isinstance(one, int | float | str):
        return bool(one < two)
    return _sorted(one) < _sorted(two)


def _is_equal(one: Any, two: Any) -> bool:
    return _rank(one) == _rank(two) and bool(one == two)


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": _is_equal,
    "!=": lambda one, two: not _is_equal(one, two),
    "<": _is_less,
    ">": lambda one, two: _is_less(two, one),
    "<=": lambda one, two: not _is_less(two, one),
    ">=": lambda one, two: not _is_less(one, two),
}


def _text(what: str, compare: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def compared(one: Any, two: Any) -> bool:
        if not (isinstance(one, str) and isinstance(two, str)):
            raise JqError(f"{what} takes strings, not {_type(one)} and {_type(two)}")
        return compare(one, two)

    return compared


def _has(one: Any, key: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(key, str):
        return key in one
    if isinstance(one, list) and isinstance(key, int):
        return 0 <= key < len(one)
    raise JqError(f"cannot check whether {_type(one)} has a {_type(key)}")


def _length(value: Any) -> Any:
    if isinstance(value, str | list | Mapping):
        return len(value)
    if value is None:
        return 0
    if isinstance(value, bool):
        raise JqError("boolean has no length")
    return abs(value)


_BINARY_FUNCTIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "has": _has,
    "startswith": _text("startswith", str.startswith),
    "endswith": _text("endswith", str.endswith),
    "contains": _text("contains", lambda one, two: two in one),
}
_UNARY_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "not": lambda value: not _is_truthy(value),
    "length": _length,
    "type": _type,
}
