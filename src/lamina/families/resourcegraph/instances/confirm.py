"""Live reads of an instance and its definition, before a decision that a stale cache would get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.core.live_check import Confirmation, LiveCheck, check_live
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.instances.view import View, current_revision
from lamina.families.resourcegraph.labels import CONTROL_ANNOTATIONS
from lamina.objects import meta
from lamina.objects.types import Obj


def check_instance(view: View, answers: Answers) -> Confirmation[str]:
    """Return whether nothing that decides about the cached instance has changed, or the read that shows it."""
    return check_live([_instance(view, _decides_the_same)], answers)


def check_both(view: View, answers: Answers) -> Confirmation[str]:
    """Return whether the cached instance, with its spec, and its definition are the live ones, or the reads that show it."""
    assert view.definition is not None, "without its definition an instance is only deleted"
    definition = LiveCheck(cached=view.definition, holds=_has_same_revision, whole=True)
    return check_live([_instance(view, _has_same_spec), definition], answers)


def _instance(view: View, holds: Callable[[Obj, Obj], bool]) -> LiveCheck:
    # Inline input revisions are in its status.
    return LiveCheck(cached=view.obj, holds=_has_same_version if view.is_inline else holds, whole=True)


def _has_same_version(live: Obj, cached: Obj) -> bool:
    return meta.resource_version(live) == meta.resource_version(cached) and _has_same_spec(live, cached)


def _has_same_spec(live: Obj, cached: Obj) -> bool:
    # A watch that began before the schema changed shows an object without the fields that are new.
    return _decides_the_same(live, cached) and (live.get("spec") or {}) == (cached.get("spec") or {})


def _decides_the_same(live: Obj, cached: Obj) -> bool:
    return bool(_decisive(live) == _decisive(cached))


def _decisive(instance: Obj) -> Any:
    """Return what of an instance's metadata decides about it: what a user sets, and whether it is being deleted."""
    annotations = meta.annotations(instance)
    return (
        meta.uid(instance),
        meta.generation(instance),
        meta.is_deleting(instance),
        tuple(annotations.get(key) for key in CONTROL_ANNOTATIONS),
    )


def _has_same_revision(live: Obj, cached: Obj) -> bool:
    return meta.uid(live) == meta.uid(cached) and current_revision(live) == current_revision(cached)
