"""
What an object does next.

The stage that is due first comes first. All that are due by now are taken one
after the other on paper and written at once, so that an object that has nothing
to wait for is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.stages.containers import became, cards
from lamina.actors.stages.pods import settled
from lamina.actors.stages.stage import Known, Stage, chosen, chosen_by, possible
from lamina.actors.stages.template import Scope
from lamina.core.events import normal, warning
from lamina.core.plan import Action, Delete, Emit, Patch, Plan, change
from lamina.core.plan import Stage as Step
from lamina.errors import SettingsError
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_ROUNDS = 64
"""More steps than any object takes at once: beyond it, stages lead in a circle."""


class Due(Struct, frozen=True, kw_only=True):
    """A stage that an object comes to, when, and the names of the containers that it is about."""

    stage: Stage
    at: datetime
    containers: tuple[str, ...] = ()


def due_first(
    obj: Obj, made: Sequence[Obj], stages: Sequence[Stage], now: datetime, known: Known
) -> Due | None:
    """Return the stage that is due first, of those that an object and its containers come to."""
    about_containers: list[Stage] = []
    about_it: list[Stage] = []
    for one in possible(stages, obj, known):
        (about_it if one.selector.containers is None else about_containers).append(one)
    found: list[Due] = []
    for card in made if about_containers else ():
        stage = chosen_by(about_containers, obj, card)
        if stage is not None:
            found += _at(stage, obj, card, now)
    # Last, so that of what is due at once the containers come first: a pod that goes stops before it is gone.
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


def _at(stage: Stage, obj: Obj, card: Obj | None, now: datetime) -> Iterable[Due]:
    if stage.next.is_rest:
        return
    at = stage.delay.due(obj, card, stage.name, now)
    if at is not None:
        yield Due(stage=stage, at=at, containers=(card["name"],) if card is not None else ())


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
    Return what an object does by now, and when there is more to do.

    With `runs` it is a pod whose status follows from its containers. `below` is
    the subresource that takes a status, where the kind has one.
    """
    new, told = obj, list[Action]()
    taken: list[str] = []
    ends = False
    made = cards(obj) if runs else []
    known = Known()
    due = due_first(obj, made, stages, now, known)
    while due is not None and due.at <= now and not ends:
        if len(taken) == _ROUNDS:
            raise SettingsError(f"stages lead {meta.ref(obj)} in a circle: {', '.join(dict.fromkeys(taken))}")
        told += _told(due, new, made, now, by)
        before = new
        new, made = _taken(due, new, made, now)
        if runs:
            new = settled(new, made, node, now)
            made = cards(new)
        taken.append(due.stage.name)
        ends = due.stage.next.delete
        if new == before:
            # A stage that changes nothing would be due for ever.
            due = None
            break
        known = known.later()
        due = due_first(new, made, stages, now, known)
    if runs and not taken and (new.get("status") or {}).get("startTime"):
        new = settled(new, made, node, now)
    again = due.at - now if due is not None and due.at > now and not ends else None
    # Nobody reads the last words of what is gone in the same breath, unless somebody holds it.
    spoken = not ends or meta.finalizers(new)
    actions = [*(_status_write(obj, new, below) if spoken else ()), *told]
    steps = [Step("take it there", tuple(actions))] if actions else []
    if meta.finalizers(obj) != meta.finalizers(new):
        steps.append(Step("hold it or let it go", (_finalizers_write(obj, new),)))
    if ends:
        steps.append(Step("end it", (Delete(ref=meta.ref(obj), uid=meta.uid(obj), grace=0),)))
    return Plan(stages=tuple(steps), look_again=again, because=", ".join(taken) or "its status follows")


def _taken(due: Due, obj: Obj, made: list[Made], now: datetime) -> tuple[Obj, list[Made]]:
    """Return an object, and its containers, once a stage has come."""
    after = due.stage.next
    new = obj
    if after.status is not None:
        status = {**(obj.get("status") or {}), **after.status(Scope(obj, now))}
        new = {**obj, "status": status}
    if after.container is not None:
        made = [
            became(new, card, after.container(Scope(obj, now, card)))
            if card["name"] in due.containers
            else card
            for card in made
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
    # Of no version: the status may have been written just before.
    return replace(change(old, {"metadata": {"finalizers": list(meta.finalizers(new)) or None}}), version="")


def _told(due: Due, obj: Obj, made: Sequence[Made], now: datetime, by: str) -> Iterable[Emit]:
    for telling in due.stage.next.events:
        if telling.for_each_running:
            about: list[Made | None] = [one for one in made if "running" in (one.get("state") or {})]
        elif due.containers:
            about = [one for one in made if one["name"] in due.containers]
        else:
            about = [None]
        tell = normal if telling.kind == "Normal" else warning
        for card in about:
            scope = Scope(obj, now, card)
            occasion = due.stage.name
            if card is not None:
                tried = due.stage.delay.round_of(obj, card, now)
                occasion = f"{card['name']}/{card['restartCount'] + tried}/{occasion}"
            event = tell(
                obj, telling.reason(scope), telling.message(scope), by=by, now=now, occasion=occasion
            )
            if card is not None:
                listed = "initContainers" if card["init"] else "containers"
                event["involvedObject"]["fieldPath"] = f"spec.{listed}{{{card['name']}}}"
            if node := (obj.get("spec") or {}).get("nodeName"):
                event["source"]["host"] = event["reportingInstance"] = node
            yield Emit(event=event)
