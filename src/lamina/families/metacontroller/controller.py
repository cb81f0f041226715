"""
Metacontroller as values: a controller for each CompositeController and DecoratorController there is.

Which there are is read off the cluster, again at each change; one whose spec
changes gives way to its next edition.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from lamina.core.controller import AnyController, Controller, Source, Watch, itself, nobody, only
from lamina.core.plan import Emit, Plan, one_stage
from lamina.core.world import World, everything
from lamina.errors import SpecError
from lamina.families.metacontroller import lifecycle
from lamina.families.metacontroller.names import COMPOSITE, DECORATOR, MANAGER, REVISION
from lamina.families.metacontroller.plan import complain, plan, questions
from lamina.families.metacontroller.recall import Memory, Recent
from lamina.families.metacontroller.setup import Setup, composite, decorator
from lamina.families.metacontroller.standing import Tally, count, tell
from lamina.families.metacontroller.view import View, child_changed, gather, parent_changed
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import Obj, Ref


class Options(Struct, frozen=True, kw_only=True):
    """How Metacontroller runs: for whom, with how many hands, and by which means children are made."""

    selector: LabelSelector = EVERYTHING
    workers: int = 5
    server_side_apply: bool = False
    field_manager: str = MANAGER
    """Under which name the server applies."""
    flush: timedelta = timedelta(minutes=30)
    """How long a parent is left alone at most."""


DEFAULTS = Options()
_SUMMING_UP = timedelta(seconds=2)
_TO_FINISH = timedelta(milliseconds=200)


def source(options: Options = DEFAULTS) -> Source:
    """Return where Metacontroller's controllers come from."""
    watch, memory = partial(Watch, concerns=nobody, keep=everything), Memory()
    return Source(
        name="metacontroller",
        watches=(watch(selects=only(*COMPOSITE)), watch(selects=only(*DECORATOR))),
        controllers=lambda world: tuple(
            one
            for setup in setups(world, options)
            for one in (controller(setup, options, memory), tally(setup))
        ),
    )


def keeper(options: Options = DEFAULTS) -> AnyController:
    """Return the controller that says on each CompositeController and DecoratorController how it does."""
    # Whoever makes one may go on to change it, as of the version it was answered with: a status
    # written in between would be a conflict, and the original never writes one.
    own = [
        Watch(selects=only(*kind), concerns=itself, keep=everything, delay=_TO_FINISH)
        for kind in (COMPOSITE, DECORATOR)
    ]
    return Controller(
        name="metacontroller",
        watches=tuple(own),
        gather=partial(_own, options),
        questions=lifecycle.questions,
        plan=lifecycle.plan,
        manager=MANAGER,
        # A kind that comes may be what one of them waits for.
        minds_kinds=True,
    )


def _own(options: Options, world: World, ref: Ref) -> lifecycle.View | None:
    obj = world.get(ref)
    if obj is None or not options.selector.matches(meta.labels(obj)):
        return None
    try:
        setup: Setup | SpecError = _setup(obj, world, options)
    except SpecError as refused:
        setup = refused
    return lifecycle.View(obj=obj, setup=setup, kinds=world.kinds)


def setups(world: World, options: Options) -> Iterator[Setup]:
    """Yield every CompositeController and DecoratorController that can run."""
    for kind in (COMPOSITE, DECORATOR):
        for obj in world.every(kind):
            if not options.selector.matches(meta.labels(obj)) or meta.is_deleting(obj):
                continue
            try:
                yield _setup(obj, world, options)
            except SpecError:
                # Its keeper says so.
                continue


def _setup(obj: Obj, world: World, options: Options) -> Setup:
    build = composite if obj["kind"] == COMPOSITE.kind else decorator
    return build(obj, world.kinds, applies_as=options.field_manager if options.server_side_apply else "")


def controller(setup: Setup, options: Options = DEFAULTS, memory: Memory | None = None) -> Controller[View]:
    """Return one CompositeController or DecoratorController as a controller that can run."""
    watches = [
        Watch(
            selects=only(*kind),
            api_version=rule.kind.api_version,
            concerns=lambda world, change: parent_changed(setup, change),
            keep=everything,
        )
        for kind, rule in setup.parents.items()
    ]
    watches += [
        Watch(
            selects=only(*kind),
            api_version=rule.kind.api_version,
            concerns=partial(child_changed, setup),
            keep=everything,
        )
        for kind, rule in setup.children.items()
    ]
    if setup.rolls:
        watches.append(
            Watch(selects=only(*REVISION), concerns=partial(child_changed, setup), keep=everything)
        )
    # What its own status says is looked at before something is said there.
    watches.append(Watch(selects=only(*setup.kind), concerns=nobody, keep=everything))
    return Controller(
        name=f"{setup.kind.kind}-{setup.name}",
        edition=edition(setup),
        watches=tuple(watches),
        gather=partial(gather, setup, recent=Recent(memory)),
        questions=questions,
        plan=plan,
        complain=partial(complain, setup),
        manager=MANAGER,
        at_once=options.workers,
        period=min(setup.resync or options.flush, options.flush),
        farewell=partial(_farewell, setup),
    )


def tally(setup: Setup) -> Controller[Tally]:
    """Return the controller that says on a CompositeController or DecoratorController for how many it works."""
    own = meta.ref(setup.obj)
    watches = [Watch(selects=only(*setup.kind), concerns=itself, keep=everything)]
    watches += [
        Watch(
            selects=only(*kind),
            api_version=rule.kind.api_version,
            concerns=lambda world, change: (own,),
            keep=everything,
            delay=_SUMMING_UP,
        )
        for kind, rule in setup.parents.items()
    ]
    return Controller(
        # No object has a slash in its name, so no other controller has this one.
        name=f"{setup.kind.kind}-{setup.name}/tally",
        edition=edition(setup),
        watches=tuple(watches),
        gather=partial(count, setup),
        plan=tell,
        manager=MANAGER,
        at_once=1,
    )


def _farewell(setup: Setup, now: datetime) -> Plan:
    events = lifecycle.stopped(setup.obj, meta.generation(setup.obj), now)
    return one_stage("tell", [Emit(event=event) for event in events], because="it is wanted no more")


def edition(setup: Setup) -> str:
    """Return what makes a controller another one: its identity, its spec, and the kinds that means here."""
    parents = [rule.kind for rule in setup.parents.values()]
    children = [rule.kind for rule in setup.children.values()]
    kinds = [[*kind[:2], *sorted(kind.subresources)] for kind in (*parents, *children)]
    return digest([meta.uid(setup.obj), setup.obj.get("spec"), kinds])
