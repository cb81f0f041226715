"""
Names and amounts of resources: cpu, memory, things counted, things of somebody's own.

`cpu` and the like are native; `example.com/gpu` is extended: counted whole,
and never promised to more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from functools import lru_cache

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import items, part, ruled, text
from lamina.server.builtin.values import quantity
from lamina.server.fields import (
    NOT_NEGATIVE,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)

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
"""Checks a resource's name; given it and the path."""


@lru_cache(maxsize=4096)
def amount(text_of_it: str) -> Fraction:
    """Return how much a quantity is; what cannot be read is nothing."""
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
    """Say whether more may be promised of it than there is."""
    return is_native(name) and not is_huge_page(name)


def is_standard_quota(name: str) -> bool:
    return name in _QUOTA or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))


def resource_name(path: str, name: str) -> list[Cause]:
    """Check a name that may be any resource's."""
    if said := ruled(path, name, names.qualified):
        return said
    known = name in _STANDARD or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
    if "/" not in name and not known:
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name(path: str, name: str) -> list[Cause]:
    said = resource_name(path, name)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            said.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        said.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return said


def pod_resource_name(path: str, name: str) -> list[Cause]:
    if said := resource_name(path, name):
        return said
    if name in {"cpu", "memory"} or is_huge_page(name):
        return []
    return [not_supported(path, name, ("cpu", "hugepages-", "memory"))]


def quota_resource_name(path: str, name: str) -> list[Cause]:
    said = resource_name(path, name)
    if "/" not in name and not is_standard_quota(name):
        said.append(invalid(path, name, "must be a standard resource for quota"))
    return said


def resource_amount(path: str, name: str, value: str) -> list[Cause]:
    """Check an amount: not negative, and whole where the resource is counted."""
    found = amount(value)
    said = [invalid(path, value, NOT_NEGATIVE)] if found < 0 else []
    if found.denominator != 1 and (name in _COUNTED or is_extended(name)):
        said.append(invalid(path, value, "must be an integer"))
    return said


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
    """Check limits, requests and claims of a container or a pod; `claims` are those its pod has."""
    said: list[Cause] = []
    limits, requests = part(resources, "limits"), part(resources, "requests")
    for name, value in limits.items():
        said += _one(f"{path}.limits[{name}]", name, value, check_name)
    for name, value in requests.items():
        said += _one(f"{path}.requests[{name}]", name, value, check_name)
        limit = limits.get(name)
        if limit is not None:
            here, there = amount(value), amount(limit)
            if here != there and not is_shared(name):
                rule = f"must be equal to {name} limit of {limit}"
                said.append(invalid(f"{path}.requests", value, rule))
            elif here > there:
                rule = f"must be less than or equal to {name} limit of {limit}"
                said.append(invalid(f"{path}.requests", value, rule))
        elif not is_shared(name):
            said.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    asked = {**limits, **requests}
    if "cpu" not in asked and "memory" not in asked and any(map(is_huge_page, asked)):
        said.append(forbidden(path, "HugePages require cpu or memory"))
    if resources.get("claims"):
        said += _claims(resources, claims or (), f"{path}.claims")
    return said


def _one(path: str, name: str, value: str, check_name: Checked) -> list[Cause]:
    if name in {"cpu", "memory"} and amount(value) >= 0:
        return []
    said = check_name(path, name) + resource_amount(path, name, value)
    return said + _whole_pages(path, name, value)


def _whole_pages(path: str, name: str, value: str) -> list[Cause]:
    if not is_huge_page(name):
        return []
    page = amount(name.removeprefix(_HUGE_PAGES))
    if page > 0 and page.denominator == 1 and _rounded(amount(value)) % page == 0:
        return []
    return [invalid(path, value, f"{value} is not positive integer multiple of {name}")]


def _claims(resources: Obj, known: Collection[str], path: str) -> list[Cause]:
    said: list[Cause] = []
    seen: set[str] = set()
    for index, claim in enumerate(items(resources, "claims")):
        here = f"{path}[{index}]"
        name, request = text(claim, "name"), text(claim, "request")
        if not name:
            said.append(required(here))
            continue
        if request:
            said += ruled(f"{here}.request", request, names.label)
        key = f"{name}/{request}" if request else name
        if name in seen:
            said.append(duplicate(here, name))
        elif key in seen:
            said.append(duplicate(here, key))
        elif not request:
            said += (duplicate(here, name) for other in seen if other.partition("/")[0] == name)
        seen.add(key)
        if name not in known:
            rest = f": {', '.join(sorted(known))}" if known else " which is empty"
            missing = not_found(here, name)
            rule = f"must be one of the names in pod.spec.resourceClaims{rest}"
            said.append(missing._replace(message=f"{missing.message}: {rule}"))
    return said
