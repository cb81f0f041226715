"""Amounts of resources as schedulers count them: whole thousandths, so that sums are exact and quick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lamina.objects.quantities import thousandths
from lamina.objects.types import Obj


def counted(amounts: Mapping[str, object] | None) -> dict[str, int]:
    """Return amounts by the name of the resource, in thousandths."""
    return {name: thousandths(str(amount)) for name, amount in (amounts or {}).items()}


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two sets of amounts."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(set(other) - set(one)))}


def requested(spec: Obj) -> dict[str, int]:
    """
    Return what a pod asks a node for.

    Containers run at once; init containers run one by one before them, beside
    those of them that keep running, and matter where they need more.
    """
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    for one in (spec, *containers):
        resources = one.get("resources")
        if resources and resources.get("requests"):
            break
    else:
        return counted(spec.get("overhead"))
    running = _total(spec.get("containers") or ())
    staying: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            staying = added(staying, own)
            most = _larger(most, staying)
        else:
            most = _larger(most, added(staying, own))
    needed = _larger(added(running, staying), most)
    whole = (spec.get("resources") or {}).get("requests")
    if whole:
        needed = {**needed, **counted(whole)}
    return added(needed, counted(spec.get("overhead")))


def _requests(container: Obj) -> dict[str, int]:
    return counted((container.get("resources") or {}).get("requests"))


def _total(containers: Iterable[Obj]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        total = added(total, _requests(container))
    return total


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *(set(other) - set(one)))}
