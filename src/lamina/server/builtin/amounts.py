"""Sums and comparisons of amounts of resources: what a pod needs as a whole, and its class of service."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lamina.objects.types import Obj
from lamina.server.builtin.values import Quantity, quantity


def total(one: Quantity, other: Quantity) -> Quantity:
    """Return the sum of two quantities, written as the first of them that is not nothing."""
    scale = min(one.scale, other.scale)
    unscaled = one.unscaled * 10 ** (one.scale - scale) + other.unscaled * 10 ** (other.scale - scale)
    return Quantity(unscaled, scale, one.form if one.unscaled else other.form)


def needed_together(spec: Obj, what: str) -> dict[str, str]:
    """
    Return the requests or limits (`what`) of all containers of a pod together.

    Containers run at once; init containers run one by one before them, beside
    those of them that keep running, and matter where they need more.
    """
    running: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(running, container["resources"].get(what, {}))
    staying: dict[str, Quantity] = {}
    before: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = container["resources"].get(what, {})
        if container.get("restartPolicy") == "Always":
            _add(running, own)
            _add(staying, own)
            _raise(before, staying)
        else:
            moment: dict[str, Quantity] = {}
            _add(moment, own)
            for name, amount in staying.items():
                moment[name] = total(moment[name], amount) if name in moment else amount
            _raise(before, moment)
    _raise(running, before)
    return {name: str(amount) for name, amount in running.items()}


def _add(sums: dict[str, Quantity], amounts: Obj) -> None:
    for name, text in amounts.items():
        amount = quantity(text)
        sums[name] = total(sums[name], amount) if name in sums else amount


def _raise(most: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name not in most or amount.amount > most[name].amount:
            most[name] = amount


def class_of_service(spec: Obj) -> str:
    """Return the quality-of-service class of a pod: BestEffort, Burstable or Guaranteed."""
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    guaranteed = True
    if spec.get("resources") is not None:
        whole = spec["resources"]
        _count(requests, whole.get("requests", {}))
        if whole.get("limits"):
            guaranteed = _count(limits, whole["limits"]) == {"cpu", "memory"}
    else:
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            _count(requests, container["resources"].get("requests", {}))
            if _count(limits, container["resources"].get("limits", {})) != {"cpu", "memory"}:
                guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _count(sums: dict[str, Fraction], amounts: Any) -> set[str]:
    """Add the amounts that decide about the class, and return which of them there were."""
    counted = {name: quantity(amounts[name]).amount for name in ("cpu", "memory") if name in amounts}
    counted = {name: amount for name, amount in counted.items() if amount > 0}
    for name, amount in counted.items():
        sums[name] = sums.get(name, Fraction(0)) + amount
    return set(counted)
