"""PodDisruptionBudgets, and conditions of type metav1.Condition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, invalid, not_negative, required, too_long
from lamina.server.kinds.builtin.validate.labels import label_selector
from lamina.server.kinds.builtin.validate.parts import (
    at_most_all,
    count,
    int_or_percent,
    items,
    part,
    ruled,
    supported,
    text,
)

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"


def budget(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
    causes: list[Cause] = []
    if minimum is not None and maximum is not None:
        shown = {
            "MinAvailable": minimum,
            "Selector": spec.get("selector"),
            "MaxUnavailable": maximum,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        causes.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field, value in (("minAvailable", minimum), ("maxUnavailable", maximum)):
        if value is not None:
            causes += int_or_percent(f"spec.{field}", value) + at_most_all(f"spec.{field}", value)
    causes += label_selector(spec.get("selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    policy = spec.get("unhealthyPodEvictionPolicy")
    return causes + supported("spec.unhealthyPodEvictionPolicy", policy, policies)


def budget_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return budget(new)
    status = part(new, "status")
    causes = conditions(items(status, "conditions"), "status.conditions")
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        causes += not_negative(f"status.{field}", status.get(field))
    return causes


def conditions(found: Sequence[Obj], path: str) -> list[Cause]:
    """Validate conditions with reason and transition time."""
    causes: list[Cause] = []
    kinds = [text(one, "type") for one in found]
    for index, one in enumerate(found):
        item_path = f"{path}[{index}]"
        if kinds[index] in kinds[:index]:
            causes.append(duplicate(f"{item_path}.type", kinds[index]))
        causes += ruled(f"{item_path}.type", kinds[index], names.qualified)
        causes += supported(f"{item_path}.status", text(one, "status"), ("False", "True", "Unknown"))
        if count(one, "observedGeneration") < 0:
            detail = "must be greater than or equal to zero"
            causes.append(invalid(f"{item_path}.observedGeneration", one["observedGeneration"], detail))
        if not one.get("lastTransitionTime"):
            causes.append(required(f"{item_path}.lastTransitionTime"))
        causes += _reason(text(one, "reason"), f"{item_path}.reason")
        if len(text(one, "message").encode()) > 32 * 1024:
            causes.append(too_long(f"{item_path}.message", 32 * 1024))
    return causes


def _reason(reason: str, path: str) -> list[Cause]:
    if not reason:
        return [required(path)]
    causes: list[Cause] = []
    if not re.fullmatch(_REASON, reason):
        rule = (
            "a condition reason must start with alphabetic character, optionally followed by a string of "
            "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
        )
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        causes.append(invalid(path, reason, names.regex_error(rule, _REASON, *examples)))
    if len(reason.encode()) > 1024:
        causes.append(too_long(path, 1024))
    return causes
