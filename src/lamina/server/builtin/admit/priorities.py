"""How a Pod's class decides its priority."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made, Obj
from lamina.server.builtin.admit.asking import Lookup, Refusal

_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_COMPUTED: Final = "must not be provided in pod spec; priority admission controller computed"


def give_priority(pod: Made, lookup: Lookup, suffix: str) -> None:
    """Give a Pod the priority of its class, or of the one that is everybody's; it may not say another itself."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    found = lookup.get(_CLASSES, "", name) if name else usual_class(lookup)
    if name and found is None:
        raise Refusal(f"no PriorityClass with name {name} was found")
    given: Obj = found or {}
    if not name and found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    priority = given.get("value", 0)
    policy = given.get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.setdefault("priority", priority) != priority:
        raise Refusal(
            f"the integer value of priority ({spec['priority']}) {_COMPUTED} {priority} "
            "from the given PriorityClass name"
        )
    if spec.setdefault("preemptionPolicy", policy) != policy:
        raise Refusal(
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) {_COMPUTED} {policy} "
            "from the given PriorityClass name"
        )


def usual_class(lookup: Lookup) -> Obj | None:
    """Return the class of Pods that name none: of several, the least."""
    marked = [one for one in lookup.every(_CLASSES) if one.get("globalDefault")]
    return min(marked, key=lambda one: one.get("value", 0), default=None)


def judge_class(new: Obj, old: Obj | None, lookup: Lookup) -> None:
    """Refuse a second class that is everybody's."""
    usual = usual_class(lookup) if new.get("globalDefault") else None
    if usual is None:
        return
    name = usual["metadata"]["name"]
    if old is None or name != new["metadata"]["name"]:
        raise Refusal(f"PriorityClass {name} is already marked as default. Only one default can exist")
