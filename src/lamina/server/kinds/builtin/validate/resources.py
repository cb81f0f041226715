"""
Names and quantities of resources: native ones, object counts, extended resources.

`cpu` and similar names are native; `example.com/gpu` is an extended resource: an integer that
cannot be overcommitted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from functools import lru_cache

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.quantities import quantity
from lamina.objects.types import Obj
from lamina.server.field_errors import (
    NOT_NEGATIVE,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from lamina.server.kinds.builtin.validate.parts import items, part, ruled, text

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_QUOTA = _CONTAINER | _COUNTED | {
    "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
_STANDARD = _QUOTA | {"storage"}
_HUGE_PAGES = "hugepages-"

Checked = Callable[[str, str], list[Cause]]
"""Validates the name of a resource, given the path and the name."""


@lru_cache(maxsize=4096)
def amount(text_of_it: str) -> Fraction:
    """Return a quantity as a number; 0 for an invalid one."""
    try:
        return quantity(text_of_it).amount
    except ValueError:
        return Fraction(0)


def is_huge_page(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified(f"requests.{name}")


def is_shared(name: str) -> bool:
    """Return whether the resource can be overcommitted."""
    return is_native(name) and not is_huge_page(name)


def is_standard_quota(name: str) -> bool:
    return name in _QUOTA or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))


def resource_name(path: str, name: str) -> list[Cause]:
    """Validate the name of any resource."""
    if causes := ruled(path, name, names.qualified):
        return causes
    known = name in _STANDARD or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
    if "/" not in name and not known:
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name(path: str, name: str) -> list[Cause]:
    causes = resource_name(path, name)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            causes.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        causes.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return causes


def pod_resource_name(path: str, name: str) -> list[Cause]:
    if causes := resource_name(path, name):
        return causes
    if name in {"cpu", "memory"} or is_huge_page(name):
        return []
    return [not_supported(path, name, ("cpu", "hugepages-", "memory"))]


def quota_resource_name(path: str, name: str) -> list[Cause]:
    causes = resource_name(path, name)
    if "/" not in name and not is_standard_quota(name):
        causes.append(invalid(path, name, "must be a standard resource for quota"))
    return causes


def resource_amount(path: str, name: str, value: str) -> list[Cause]:
    """Validate a quantity: not negative, and an integer if the resource is counted."""
    found = amount(value)
    causes = [invalid(path, value, NOT_NEGATIVE)] if found < 0 else []
    if found.denominator != 1 and (name in _COUNTED or is_extended(name)):
        causes.append(invalid(path, value, "must be an integer"))
    return causes


def basic_amount(path: str, value: str) -> list[Cause]:
    found = amount(value)
    return [invalid(path, _rounded(found), "must be a valid resource quantity")] if found < 0 else []


def _rounded(found: Fraction) -> int:
    whole = abs(found.numerator) // found.denominator + (found.denominator != 1)
    return -whole if found < 0 else whole


def requirements(
    resources: Obj,
    path: str,
    claims: Collection[str] | None = None,
    check_name: Checked = container_resource_name,
) -> list[Cause]:
    """Validate limits, requests and claims of a container or pod; `claims` are the claims of the pod."""
    causes: list[Cause] = []
    limits, requests = part(resources, "limits"), part(resources, "requests")
    for name, value in limits.items():
        causes += _one(f"{path}.limits[{name}]", name, value, check_name)
    for name, value in requests.items():
        causes += _one(f"{path}.requests[{name}]", name, value, check_name)
        limit = limits.get(name)
        if limit is not None:
            item_path, there = amount(value), amount(limit)
            if item_path != there and not is_shared(name):
                rule = f"must be equal to {name} limit of {limit}"
                causes.append(invalid(f"{path}.requests", value, rule))
            elif item_path > there:
                rule = f"must be less than or equal to {name} limit of {limit}"
                causes.append(invalid(f"{path}.requests", value, rule))
        elif not is_shared(name):
            causes.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    asked = {**limits, **requests}
    if "cpu" not in asked and "memory" not in asked and any(map(is_huge_page, asked)):
        causes.append(forbidden(path, "HugePages require cpu or memory"))
    if resources.get("claims"):
        causes += _claims(resources, claims or (), f"{path}.claims")
    return causes


def _one(path: str, name: str, value: str, check_name: Checked) -> list[Cause]:
    if name in {"cpu", "memory"} and amount(value) >= 0:
        return []
    causes = check_name(path, name) + resource_amount(path, name, value)
    return causes + _whole_pages(path, name, value)


def _whole_pages(path: str, name: str, value: str) -> list[Cause]:
    if not is_huge_page(name):
        return []
    page = amount(name.removeprefix(_HUGE_PAGES))
    if page > 0 and page.denominator == 1 and _rounded(amount(value)) % page == 0:
        return []
    return [invalid(path, value, f"{value} is not positive integer multiple of {name}")]


def _claims(resources: Obj, known: Collection[str], path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, claim in enumerate(items(resources, "claims")):
        item_path = f"{path}[{index}]"
        name, request = text(claim, "name"), text(claim, "request")
        if not name:
            causes.append(required(item_path))
            continue
        if request:
            causes += ruled(f"{item_path}.request", request, names.label)
        key = f"{name}/{request}" if request else name
        if name in seen:
            causes.append(duplicate(item_path, name))
        elif key in seen:
            causes.append(duplicate(item_path, key))
        elif not request:
            causes += (duplicate(item_path, name) for other in seen if other.partition("/")[0] == name)
        seen.add(key)
        if name not in known:
            rest = f": {', '.join(sorted(known))}" if known else " which is empty"
            missing = not_found(item_path, name)
            rule = f"must be one of the names in pod.spec.resourceClaims{rest}"
            causes.append(missing._replace(message=f"{missing.message}: {rule}"))
    return causes
