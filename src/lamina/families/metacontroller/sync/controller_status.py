"""
The status of a CompositeController or DecoratorController: whether its hook answers, the last error, the number of parents.

Each part has its own field manager, and is written only where it changes: the
same answer to a thousand parents is one write. A status without the condition
Ready is left alone, because upstream's definitions keep none of these fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from lamina.core.model.complaints import sync_error
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Action, Apply, Plan, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import World, everything
from lamina.errors import HookError, LaminaError
from lamina.families.metacontroller.compile import Setup
from lamina.families.metacontroller.labels import MANAGER
from lamina.families.metacontroller.sync.watches import rule_watches
from lamina.objects import conditions, meta
from lamina.objects.selectors import EVERYTHING
from lamina.objects.times import moment, stamp
from lamina.objects.types import Made, Obj, Ref

_REACHABLE = "HookReachable"
_NEW, _COUNT_DELAY = timedelta(seconds=5), timedelta(seconds=2)
_HOOKS_MANAGER, _COUNT_MANAGER = "metacontroller-hooks", "metacontroller-tally"


def answered(controller: Obj | None, setup: Setup, now: datetime) -> list[Action]:
    """Return the write that reports that the hook answers, where the status does not say so."""
    kept = _status(controller)
    status = kept or _status_of_a_new_one(controller, now)
    if status is None or conditions.is_true(status.get("conditions") or (), _REACHABLE):
        return []
    reachable = conditions.with_condition(
        (), _REACHABLE, "True", now=now, reason="Answered", message="its hooks answer"
    )
    last = status.get("lastError")
    stated: Made = {"conditions": reachable, **({"lastError": last} if last else {})}
    # Of a new one it is not known yet whether its definition has these fields; a server refuses unknown ones.
    return [_stated(setup, stated, _HOOKS_MANAGER, optional=kept is None)]


def error_of(controller: Obj | None, ref: Ref, *, waits: bool) -> str:
    """
    Return why a parent is not synced, as the status of its controller has it; empty where it says nothing.

    The last error counts for its parent, while that `waits` for its controller: it
    may have been synced since. That the hook is down counts for every parent.
    """
    status = _status(controller) or {}
    last = status.get("lastError") or {}
    if waits and last.get("object") == str(ref):
        return f"{last.get('message') or ''} (at {last.get('time') or 'an unknown time'})"
    reachable = conditions.find(status.get("conditions") or (), _REACHABLE)
    if reachable is not None and reachable.get("status") == "False":
        return reachable.get("message", "")
    return ""


def failed(world: World, setup: Setup, about: Ref, error: LaminaError, now: datetime) -> list[Action]:
    """Return the write that reports that a parent could not be synced, unless the status has that error."""
    status = _status(world.get(meta.ref(setup.obj)))
    if status is None or (status.get("lastError") or {}).get("message") == str(error):
        return []
    stated: Made = {"lastError": {"object": str(about), "message": str(error), "time": stamp(now)}}
    old = conditions.find(status.get("conditions") or (), _REACHABLE)
    if isinstance(error, HookError) and not error.reached:
        stated["conditions"] = conditions.with_condition(
            [old] if old is not None else (),
            _REACHABLE,
            "False",
            now=now,
            reason="NoAnswer",
            message=str(error),
        )
    elif old is not None:
        stated["conditions"] = [old]
    return [_stated(setup, stated, _HOOKS_MANAGER)]


def complain(setup: Setup, world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Report on a parent that it could not be synced, and on its controller the last error."""
    parent = world.get(ref)
    if parent is None or (isinstance(error, HookError) and error.after is not None):
        return NOTHING
    reported = HookError(error.with_body) if isinstance(error, HookError) else error
    actions = [sync_error(parent, reported, by=MANAGER, now=now), *failed(world, setup, ref, error, now)]
    return one_stage("report the error", actions, because=str(error))


def _status(controller: Obj | None) -> Obj | None:
    """Return the status of a controller, or None where its definition keeps none of our fields."""
    status: Obj = (controller.get("status") or {}) if controller is not None else {}
    return status if conditions.find(status.get("conditions") or (), "Ready") is not None else None


def _status_of_a_new_one(controller: Obj | None, now: datetime) -> Obj | None:
    """Return the status of a controller that is so new that it may not have the condition Ready yet."""
    made = moment(meta.metadata(controller).get("creationTimestamp")) if controller is not None else None
    if controller is None or made is None or now - made >= _NEW:
        return None
    return controller.get("status") or {}


def _stated(setup: Setup, status: Obj, manager: str, *, optional: bool = False) -> Apply:
    obj = setup.obj
    metadata = {"name": meta.name(obj), "uid": meta.uid(obj)}
    body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "status": status}
    return Apply(obj=body, force=True, manager=manager, subresource="status", optional=optional)


# The number of parents


class ParentCount(Struct, frozen=True, kw_only=True):
    """The number of parents of a controller, and the number in its status."""

    setup: Setup
    reported: int | None
    parents: int


def counter(setup: Setup) -> Controller[ParentCount]:
    """Return the controller that writes the number of parents to the status of a CompositeController or DecoratorController."""
    own = meta.ref(setup.obj)
    return Controller(
        # No object has a slash in its name, so no other controller has this one.
        name=f"{setup.controller_name}/tally",
        config_hash=setup.config_hash,
        watches=(
            Watch(selects=only(*setup.kind), enqueue=itself, keep=everything),
            *rule_watches(setup.parents, lambda world, change: (own,), _COUNT_DELAY),
        ),
        gather=partial(count, setup),
        plan=report_count,
        manager=MANAGER,
        at_once=1,
    )


def count(setup: Setup, world: World, ref: Ref) -> ParentCount | None:
    """Return the number of parents of a controller, or None where its status does not keep it."""
    status = _status(world.get(meta.ref(setup.obj)))
    if status is None or ref != meta.ref(setup.obj):
        return None
    return ParentCount(
        setup=setup, reported=status.get("parents"), parents=sum(_counts(setup, world).values())
    )


def _counts(setup: Setup, world: World) -> Mapping[object, int]:
    return {
        kind: world.count(kind)
        if ((EVERYTHING, EVERYTHING) in rule.selectors)
        else sum(rule.wants(obj) for obj in world.every(kind))
        for kind, rule in setup.parents.items()
    }


def report_count(view: ParentCount, answers: Answers, now: datetime) -> Plan:
    """Write the number of parents, where the status has another."""
    because = f"it has {view.parents} parents"
    if view.reported == view.parents:
        return Plan(because=because)
    return one_stage(
        "write the status", [_stated(view.setup, {"parents": view.parents}, _COUNT_MANAGER)], because=because
    )
