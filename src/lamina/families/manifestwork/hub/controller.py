"""The controllers of a hub as values: their options, their watches, and what a change of an object enqueues."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from msgspec import Struct

from lamina.core.model.controller import AnyController, Controller, Watch, only
from lamina.core.model.state import State
from lamina.core.model.world import Change, World
from lamina.core.rollout.revision_object import CONTROLLER_REVISION, CONTROLLER_REVISION_VERSION
from lamina.families.manifestwork.hub.owner_status import owner_status
from lamina.families.manifestwork.hub.plan import complain, plan, queries
from lamina.families.manifestwork.hub.revision import keep_revision, stored_revision
from lamina.families.manifestwork.hub.ttl import FINISHED
from lamina.families.manifestwork.hub.view import View, by_owner, by_placements, gather
from lamina.families.manifestwork.hub.work import keep_metadata, read_work
from lamina.families.manifestwork.labels import (
    DECISION,
    MANAGER,
    MANIFEST_LIMIT,
    PLACEMENT,
    PLACEMENT_VERSION,
    REPLICA_SET,
    REPLICA_SET_VERSION,
    WORK,
    WORK_VERSION,
    by_placement,
    owner_of,
)
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_COALESCE = timedelta(milliseconds=100)
"""The reports of a thousand agents arrive one by one; those within this time lead to one pass."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of a hub: `workers` reconcile at once, and every replica set is reconciled each `flush`."""

    workers: int = 5
    flush: timedelta = timedelta(minutes=30)
    schedules: bool = True
    """Whether it selects clusters for placements; if not, another scheduler does."""
    registers: bool = True
    """Whether it registers clusters and their sets; if not, another controller does."""
    manifest_limit: int = MANIFEST_LIMIT
    """The largest number of bytes that the manifests of a work may have."""
    replica_sets: bool = True
    """Whether replica sets are rolled out; if not, admission refuses them."""
    cleans_up: bool = True
    """Whether completed works are deleted after their time to live."""
    unrecorded: str = ""
    """Why the status cannot have revisions and aborts, which rules out an abort; empty where it can."""


DEFAULTS = Options()


def controllers(options: Options) -> tuple[AnyController, ...]:
    """Return the controllers that roll out replica sets, and that delete completed works."""
    return (*((hub(options),) if options.replica_sets else ()), *((FINISHED,) if options.cleans_up else ()))


def hub(options: Options = DEFAULTS) -> Controller[View]:
    """Return the controller that rolls out replica sets."""
    return Controller(
        name="manifestworkreplicaset",
        watches=_WATCHES,
        gather=partial(gather, unrecorded=options.unrecorded) if options.unrecorded else gather,
        queries=queries,
        plan=plan,
        complain=complain,
        manager=MANAGER,
        at_once=options.workers,
        period=options.flush,
        owner_state=_owner_state,
    )


def _owner_state(world: World, ref: Ref) -> State | None:
    view = gather(world, ref)
    return owner_status(view).state if view is not None else None


# The watches


def on_change(world: World, change: Change) -> Iterable[Ref]:
    """Queue a replica set at once, unless only its status changed, which the hub usually wrote itself."""
    return () if _is_only_status(change) else (change.ref,)


def on_status_change(world: World, change: Change) -> Iterable[Ref]:
    """Queue a replica set whose status changed: another client may have written it."""
    return (change.ref,) if _is_only_status(change) else ()


def _is_only_status(change: Change) -> bool:
    if change.before is None or change.after is None:
        return False
    # The generation stands for the spec.
    was, now = meta.metadata(change.before), meta.metadata(change.after)
    version = now.get("resourceVersion")
    return version != was.get("resourceVersion") and {**was, "resourceVersion": version} == now


def owners(world: World, change: Change) -> Iterable[Ref]:
    """Queue the replica set that a work or a revision belongs to, and the one it belonged to."""
    return {ref for obj in change.versions for ref in _owners(obj)}


def _owners(obj: Obj) -> Iterable[Ref]:
    for key in by_owner(obj):
        namespace, name = owner_of(key)
        yield Ref(REPLICA_SET_VERSION, REPLICA_SET.kind, namespace, name)
    owner = meta.controller_of(obj)
    if owner is not None and owner["kind"] == REPLICA_SET.kind:
        yield Ref(REPLICA_SET_VERSION, REPLICA_SET.kind, meta.namespace(obj), owner["name"])


def referencing_placement(world: World, change: Change) -> Iterable[Ref]:
    """Queue the replica sets that reference a placement."""
    return _referencing(world, {f"{change.ref.namespace}/{change.ref.name}"})


def referencing_placement_of_decision(world: World, change: Change) -> Iterable[Ref]:
    """Queue the replica sets that reference the placement of a decision, and the one it had before."""
    return _referencing(world, {key for obj in change.versions for key in by_placement(obj)})


def _referencing(world: World, keys: Iterable[str]) -> Iterable[Ref]:
    return {meta.ref(one) for key in keys for one in world.by_index(REPLICA_SET, by_placements, key)}


_REPLICA_SETS = partial(Watch, selects=only(*REPLICA_SET), api_version=REPLICA_SET_VERSION)
_WATCHES = (
    _REPLICA_SETS(enqueue=on_change),
    _REPLICA_SETS(enqueue=on_status_change, delay=_COALESCE),
    Watch(
        selects=only(*WORK),
        api_version=WORK_VERSION,
        enqueue=owners,
        keep=keep_metadata,
        derive=read_work,
        delay=_COALESCE,
    ),
    Watch(selects=only(*PLACEMENT), api_version=PLACEMENT_VERSION, enqueue=referencing_placement),
    Watch(selects=only(*DECISION), api_version=PLACEMENT_VERSION, enqueue=referencing_placement_of_decision),
    Watch(
        selects=only(*CONTROLLER_REVISION),
        api_version=CONTROLLER_REVISION_VERSION,
        enqueue=owners,
        keep=keep_revision,
        derive=stored_revision,
    ),
)
