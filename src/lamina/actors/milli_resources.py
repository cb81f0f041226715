"""Resource quantities in thousandths, as integers, so that sums are exact and fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lamina.objects.quantities import thousandths
from lamina.objects.types import Obj


def to_milli(quantities: Mapping[str, object] | None) -> dict[str, int]:
    """Return quantities by the name of the resource, in thousandths."""
    return {name: thousandths(str(amount)) for name, amount in (quantities or {}).items()}


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two resource lists."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(set(other) - set(one)))}


def pod_requests(spec: Obj) -> dict[str, int]:
    """
    Return the resource requests of a pod.

    Containers run together; init containers run one after the other before
    them, next to the sidecars started so far, and count where they need more.
    """
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    for one in (spec, *containers):
        resources = one.get("resources")
        if resources and resources.get("requests"):
            break
    else:
        return to_milli(spec.get("overhead"))
    running = _total(spec.get("containers") or ())
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = added(sidecars, own)
            most = _larger(most, sidecars)
        else:
            most = _larger(most, added(sidecars, own))
    needed = _larger(added(running, sidecars), most)
    whole = (spec.get("resources") or {}).get("requests")
    if whole:
        needed = {**needed, **to_milli(whole)}
    return added(needed, to_milli(spec.get("overhead")))


def _requests(container: Obj) -> dict[str, int]:
    return to_milli((container.get("resources") or {}).get("requests"))


def _total(containers: Iterable[Obj]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        total = added(total, _requests(container))
    return total


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *(set(other) - set(one)))}
