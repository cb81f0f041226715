"""Selectors as objects carry them."""

from __future__ import annotations

from typing import Any

from lamina.errors import BadRequest, Cause
from lamina.objects import names
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import items, part, text
from lamina.server.fields import each, forbidden, invalid, required
from lamina.server.metadata import check_labels


def label_selector(selector: Obj | None, path: str) -> list[Cause]:
    """Return what is wrong with a LabelSelector; an absent one is fine."""
    if selector is None:
        return []
    said = check_labels(part(selector, "matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(items(selector, "matchExpressions")):
        said += label_requirement(expression, f"{path}.matchExpressions[{index}]")
    return said


def label_requirement(expression: Obj, path: str, *, any_operator: bool = False) -> list[Cause]:
    said: list[Cause] = []
    values = items(expression, "values")
    match text(expression, "operator"):
        case "In" | "NotIn":
            if not values:
                said.append(
                    required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
                )
        case "Exists" | "DoesNotExist":
            if values:
                rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                said.append(forbidden(f"{path}.values", rule))
        case operator:
            if not any_operator:
                said.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = text(expression, "key")
    said += each(f"{path}.key", key, names.qualified(key))
    for index, value in enumerate(values):
        said += each(f"{path}.values[{index}]", value, names.label_value(value))
    return said


def is_empty(selector: Obj) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def compiled(selector: Any) -> LabelSelector | None:
    """Return a selector ready for use, None where it makes no sense."""
    try:
        return from_object(selector)
    except BadRequest:
        return None
