"""
Plans the stages that are due for an object.

The earliest due stage is played first. All stages due by now are played one after
the other in memory and written together, so that an object with no delays is
written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.stages.container_status import changed_record, records
from lamina.actors.stages.pod_status import with_derived_status
from lamina.actors.stages.stage import RequirementCache, Stage, chosen, chosen_for_container, matching
from lamina.actors.stages.template import Scope
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import Action, Delete, Emit, Patch, Plan, change
from lamina.core.model.plan import Stage as Step
from lamina.errors import SettingsError
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_MAX_STAGES = 64
"""The limit of stages in one plan: beyond it, stages form a cycle."""


class Due(Struct, frozen=True, kw_only=True):
    """A stage of an object, when it is due, and the containers it selects."""

    stage: Stage
    at: datetime
    containers: tuple[str, ...] = ()


def due_first(
    obj: Obj, made: Sequence[Obj], stages: Sequence[Stage], now: datetime, cache: RequirementCache
) -> Due | None:
    """Return the earliest due stage of an object and its containers."""
    about_containers: list[Stage] = []
    about_it: list[Stage] = []
    for one in matching(stages, obj, cache):
        (about_it if one.selector.containers is None else about_containers).append(one)
    found: list[Due] = []
    for record in made if about_containers else ():
        stage = chosen_for_container(about_containers, obj, record)
        if stage is not None:
            found += _at(stage, obj, record, now)
    # Last, so that containers come first among stages due at once: a deleted pod stops before it is removed.
    whole = chosen(about_it, obj)
    if whole is not None:
        found += _at(whole, obj, None, now)
    if not found:
        return None
    first = min(found, key=lambda one: one.at)
    together = [one for one in found if one.stage is first.stage and one.at <= max(first.at, now)]
    return Due(
        stage=first.stage, at=first.at, containers=tuple(name for one in together for name in one.containers)
    )


def _at(stage: Stage, obj: Obj, record: Obj | None, now: datetime) -> Iterable[Due]:
    if stage.next.is_empty:
        return
    at = stage.delay.due(obj, record, stage.name, now)
    if at is not None:
        yield Due(stage=stage, at=at, containers=(record["name"],) if record is not None else ())


def plan(
    obj: Obj,
    node: Obj | None,
    stages: Sequence[Stage],
    now: datetime,
    *,
    by: str,
    runs: bool = False,
    below: str = "status",
) -> Plan:
    """
    Return the plan that plays all stages due by now, and requeues for the next.

    With `runs`, the object is a pod whose status is derived from its
    containers. `below` is the status subresource, where the kind has one.
    """
    new, events = obj, list[Action]()
    played: list[str] = []
    ends = False
    made = records(obj) if runs else []
    cache = RequirementCache()
    due = due_first(obj, made, stages, now, cache)
    while due is not None and due.at <= now and not ends:
        if len(played) == _MAX_STAGES:
            raise SettingsError(
                f"the stages of {meta.ref(obj)} form a cycle: {', '.join(dict.fromkeys(played))}"
            )
        events += _events(due, new, made, now, by)
        before = new
        new, made = _played(due, new, made, now)
        if runs:
            new = with_derived_status(new, made, node, now)
            made = records(new)
        played.append(due.stage.name)
        ends = due.stage.next.delete
        if new == before:
            # A stage that changes nothing would be due forever.
            due = None
            break
        cache = cache.for_next_stage()
        due = due_first(new, made, stages, now, cache)
    if runs and not played and (new.get("status") or {}).get("startTime"):
        new = with_derived_status(new, made, node, now)
    again = due.at - now if due is not None and due.at > now and not ends else None
    # A status that is deleted with its object need not be written, unless a finalizer keeps the object.
    stays = not ends or meta.finalizers(new)
    actions = [*(_status_write(obj, new, below) if stays else ()), *events]
    steps = [Step("write status", tuple(actions))] if actions else []
    if meta.finalizers(obj) != meta.finalizers(new):
        steps.append(Step("write finalizers", (_finalizers_write(obj, new),)))
    if ends:
        steps.append(Step("delete", (Delete(ref=meta.ref(obj), uid=meta.uid(obj), grace=0),)))
    return Plan(
        stages=tuple(steps), requeue_after=again, because=", ".join(played) or "its derived status changed"
    )


def _played(due: Due, obj: Obj, made: list[Made], now: datetime) -> tuple[Obj, list[Made]]:
    """Return an object and its containers after a stage."""
    after = due.stage.next
    new = obj
    if after.status is not None:
        status = {**(obj.get("status") or {}), **after.status(Scope(obj, now))}
        new = {**obj, "status": status}
    if after.container is not None:
        made = [
            changed_record(new, record, after.container(Scope(obj, now, record)))
            if record["name"] in due.containers
            else record
            for record in made
        ]
    finalizers = [one for one in meta.finalizers(obj) if one not in after.remove_finalizers]
    finalizers += [one for one in after.add_finalizers if one not in finalizers]
    finalizers = [] if after.empty_finalizers else finalizers
    if finalizers != list(meta.finalizers(obj)):
        new = meta.with_metadata(new, finalizers=finalizers)
    return new, made


def _status_write(old: Obj, new: Obj, below: str) -> Iterable[Action]:
    before, after = old.get("status") or {}, new.get("status") or {}
    if before != after:
        changed: dict[str, Any] = {
            field: value for field, value in after.items() if before.get(field) != value
        }
        changed |= {field: None for field in before if field not in after}
        yield change(old, {"status": changed}, subresource=below)


def _finalizers_write(old: Obj, new: Obj) -> Patch:
    # Without a resourceVersion: the status may have been written just before.
    return replace(change(old, {"metadata": {"finalizers": list(meta.finalizers(new)) or None}}), version="")


def _events(due: Due, obj: Obj, made: Sequence[Made], now: datetime, by: str) -> Iterable[Emit]:
    for template in due.stage.next.events:
        if template.for_each_running:
            about: list[Made | None] = [one for one in made if "running" in (one.get("state") or {})]
        elif due.containers:
            about = [one for one in made if one["name"] in due.containers]
        else:
            about = [None]
        make = normal if template.kind == "Normal" else warning
        for record in about:
            scope = Scope(obj, now, record)
            occasion = due.stage.name
            if record is not None:
                attempt = due.stage.delay.round_of(obj, record, now)
                occasion = f"{record['name']}/{record['restartCount'] + attempt}/{occasion}"
            event = make(
                obj, template.reason(scope), template.message(scope), by=by, now=now, occasion=occasion
            )
            if record is not None:
                listed = "initContainers" if record["init"] else "containers"
                event["involvedObject"]["fieldPath"] = f"spec.{listed}{{{record['name']}}}"
            if node := (obj.get("spec") or {}).get("nodeName"):
                event["source"]["host"] = event["reportingInstance"] = node
            yield Emit(event=event)
