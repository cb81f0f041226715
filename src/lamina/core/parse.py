"""Parses a part of an object into the type that declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from lamina.errors import BadRequest, SpecError
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj

Read = TypeVar("Read")


def read(value: Any, kind: type[Read], where: str = "spec") -> Read:
    """Return a value as that type; raises SpecError, which names the field."""
    try:
        return msgspec.convert(without_nulls(value if value is not None else {}), kind)
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at `$")
        raise SpecError(f"{where}{path.rstrip('`')}: {what[:1].lower()}{what[1:]}") from None


def without_nulls(value: Any) -> Any:
    """Return a value without fields that are null, which count as unset."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value


def emptied(value: Any, path: Sequence[str]) -> Any:
    """
    Return a value without what is in the objects at a path, of which `*` stands for each item of a list.

    What is no object, or no list, is left for the parser to refuse.
    """
    if not path:
        return {} if isinstance(value, dict) else value
    name, rest = path[0], path[1:]
    if name == "*":
        return [emptied(one, rest) for one in value] if isinstance(value, list) else value
    if isinstance(value, dict) and name in value:
        return {**value, name: emptied(value[name], rest)}
    return value


def template_selector(stated: Obj, labels: Mapping[str, str]) -> LabelSelector:
    """Return the selector of an owner with a template; raises SpecError where it is invalid or does not match these labels."""
    try:
        selector = from_object(stated)
    except BadRequest as wrong:
        raise SpecError(f"spec.selector: {wrong}") from None
    if not selector.requirements:
        raise SpecError("spec.selector: selects everything; name at least one label of the template")
    if not selector.matches(labels):
        raise SpecError(
            "spec.template.metadata.labels: do not match spec.selector; add the labels that it selects"
        )
    return selector
