"""Sums and comparisons of resource quantities: the requests of a pod, and its QoS class."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lamina.objects.quantities import Quantity, quantity
from lamina.objects.types import Obj


def total(one: Quantity, other: Quantity) -> Quantity:
    """Return the sum of two quantities, in the format of the first that is not zero."""
    scale = min(one.scale, other.scale)
    unscaled = one.unscaled * 10 ** (one.scale - scale) + other.unscaled * 10 ** (other.scale - scale)
    return Quantity(unscaled, scale, one.form if one.unscaled else other.form)


def pod_total(spec: Obj, what: str) -> dict[str, str]:
    """
    Return the requests or limits (`what`) of a pod: the maximum over its lifetime.

    Containers run concurrently; init containers run one by one before them, concurrently
    with sidecars that started earlier.
    """
    running: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(running, container["resources"].get(what, {}))
    sidecars: dict[str, Quantity] = {}
    initial: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        needed = container["resources"].get(what, {})
        if container.get("restartPolicy") == "Always":
            _add(running, needed)
            _add(sidecars, needed)
            _set_maximum(initial, sidecars)
        else:
            concurrent: dict[str, Quantity] = {}
            _add(concurrent, needed)
            for name, amount in sidecars.items():
                concurrent[name] = total(concurrent[name], amount) if name in concurrent else amount
            _set_maximum(initial, concurrent)
    _set_maximum(running, initial)
    return {name: str(amount) for name, amount in running.items()}


def _add(sums: dict[str, Quantity], amounts: Obj) -> None:
    for name, text in amounts.items():
        amount = quantity(text)
        sums[name] = total(sums[name], amount) if name in sums else amount


def _set_maximum(maximum: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name not in maximum or amount.amount > maximum[name].amount:
            maximum[name] = amount


def qos_class(spec: Obj) -> str:
    """Return the quality-of-service class of a pod: BestEffort, Burstable or Guaranteed."""
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    guaranteed = True
    if spec.get("resources") is not None:
        resources = spec["resources"]
        _count(requests, resources.get("requests", {}))
        if resources.get("limits"):
            guaranteed = _count(limits, resources["limits"]) == {"cpu", "memory"}
    else:
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            _count(requests, container["resources"].get("requests", {}))
            if _count(limits, container["resources"].get("limits", {})) != {"cpu", "memory"}:
                guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _count(sums: dict[str, Fraction], amounts: Any) -> set[str]:
    """Add the resources that determine the QoS class, and return their names."""
    counted = {name: quantity(amounts[name]).amount for name in ("cpu", "memory") if name in amounts}
    counted = {name: amount for name, amount in counted.items() if amount > 0}
    for name, amount in counted.items():
        sums[name] = sums.get(name, Fraction(0)) + amount
    return set(counted)
