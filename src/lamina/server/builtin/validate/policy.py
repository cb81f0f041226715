"""PodDisruptionBudgets, and conditions as newer kinds have them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.labels import label_selector
from lamina.server.builtin.validate.parts import (
    at_most_all,
    count,
    int_or_percent,
    items,
    part,
    ruled,
    supported,
    text,
)
from lamina.server.fields import duplicate, invalid, not_negative, required, too_long

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"


def budget(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    said: list[Cause] = []
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        said.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            said += int_or_percent(f"spec.{field}", value) + at_most_all(f"spec.{field}", value)
    said += label_selector(spec.get("selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    policy = spec.get("unhealthyPodEvictionPolicy")
    return said + supported("spec.unhealthyPodEvictionPolicy", policy, policies)


def budget_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return budget(new)
    status = part(new, "status")
    said = conditions(items(status, "conditions"), "status.conditions")
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        said += not_negative(f"status.{field}", status.get(field))
    return said


def conditions(found: Sequence[Obj], path: str) -> list[Cause]:
    """Check conditions that say when and why in full."""
    said: list[Cause] = []
    kinds = [text(one, "type") for one in found]
    for index, one in enumerate(found):
        here = f"{path}[{index}]"
        if kinds[index] in kinds[:index]:
            said.append(duplicate(f"{here}.type", kinds[index]))
        said += ruled(f"{here}.type", kinds[index], names.qualified)
        said += supported(f"{here}.status", text(one, "status"), ("False", "True", "Unknown"))
        if count(one, "observedGeneration") < 0:
            told = "must be greater than or equal to zero"
            said.append(invalid(f"{here}.observedGeneration", one["observedGeneration"], told))
        if not one.get("lastTransitionTime"):
            said.append(required(f"{here}.lastTransitionTime"))
        said += _reason(text(one, "reason"), f"{here}.reason")
        if len(text(one, "message").encode()) > 32 * 1024:
            said.append(too_long(f"{here}.message", 32 * 1024))
    return said


def _reason(reason: str, path: str) -> list[Cause]:
    if not reason:
        return [required(path)]
    said: list[Cause] = []
    if not re.fullmatch(_REASON, reason):
        rule = (
            "a condition reason must start with alphabetic character, optionally followed by a string of "
            "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
        )
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        said.append(invalid(path, reason, names.regex_complaint(rule, _REASON, *examples)))
    if len(reason.encode()) > 1024:
        said.append(too_long(path, 1024))
    return said
