"""
Finalizers: an object is held before anything is made for it, and released once that is gone.

The finalizer is set in a pass of its own, before anything else is written: a
process that stops in between leaves nothing behind that no deletion removes.
"""

from __future__ import annotations

from lamina.core.model.plan import Plan, change_metadata, one_stage, remove_finalizer
from lamina.objects import meta
from lamina.objects.types import Obj


def is_held(obj: Obj, finalizer: str) -> bool:
    """Say whether an object has a finalizer."""
    return finalizer in meta.finalizers(obj)


def held(obj: Obj, finalizer: str) -> Obj:
    """Return an object as it is once it has a finalizer."""
    if is_held(obj, finalizer):
        return obj
    return meta.with_metadata(obj, finalizers=[*meta.finalizers(obj), finalizer])


def hold(obj: Obj, finalizer: str, *, because: str, cluster: str = "") -> Plan:
    """Return the plan that sets a finalizer, and does nothing else."""
    patch = change_metadata(obj, cluster=cluster, finalizers=[*meta.finalizers(obj), finalizer])
    return one_stage("add finalizer", [patch], because=because)


def release(obj: Obj, *finalizers: str, because: str, cluster: str = "") -> Plan:
    """Return the plan that removes a finalizer, or several, and does nothing else."""
    patch = remove_finalizer(obj, *finalizers, cluster=cluster)
    return one_stage("remove finalizer", [patch], because=because)


def waiting(obj: Obj) -> str:
    """Return what an object that is being deleted waits for, as its status message."""
    left = meta.finalizers(obj)
    return f"waits for finalizers: {', '.join(left)}" if left else "is being deleted"
