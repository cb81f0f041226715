"""
Adapts data to the values of expressions, by its schema.

A nullable field that is null is absent for expressions, and lists may be sets or
associative. Objects are adapted before expressions are evaluated on them; most types
need no adapter, and have None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from lamina.cel.typed_lists import listed
from lamina.cel.types import Kind, ListType, ObjectType, Type

Adapter: TypeAlias = Callable[[Any], Any]


def adapter_of(type_: Type) -> Adapter | None:
    """Return the adapter for data of a type, None where it needs none."""
    if isinstance(type_, ObjectType):
        return _object(type_)
    if type_.kind is Kind.LIST:
        return _list(type_)
    if type_.kind is Kind.MAP:
        return _map(type_)
    return None


def _object(type_: ObjectType) -> Adapter | None:
    fields = {field.key or name: field for name, field in type_.fields.items()}
    nullable = [key for key, field in fields.items() if field.nullable]
    inner = {key: adapter for key, field in fields.items() if (adapter := adapter_of(field.type)) is not None}
    if not nullable and not inner:
        return None

    def adapt(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        adapted = dict(value)
        for key in nullable:
            if key in adapted and adapted[key] is None:
                del adapted[key]
        for key, adapter in inner.items():
            if key in adapted:
                adapted[key] = adapter(adapted[key])
        return adapted

    return adapt


def _list(type_: Type) -> Adapter | None:
    inner = adapter_of(type_.params[0])
    if inner is None and not isinstance(type_, ListType):
        return None

    def adapt(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        adapted = value if inner is None else [inner(item) for item in value]
        return listed(adapted, type_) if isinstance(type_, ListType) else adapted

    return adapt


def _map(type_: Type) -> Adapter | None:
    inner = adapter_of(type_.params[1])
    if inner is None:
        return None

    def adapt(value: Any) -> Any:
        return {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value

    return adapt
