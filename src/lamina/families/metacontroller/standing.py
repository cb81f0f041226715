"""
What a controller's own status says of its work: whether its hook answers, what went wrong last, for how many it works.

Each is stated by itself, beside what the keeper of controllers writes, and only
when it is another than before: a thousand parents that hear the same from one
hook are one piece of news. A status that does not keep what is said there (the
original's definitions have none) is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.plan import Action, Apply, Plan, one_stage
from lamina.core.questions import Answers
from lamina.core.world import World
from lamina.errors import HookError, LaminaError
from lamina.families.metacontroller.setup import Setup
from lamina.objects import conditions, meta
from lamina.objects.selectors import EVERYTHING
from lamina.objects.times import moment, stamp
from lamina.objects.types import Made, Obj, Ref

_REACHABLE = "HookReachable"
_NEW = timedelta(seconds=5)
_AS_REPORTER, _AS_TELLER = "metacontroller-hooks", "metacontroller-tally"


def answered(world: World, setup: Setup, now: datetime) -> list[Action]:
    """Return what says that the hook answers, where that is news."""
    kept = _status(world, setup)
    status = kept or _status_of_a_new_one(world, setup, now)
    if status is None or conditions.is_true(status.get("conditions") or (), _REACHABLE):
        return []
    said = conditions.with_condition(
        (), _REACHABLE, "True", now=now, reason="Answered", message="its hooks answer"
    )
    last = status.get("lastError")
    stated: Made = {"conditions": said, **({"lastError": last} if last else {})}
    # Of a new one nobody knows yet whether its status has a place for that, and a server refuses what has none.
    return [_stated(setup, stated, _AS_REPORTER, optional=kept is None)]


def failed(world: World, setup: Setup, about: Ref, error: LaminaError, now: datetime) -> list[Action]:
    """Return what says that a parent could not be synced, where nobody else has said the same before."""
    status = _status(world, setup)
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
    return [_stated(setup, stated, _AS_REPORTER)]


def _status(world: World, setup: Setup) -> Obj | None:
    """Return what a controller's status says now, or None where nothing said there is kept."""
    obj = world.get(meta.ref(setup.obj))
    status: Obj = (obj.get("status") or {}) if obj is not None else {}
    return status if conditions.find(status.get("conditions") or (), "Ready") is not None else None


def _status_of_a_new_one(world: World, setup: Setup, now: datetime) -> Obj | None:
    """Return what the status of a controller says that may be too new for its keeper to have said anything."""
    obj = world.get(meta.ref(setup.obj))
    made = moment(meta.metadata(obj).get("creationTimestamp")) if obj is not None else None
    return (obj.get("status") or {}) if obj is not None and made is not None and now - made < _NEW else None


def _stated(setup: Setup, status: Obj, manager: str, *, optional: bool = False) -> Apply:
    obj = setup.obj
    metadata = {"name": meta.name(obj), "uid": meta.uid(obj)}
    body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "status": status}
    return Apply(obj=body, force=True, manager=manager, subresource="status", optional=optional)


# For how many it works


class Tally(Struct, frozen=True, kw_only=True):
    """How many parents a controller has, and how many its status says."""

    setup: Setup
    said: int | None
    parents: int


def count(setup: Setup, world: World, ref: Ref) -> Tally | None:
    """Return how many parents a controller has, or None where that is not to be said."""
    status = _status(world, setup)
    if status is None or ref != meta.ref(setup.obj):
        return None
    return Tally(setup=setup, said=status.get("parents"), parents=sum(_counts(setup, world).values()))


def _counts(setup: Setup, world: World) -> Mapping[object, int]:
    return {
        kind: world.count(kind)
        if ((EVERYTHING, EVERYTHING) in rule.selectors)
        else sum(rule.wants(obj) for obj in world.every(kind))
        for kind, rule in setup.parents.items()
    }


def tell(view: Tally, answers: Answers, now: datetime) -> Plan:
    """Say for how many a controller works, where its status says another number."""
    because = f"it works for {view.parents}"
    if view.said == view.parents:
        return Plan(because=because)
    return one_stage("say so", [_stated(view.setup, {"parents": view.parents}, _AS_TELLER)], because=because)
