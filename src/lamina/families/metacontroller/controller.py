"""
Metacontroller as values: a controller for each CompositeController and DecoratorController.

They are computed from the cluster at each change; one whose spec changes is
replaced by another of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from lamina.core.model.controller import AnyController, Controller, Source, Watch, itself, no_keys, only
from lamina.core.model.memo import MemoStore
from lamina.core.model.plan import Emit, Plan, one_stage
from lamina.core.model.state import State
from lamina.core.model.world import World, everything
from lamina.errors import SpecError
from lamina.families.metacontroller import lifecycle
from lamina.families.metacontroller.compile import Setup, composite, decorator
from lamina.families.metacontroller.labels import COMPOSITE, DECORATOR, MANAGER
from lamina.families.metacontroller.sync.controller_status import complain, counter
from lamina.families.metacontroller.sync.gather import gather
from lamina.families.metacontroller.sync.plan import plan, queries
from lamina.families.metacontroller.sync.watches import watches
from lamina.objects import meta
from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import Obj, Ref


class Options(Struct, frozen=True, kw_only=True):
    """How Metacontroller runs: for which controllers, with how many workers, and how children are written."""

    selector: LabelSelector = EVERYTHING
    workers: int = 5
    server_side_apply: bool = False
    field_manager: str = MANAGER
    """Field manager name for server-side apply."""
    flush: timedelta = timedelta(minutes=30)
    """After which time every parent is reconciled again."""
    unstored: str = ""
    """Why the status of controllers is not stored; empty where it is."""


OwnerState: TypeAlias = Callable[[Setup, World, Ref], State | None]
"""Returns the state of a parent of a controller."""

DEFAULTS = Options()
_STATUS_DELAY = timedelta(milliseconds=200)


def source(options: Options = DEFAULTS, owner_state: OwnerState | None = None) -> Source:
    """Return the source of Metacontroller's controllers; they share one store of memos."""
    watch, memos = partial(Watch, enqueue=no_keys, keep=everything), MemoStore()
    return Source(
        name="metacontroller",
        watches=(watch(selects=only(*COMPOSITE)), watch(selects=only(*DECORATOR))),
        controllers=lambda world: tuple(
            one
            for setup in setups(world, options)
            for one in (controller(setup, options, memos, owner_state), counter(setup))
        ),
    )


def status_controller(options: Options = DEFAULTS) -> AnyController:
    """Return the controller that writes the status of each CompositeController and DecoratorController."""
    # A client that creates one may update it with the version it got: a status written in
    # between would be a conflict, and upstream never writes one.
    own = [
        Watch(selects=only(*kind), enqueue=itself, keep=everything, delay=_STATUS_DELAY)
        for kind in (COMPOSITE, DECORATOR)
    ]
    return Controller(
        name="metacontroller",
        watches=tuple(own),
        gather=partial(_own, options),
        queries=lifecycle.queries,
        plan=lifecycle.plan,
        manager=MANAGER,
        # One of them may wait for a kind that is served now.
        resync_on_discovery=True,
    )


def _own(options: Options, world: World, ref: Ref) -> lifecycle.View | None:
    obj = world.get(ref)
    if obj is None or not options.selector.matches(meta.labels(obj)):
        return None
    try:
        setup: Setup | SpecError = _setup(obj, world, options)
    except SpecError as refused:
        setup = refused
    return lifecycle.View(obj=obj, setup=setup, kinds=world.kinds, unstored=options.unstored)


def setups(world: World, options: Options) -> Iterator[Setup]:
    """Yield every CompositeController and DecoratorController that can run."""
    for kind in (COMPOSITE, DECORATOR):
        for obj in world.every(kind):
            if not options.selector.matches(meta.labels(obj)) or meta.is_deleting(obj):
                continue
            try:
                yield _setup(obj, world, options)
            except SpecError:
                # The status reports it.
                continue


def _setup(obj: Obj, world: World, options: Options) -> Setup:
    build = composite if obj["kind"] == COMPOSITE.kind else decorator
    return build(obj, world.kinds, applies_as=options.field_manager if options.server_side_apply else "")


def controller(
    setup: Setup,
    options: Options = DEFAULTS,
    memos: MemoStore | None = None,
    owner_state: OwnerState | None = None,
) -> AnyController:
    """Return one CompositeController or DecoratorController as a controller that can run."""
    return Controller(
        name=setup.controller_name,
        config_hash=setup.config_hash,
        watches=watches(setup),
        gather=partial(gather, setup, memos=memos if memos is not None else MemoStore()),
        queries=queries,
        plan=plan,
        complain=partial(complain, setup),
        manager=MANAGER,
        at_once=options.workers,
        period=min(setup.resync or options.flush, options.flush),
        on_removed=partial(_stopped, setup),
        owner_state=partial(owner_state, setup) if owner_state is not None else None,
    )


def _stopped(setup: Setup, now: datetime) -> Plan:
    events = lifecycle.stopped(setup.obj, meta.generation(setup.obj), now)
    return one_stage("emit events", [Emit(event=event) for event in events], because="it has stopped")
