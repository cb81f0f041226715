"""
Metacontroller as values: a controller for each CompositeController and DecoratorController there is.

Which there are is read off the cluster, again at each change; one whose spec
changes gives way to its next edition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from lamina.core.controller import AnyController, Controller, Source, Watch, nobody, only
from lamina.core.definitions import DEFINITION, names_only
from lamina.core.plan import Plan
from lamina.core.world import Change, World, everything
from lamina.errors import LaminaError, SpecError
from lamina.families.metacontroller import lifecycle
from lamina.families.metacontroller.names import COMPOSITE, DECORATOR, MANAGER, REVISION
from lamina.families.metacontroller.plan import complain, plan, questions
from lamina.families.metacontroller.setup import Setup, composite, decorator
from lamina.families.metacontroller.view import View, child_changed, gather, parent_changed
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import Obj, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How Metacontroller runs: for whom, with how many hands, and by which means children are made."""

    selector: LabelSelector = EVERYTHING
    workers: int = 5
    server_side_apply: bool = False


DEFAULTS = Options()


def source(options: Options = DEFAULTS) -> Source:
    """Return where Metacontroller's controllers come from."""
    watch = partial(Watch, concerns=nobody, keep=everything)
    return Source(
        name="metacontroller",
        watches=(watch(selects=only(*COMPOSITE)), watch(selects=only(*DECORATOR))),
        controllers=lambda world: tuple(
            controller(setup, workers=options.workers) for setup in setups(world, options)
        ),
    )


def keeper(options: Options = DEFAULTS) -> AnyController:
    """Return the controller that says on each CompositeController and DecoratorController how it does."""
    about_all = Watch(selects=only(*DEFINITION), concerns=_everyone, keep=names_only)
    own = [
        Watch(selects=only(*kind), concerns=lambda world, change: (change.ref,), keep=everything)
        for kind in (COMPOSITE, DECORATOR)
    ]
    return Controller(
        name="metacontroller",
        watches=(*own, about_all),
        gather=partial(_own, options),
        plan=lifecycle.plan,
        manager=MANAGER,
    )


def _everyone(world: World, change: Change) -> list[Ref]:
    """A definition that comes or goes concerns every controller there is: it may be what one waits for."""
    return [meta.ref(obj) for kind in (COMPOSITE, DECORATOR) for obj in world.every(kind)]


def _own(options: Options, world: World, ref: Ref) -> lifecycle.View | None:
    obj = world.get(ref)
    if obj is None or not options.selector.matches(meta.labels(obj)):
        return None
    try:
        setup: Setup | SpecError = _setup(obj, world, options)
    except SpecError as refused:
        setup = refused
    return lifecycle.View(obj=obj, setup=setup)


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
    return build(obj, world.kinds, applies=options.server_side_apply)


def controller(setup: Setup, *, workers: int = 5) -> Controller[View]:
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
    return Controller(
        name=f"{setup.kind.kind}-{setup.name}",
        edition=edition(setup),
        watches=tuple(watches),
        gather=partial(gather, setup),
        questions=questions,
        plan=plan,
        complain=_complain,
        manager=MANAGER,
        at_once=workers,
    )


def edition(setup: Setup) -> str:
    """Return what makes a controller another one: its identity, its spec, and the kinds that means here."""
    kinds = [rule.kind[:2] for rule in setup.parents.values()]
    kinds += [rule.kind[:2] for rule in setup.children.values()]
    return digest([meta.uid(setup.obj), setup.obj.get("spec"), kinds])


def _complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    return complain(world.get(ref), error, now)
