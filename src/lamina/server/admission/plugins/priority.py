"""Priority: sets a Pod's priority from its PriorityClass."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made, Obj
from lamina.server.admission.plugins.lister import Denied, Lister

_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_COMPUTED: Final = "must not be provided in pod spec; priority admission controller computed"


def set_priority(pod: Made, lookup: Lister, suffix: str) -> None:
    """Set the priority of the Pod's class, or of the default class; the Pod must not set another one."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    found = lookup.get(_CLASSES, "", name) if name else default_class(lookup)
    if name and found is None:
        raise Denied(f"no PriorityClass with name {name} was found")
    given: Obj = found or {}
    if not name and found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    priority = given.get("value", 0)
    policy = given.get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.setdefault("priority", priority) != priority:
        raise Denied(
            f"the integer value of priority ({spec['priority']}) {_COMPUTED} {priority} "
            "from the given PriorityClass name"
        )
    if spec.setdefault("preemptionPolicy", policy) != policy:
        raise Denied(
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) {_COMPUTED} {policy} "
            "from the given PriorityClass name"
        )


def default_class(lookup: Lister) -> Obj | None:
    """Return the default class: of several, the one with the lowest value."""
    marked = [one for one in lookup.list(_CLASSES) if one.get("globalDefault")]
    return min(marked, key=lambda one: one.get("value", 0), default=None)


def validate_class(new: Obj, old: Obj | None, lookup: Lister) -> None:
    """Refuse a second default class."""
    default = default_class(lookup) if new.get("globalDefault") else None
    if default is None:
        return
    name = default["metadata"]["name"]
    if old is None or name != new["metadata"]["name"]:
        raise Denied(f"PriorityClass {name} is already marked as default. Only one default can exist")
