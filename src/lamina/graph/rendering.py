"""
Compiles the fields of templates, and renders these: each is a function of the variables, made once.

A field that holds one expression has its value as JSON, and one among text is part of the
text. Fields and elements that `omit()` are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lamina.cel.declarations import Environment
from lamina.cel.errors import EvaluationError
from lamina.cel.export import to_json
from lamina.cel.schema import Declared
from lamina.cel.types import STRING, Kind, Type
from lamina.cel.values import OMITTED, type_of
from lamina.graph.expressions import Expression, Written, compiled
from lamina.graph.fields import WrittenField
from lamina.graph.graph import GraphError
from lamina.graph.outcomes import UnresolvedError, evaluated, unresolved
from lamina.graph.problems import short
from lamina.graph.types import mismatch
from lamina.objects.paths import Path

Variables: TypeAlias = Mapping[str, Any]
Render: TypeAlias = Callable[[Variables], Any]

_CONVERSIONS: Final = {Kind.STRING: "string", Kind.INT: "int", Kind.DOUBLE: "double"}


class Field(Struct, frozen=True):
    """A field with its compiled expressions, and the type of its value."""

    path: Path
    shown: str
    parts: tuple[str | Expression, ...]
    is_template: bool
    type: Type


def compiled_field(
    field: WrittenField,
    environment: Environment,
    variables: Mapping[str, Declared],
    expected: Type,
    where: str,
) -> Field:
    """Return a compiled field; raises GraphError where its type does not fit. `where` names it in messages."""
    parts: list[str | Expression] = []
    for part in field.parts:
        if isinstance(part, Written):
            expression = compiled(part, environment, variables)
            _check_type(part, expression.type, STRING if field.is_template else expected, where)
            if field.is_template and expression.type.is_optional:
                detail = "an optional among text has to be unwrapped"
                raise _type_problem(part, expression.type, STRING, where, detail)
            parts.append(expression)
        else:
            parts.append(part)
    type_ = STRING
    if field.is_template:
        _check_type(next(field.expressions), STRING, expected, where)
    else:
        type_ = next(part.type for part in parts if isinstance(part, Expression))
    return Field(field.path, field.shown, tuple(parts), field.is_template, type_)


def _check_type(written: Written, output: Type, expected: Type, where: str) -> None:
    if detail := mismatch(output, expected):
        raise _type_problem(written, output, expected, where, detail)


def _type_problem(written: Written, output: Type, expected: Type, where: str, detail: str) -> GraphError:
    message = (
        f'type mismatch in {where}: expression "{short(written.text)}" '
        f'returns type "{output}" but expected "{expected}": {detail}'
    )
    remedy = ""
    if output.is_optional:
        remedy = "give it a value where it has none, with .orValue()"
    elif expected.kind in _CONVERSIONS and output.kind in (*_CONVERSIONS, Kind.BOOL):
        remedy = f"convert it with {_CONVERSIONS[expected.kind]}()"
    return written.problem(message, "", remedy)


def renderer(value: Any, fields: Mapping[Path, Field], path: Path = ()) -> Render:
    """Return the function that renders a value at a path; raises UnresolvedError when it is called."""
    field = fields.get(path)
    if field is not None:
        return _text(field) if field.is_template else _value(field)
    if isinstance(value, Mapping):
        return _object({name: renderer(inner, fields, (*path, name)) for name, inner in value.items()})
    if isinstance(value, list):
        return _list([renderer(inner, fields, (*path, index)) for index, inner in enumerate(value)])
    return lambda variables: value


def as_json(value: Any, type_: Type) -> Any:
    """
    Return the value of an expression as JSON; raises EvaluationError where it has no such form.

    Bytes have to be encoded by the expression, except those in maps: the data of a
    Secret are copied as they are.
    """
    if value is OMITTED:
        return OMITTED
    return to_json(value, encode_bytes=type_.kind is Kind.MAP)


def _object(fields: Mapping[str, Render]) -> Render:
    items = tuple(fields.items())

    def render(variables: Variables) -> Any:
        return {name: value for name, inner in items if (value := inner(variables)) is not OMITTED}

    return render


def _list(items: list[Render]) -> Render:
    def render(variables: Variables) -> Any:
        return [value for inner in items if (value := inner(variables)) is not OMITTED]

    return render


def _value(field: Field) -> Render:
    (expression,) = field.parts
    assert isinstance(expression, Expression)
    type_, what = expression.type, _what(field)

    def render(variables: Variables) -> Any:
        value = evaluated(expression, variables, what)
        if value.__class__ is str:
            return value
        try:
            return as_json(value, type_)
        except EvaluationError as error:
            raise unresolved(expression, error, what) from None

    return render


def _text(field: Field) -> Render:
    what = _what(field)

    def render(variables: Variables) -> Any:
        return "".join(
            part if isinstance(part, str) else _part(part, evaluated(part, variables, what), what)
            for part in field.parts
        )

    return render


def _part(expression: Expression, value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    shown = f'{what} "{short(expression.text)}"'
    raise UnresolvedError(f"{shown} must be a string among text, not {type_of(value)}: use string()")


def _what(field: Field) -> str:
    return f'path "{field.shown}": expression'
