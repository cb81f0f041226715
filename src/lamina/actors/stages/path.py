"""
The path expressions of stages, a subset of jq as kwok uses it.

An expression is a path such as `.status.phase`, `.metadata.annotations["a/b"]`
or `.spec.containers.[].image`, and may select from a list: `.status.conditions.[]
| select( .type == "Ready" ) | .status`. It returns every value it selects, and
none for a missing field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_STEP = re.compile(
    r"""\.?(?:
        (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
      | \["(?P<key>[^"]*)"\]
      | \[(?P<index>[0-9]+)\]
      | (?P<every>\[\])
    )""",
    re.VERBOSE,
)
_SELECT = re.compile(r'select\(\s*(?P<path>\S+)\s*==\s*"(?P<value>[^"]*)"\s*\)')

_Step: TypeAlias = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; expressions with equal texts are equal."""

    text: str
    root: str
    _steps: tuple[_Step, ...] = field(compare=False)
    _fields: tuple[str, ...] | None = field(compare=False, default=None)
    """The field names of a path without indexes and selects, which is evaluated on a fast path."""

    def values(self, roots: Mapping[str, Any]) -> list[Any]:
        """Return the selected values, without nulls."""
        if self._fields is not None:
            here: Any = roots.get(self.root)
            for name in self._fields:
                # Most fields are missing in most objects: a check is cheaper than an exception.
                if here.__class__ is not dict and not isinstance(here, Mapping):
                    return []
                here = here.get(name)
            return [] if here is None else [here]
        found = [roots.get(self.root)]
        for step in self._steps:
            found = step(found)
            if not found:
                return found
        return [value for value in found if value is not None]

    @property
    def field_names(self) -> tuple[str, ...] | None:
        """Return the field names of a path without indexes and selects."""
        return self._fields

    def first(self, roots: Mapping[str, Any]) -> Any:
        """Return the first selected value, or None."""
        found = self.values(roots)
        return found[0] if found else None


def parse(text: str, roots: Iterable[str] = ()) -> Expression:
    """
    Return the expression of a text; raises ValueError for an invalid one.

    A path that begins with a dot starts at the object. One that begins with a
    name starts at one of `roots`.
    """
    root = ""
    parts = [part.strip() for part in text.split("|")]
    for name in roots:
        if parts[0] == name or parts[0].startswith((f"{name}.", f"{name}[")):
            root, parts[0] = name, parts[0].removeprefix(name)
            break
    steps: list[_Step] = []
    names: list[str] | None = []
    for number, part in enumerate(parts):
        selected = _SELECT.fullmatch(part)
        if selected:
            inner, wanted = parse(selected["path"]), selected["value"]
            steps.append(_selecting(inner, wanted))
            names = None
        elif part or (root and number == 0):
            made, passed = _path(part, text)
            steps += made
            names = [*names, *passed] if names is not None and passed is not None else None
        else:
            raise ValueError(f"{text!r} is not a path")
    return Expression(text, root, tuple(steps), tuple(names) if names is not None else None)


def _path(text: str, whole: str) -> tuple[list[_Step], list[str] | None]:
    """Return the steps of a path, and its field names if it has only those."""
    if text in ("", "."):
        return [], []
    steps: list[_Step] = []
    names: list[str] = []
    at = 0
    if not text.startswith((".", "[")):
        raise ValueError(f"{whole!r} is not a path: it begins with neither a dot nor a known name")
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f"{whole!r} is not a path: {text[at:]!r} cannot be parsed")
        at = step.end()
        if step["every"]:
            steps.append(_every)
        elif step["index"]:
            steps.append(_place(int(step["index"])))
        else:
            names.append(step["name"] or step["key"] or "")
            steps.append(_named(names[-1]))
    return steps, names if len(names) == len(steps) else None


def _named(name: str) -> _Step:
    return lambda values: [value[name] for value in values if isinstance(value, Mapping) and name in value]


def _place(index: int) -> _Step:
    return lambda values: [value[index] for value in values if isinstance(value, list) and index < len(value)]


def _every(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, list):
            found += value
        elif isinstance(value, Mapping):
            found += value.values()
    return found


def _selecting(inner: Expression, wanted: str) -> _Step:
    return lambda values: [value for value in values if wanted in map(str, inner.values({"": value}))]
