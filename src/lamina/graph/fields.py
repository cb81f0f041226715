"""
The fields of a template that have expressions, and the check of those that have none.

A field without expressions is checked against the schema of its kind for its type, and a
name for whether the schema has it. Everything else is left to the API server, which knows
what is required and what is valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.errors import SpecError
from lamina.graph.expressions import Written, parsed
from lamina.graph.language.template_strings import Parts, extract
from lamina.graph.problems import problem
from lamina.objects.paths import Path
from lamina.objects.types import Obj

_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_ANY = "any"
_ANYTHING: Obj = {_UNKNOWN: True}


class WrittenField(Struct, frozen=True):
    """
    A field with expressions.

    `shown` is its path within the template. A template has several parts, or one
    that is not the whole text.
    """

    path: Path
    shown: str
    parts: tuple[str | Written, ...]
    is_template: bool

    @property
    def expressions(self) -> Iterator[Written]:
        return (part for part in self.parts if isinstance(part, Written))


def shown(path: Path) -> str:
    """Return a path as messages write it: `a.b[0]["dotted.key"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not step or "." in step:
            text += f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text


def fields_of(value: Any, schema: Obj, where: str, path: Path = ()) -> list[WrittenField]:
    """Return the fields with expressions in a value, checked by its schema; raises GraphError."""
    return list(_Fields(where).read(value, schema, path))


def fields_without_schema(value: Any, where: str, path: Path = ()) -> tuple[list[WrittenField], list[str]]:
    """Return the fields with expressions in a value of any form, and the paths of all others."""
    reader = _Fields(where)
    return list(reader.read_anything(value, path)), reader.plain


def standalone(text: Any, field: str) -> str:
    """Return the text of a value that is one expression; raises GraphError where it is anything else."""
    found = _extracted(text, field).standalone if isinstance(text, str) else None
    if found is None:
        remedy = "write one ${…} with nothing before or behind it, also no line end (|- in place of |)"
        raise problem(field, f"only standalone expressions are allowed, not {text!r}", remedy)
    return found.source


def _extracted(text: str, field: str) -> Parts:
    try:
        return extract(text)
    except SpecError as wrong:
        raise problem(field, str(wrong)) from None


class _Fields:
    """Reads one template; `where` is the field that it is in."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.plain: list[str] = []

    def read(self, value: Any, schema: Obj, path: Path) -> Iterator[WrittenField]:
        if isinstance(value, str):
            yield from self._text(value, schema, path)
        elif schema.get(_UNKNOWN):
            yield from self.read_anything(value, path)
        elif isinstance(value, Mapping):
            yield from self._object(value, schema, path)
        elif isinstance(value, list):
            yield from self._array(value, schema, path)
        elif value is not None:
            self._scalar(value, schema, path)

    def read_anything(self, value: Any, path: Path) -> Iterator[WrittenField]:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                yield from self.read_anything(inner, (*path, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from self.read_anything(inner, (*path, index))
        else:
            found = self._field(value, path) if isinstance(value, str) else None
            if found is None:
                self.plain.append(shown(path))
            else:
                yield found

    def _object(self, value: Mapping[str, Any], schema: Obj, path: Path) -> Iterator[WrittenField]:
        additional = schema.get("additionalProperties")
        if not additional:
            self._expect(schema, ("object",), "object", path)
        properties: Obj = schema.get("properties") or {}
        for name, inner in value.items():
            known = properties.get(name)
            if known is None and additional:
                known = additional if isinstance(additional, Mapping) else _ANYTHING
            if known is None:
                if _is_untyped(schema):
                    known = _ANYTHING
                else:
                    raise self._unknown_field(name, properties, (*path, name))
            yield from self.read(inner, known, (*path, name))

    def _unknown_field(self, name: str, properties: Obj, path: Path) -> Exception:
        message = f"error getting field schema for path {shown(path)}: schema not found for field {name}"
        known = ", ".join(sorted(properties)[:40])
        return problem(f"{self._where}.{shown(path)}", message, f"known here: {known}" if known else "")

    def _array(self, value: Sequence[Any], schema: Obj, path: Path) -> Iterator[WrittenField]:
        self._expect(schema, ("array",), "array", path)
        items = schema.get("items") or _ANYTHING
        for index, inner in enumerate(value):
            yield from self.read(inner, items, (*path, index))

    def _text(self, value: str, schema: Obj, path: Path) -> Iterator[WrittenField]:
        found = self._field(value, path)
        if found is None or found.is_template:
            self._expect(schema, ("string",), "string", path)
        if found is not None:
            yield found

    def _scalar(self, value: Any, schema: Obj, path: Path) -> None:
        if isinstance(value, bool):
            self._expect(schema, ("boolean",), "boolean", path)
        elif isinstance(value, int) or value.is_integer():
            self._expect(schema, ("integer", "number"), "integer", path)
        else:
            self._expect(schema, ("number",), "number", path)

    def _expect(self, schema: Obj, accepting: Sequence[str], got: str, path: Path) -> None:
        expected = _types(schema)
        if _ANY not in expected and not any(one in expected for one in accepting):
            message = f"expected {' or '.join(expected)} type for path {shown(path)}, got {got}"
            raise problem(f"{self._where}.{shown(path)}", message)

    def _field(self, text: str, path: Path) -> WrittenField | None:
        field = f"{self._where}.{shown(path)}" if path else self._where
        found = _extracted(text, field)
        if found.is_plain:
            return None
        parts = tuple(part if isinstance(part, str) else parsed(part.source, field) for part in found.parts)
        return WrittenField(path, shown(path), parts, found.standalone is None)


def _types(schema: Obj) -> tuple[str, ...]:
    """Return the types that values of a schema may have; `any` where there is no limit."""
    if schema.get(_UNKNOWN):
        return (_ANY,)
    if schema.get(_INT_OR_STRING) or schema.get("format") == "int-or-string":
        return ("string", "integer")
    for choices in (schema.get("oneOf"), schema.get("anyOf")):
        if found := tuple(_choices(choices or ())):
            return found
    type_ = schema.get("type")
    return (type_,) if type_ else (_ANY,)


def _choices(choices: Sequence[Obj]) -> dict[str, None]:
    found: dict[str, None] = {}
    for one in choices:
        if one.get("required") or one.get("not"):
            found["object"] = None
        if one.get("type"):
            found[one["type"]] = None
    return found


def _is_untyped(schema: Obj) -> bool:
    return _types(schema) == (_ANY,)
