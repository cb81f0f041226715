"""
Compiles the status of a definition: the author's fields, and the schema that their types imply.

Fields are evaluated as far as there are data: one without is absent, and so is an object without
any field. A list ends before the first element without data, because positions have a meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import takewhile
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.cel.schema import Declared
from lamina.cel.types import DYN, Kind, ObjectType, Type
from lamina.cel.values import OMITTED
from lamina.graph.conditions import compile_conditions
from lamina.graph.expressions import (
    LANGUAGE,
    Expression,
    check_does_not_omit,
    check_references,
    declaring,
)
from lamina.graph.fields import WrittenField, fields_without_schema
from lamina.graph.outcomes import UnresolvedError
from lamina.graph.problems import problem
from lamina.graph.rendering import Field, Variables, compiled_field, renderer
from lamina.objects.paths import Path
from lamina.objects.types import Made, Obj

WHERE = "spec.schema.status"
Gather: TypeAlias = Callable[[Variables, list[UnresolvedError]], Any]
"""Returns a value as far as it can be evaluated, and adds what failed to a list."""

_ANYTHING: Made = {"x-kubernetes-preserve-unknown-fields": True}
_PRIMITIVES: Mapping[Kind, Made] = {
    Kind.BOOL: {"type": "boolean"},
    Kind.INT: {"type": "integer"},
    Kind.UINT: {"type": "integer"},
    Kind.DOUBLE: {"type": "number"},
    Kind.STRING: {"type": "string"},
    Kind.BYTES: {"type": "string", "format": "byte"},
    Kind.TIMESTAMP: {"type": "string", "format": "date-time"},
}


class CompiledStatus(Struct, frozen=True):
    """The schema of the author's status fields, what evaluates them, and the author's conditions."""

    schema: Made
    gather: Gather
    conditions: tuple[Expression, ...]


def compile_status(stated: Obj, variables: Mapping[str, Declared]) -> CompiledStatus:
    """Return the compiled status of a definition; raises GraphError."""
    conditions = compile_conditions(stated.get("conditions"), variables)
    stated = {name: value for name, value in stated.items() if name != "conditions"}
    found, plain = fields_without_schema(stated, WHERE)
    if plain:
        message = f"status fields without expressions are not supported: [{', '.join(plain)}]"
        raise problem(f"{WHERE}.{plain[0]}", message, "a field is a value that an expression computes")
    environment = declaring(LANGUAGE, variables)
    fields: dict[Path, Field] = {}
    for field in found:
        _check_references(field, variables)
        where = f'status field "{field.shown}"'
        fields[field.path] = compiled_field(field, environment, variables, DYN, where)
    # The controller's own `state` is in the same place.
    own = _without_empty({name: value for name, value in stated.items() if name != "state"})
    return CompiledStatus(_schema(own, fields, ()), _gather(own, fields, ()), conditions)


def _without_empty(stated: Any) -> Any:
    """Return a tree without the objects and lists that have no field with an expression, as for upstream."""
    if isinstance(stated, Mapping):
        inner = {name: _without_empty(value) for name, value in stated.items()}
        return {name: value for name, value in inner.items() if value not in ({}, [])}
    if isinstance(stated, list):
        return [value for value in map(_without_empty, stated) if value not in ({}, [])]
    return stated


def schema_of(type_: Type, *, in_object: bool = False) -> Made:
    """
    Return the schema of the values of a type.

    As in upstream's kinds, a timestamp in an object may be anything: a narrower schema would
    be a breaking change of a kind that upstream has generated.
    """
    if isinstance(type_, ObjectType):
        fields = type_.fields.items()
        properties = {field.key or name: schema_of(field.type, in_object=True) for name, field in fields}
        return {"type": "object", "properties": properties, **(_ANYTHING if type_.preserves_unknown else {})}
    match type_.kind:
        case Kind.LIST:
            return {"type": "array", "items": schema_of(type_.params[0], in_object=in_object)}
        case Kind.MAP:
            return {"type": "object", "additionalProperties": schema_of(type_.params[1], in_object=in_object)}
        case Kind.TIMESTAMP if in_object:
            return dict(_ANYTHING)
        case kind:
            return dict(_PRIMITIVES.get(kind, _ANYTHING))


def _check_references(field: WrittenField, variables: Collection[str]) -> None:
    for written in field.expressions:
        check_does_not_omit(written)
        check_references(written, variables, f'status field "{field.shown}": ')
    if not any(written.variables for written in field.expressions):
        message = f"instance status field must refer to a resource or schema: status.{field.shown}"
        raise next(field.expressions).problem(message)


def _schema(value: Any, fields: Mapping[Path, Field], path: Path) -> Made:
    if path in fields:
        return schema_of(fields[path].type)
    if isinstance(value, Mapping):
        properties = {name: _schema(inner, fields, (*path, name)) for name, inner in value.items()}
        return {"type": "object", "properties": properties}
    merged: Made = {}
    for index, inner in enumerate(value):
        merged = _merged(merged, _schema(inner, fields, (*path, index)))
    return {"type": "array", "items": merged}


def _merged(one: Made, other: Made) -> Made:
    """Return a schema for values of both."""
    if not one or one == other:
        return other
    if "properties" in one and "properties" in other:
        both: Made = dict(one["properties"])
        for name, inner in other["properties"].items():
            both[name] = _merged(both.get(name, {}), inner)
        return {**one, **other, "properties": both}
    return _ANYTHING


def _gather(value: Any, fields: Mapping[Path, Field], path: Path) -> Gather:
    if path in fields:
        return _leaf(value, fields, path)
    if isinstance(value, Mapping):
        inner = {name: _gather(part, fields, (*path, name)) for name, part in value.items()}

        def gather_object(variables: Variables, failures: list[UnresolvedError]) -> Any:
            made = {name: one(variables, failures) for name, one in inner.items()}
            made = {name: one for name, one in made.items() if one is not OMITTED}
            return made if made or not path else OMITTED

        return gather_object
    items = [_gather(part, fields, (*path, index)) for index, part in enumerate(value)]

    def gather_list(variables: Variables, failures: list[UnresolvedError]) -> Any:
        made = [one(variables, failures) for one in items]
        known = list(takewhile(lambda one: one is not OMITTED, made))
        return known or OMITTED

    return gather_list


def _leaf(value: Any, fields: Mapping[Path, Field], path: Path) -> Gather:
    render = renderer(value, fields, path)

    def gather(variables: Variables, failures: list[UnresolvedError]) -> Any:
        try:
            return render(variables)
        except UnresolvedError as error:
            if not error.is_pending:
                failures.append(error)
            return OMITTED

    return gather
