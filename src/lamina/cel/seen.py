"""
Data as expressions see it.

A schema says more about data than its types: a field that is null is absent, and
lists may be sets, or have keys. Whoever evaluates expressions on an object shows
it to them as `seen` makes it; most types need nothing done, and get None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from lamina.cel.listing import listed
from lamina.cel.types import Kind, ListType, ObjectType, Type

Sight: TypeAlias = Callable[[Any], Any]


def seen(type_: Type) -> Sight | None:
    """Return how data of a type looks to an expression, or None where it looks as it is."""
    if isinstance(type_, ObjectType):
        return _object(type_)
    if type_.kind is Kind.LIST:
        return _list(type_)
    if type_.kind is Kind.MAP:
        return _map(type_)
    return None


def _object(type_: ObjectType) -> Sight | None:
    fields = {field.key or name: field for name, field in type_.fields.items()}
    nullable = [key for key, field in fields.items() if field.nullable]
    inner = {key: sight for key, field in fields.items() if (sight := seen(field.type)) is not None}
    if not nullable and not inner:
        return None

    def see(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        shown = dict(value)
        for key in nullable:
            if key in shown and shown[key] is None:
                del shown[key]
        for key, sight in inner.items():
            if key in shown:
                shown[key] = sight(shown[key])
        return shown

    return see


def _list(type_: Type) -> Sight | None:
    inner = seen(type_.params[0])
    if inner is None and not isinstance(type_, ListType):
        return None

    def see(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        shown = value if inner is None else [inner(item) for item in value]
        return listed(shown, type_) if isinstance(type_, ListType) else shown

    return see


def _map(type_: Type) -> Sight | None:
    inner = seen(type_.params[1])
    if inner is None:
        return None

    def see(value: Any) -> Any:
        return {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value

    return see
