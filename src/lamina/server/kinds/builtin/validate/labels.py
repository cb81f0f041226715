"""Label selectors in objects."""

from __future__ import annotations

from typing import Any

from lamina.errors import BadRequest, Cause
from lamina.objects import names
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj
from lamina.server.field_errors import each, forbidden, invalid, required
from lamina.server.kinds.builtin.validate.parts import items, part, text
from lamina.server.kinds.metadata import check_labels


def label_selector(selector: Obj | None, path: str) -> list[Cause]:
    """Return the errors of a LabelSelector; an absent one is valid."""
    if selector is None:
        return []
    causes = check_labels(part(selector, "matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(items(selector, "matchExpressions")):
        causes += label_requirement(expression, f"{path}.matchExpressions[{index}]")
    return causes


def label_requirement(expression: Obj, path: str, *, any_operator: bool = False) -> list[Cause]:
    causes = check_operator(expression, path, any_operator=any_operator)
    key = text(expression, "key")
    causes += each(f"{path}.key", key, names.qualified(key))
    for index, value in enumerate(items(expression, "values")):
        causes += each(f"{path}.values[{index}]", value, names.label_value(value))
    return causes


def check_operator(
    expression: Obj, path: str, *, has_numeric: bool = False, any_operator: bool = False
) -> list[Cause]:
    """Return the errors of an operator and of the number of its values; with `has_numeric`, of Gt and Lt as well."""
    values = items(expression, "values")
    match text(expression, "operator"):
        case "In" | "NotIn":
            if not values:
                return [required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
        case "Exists" | "DoesNotExist":
            if values:
                rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                return [forbidden(f"{path}.values", rule)]
        case "Gt" | "Lt" if has_numeric:
            if len(values) != 1:
                rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                return [required(f"{path}.values", rule)]
        case operator if not any_operator:
            return [invalid(f"{path}.operator", operator, "not a valid selector operator")]
    return []


def is_empty(selector: Obj) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def compiled(selector: Any) -> LabelSelector | None:
    """Return a compiled selector, None for an invalid one."""
    try:
        return from_object(selector)
    except BadRequest:
        return None
