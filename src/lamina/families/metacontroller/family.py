"""Metacontroller, as a family among others."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.core.family import Account, Family
from lamina.core.history import History
from lamina.core.plan import Plan
from lamina.core.world import World
from lamina.errors import LaminaError, SpecError
from lamina.families.metacontroller import rollback as way_back
from lamina.families.metacontroller.controller import DEFAULTS, Options, keeper, setups, source
from lamina.families.metacontroller.crds import definitions
from lamina.families.metacontroller.rights import rights
from lamina.families.metacontroller.view import View, gather
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def family(options: Options = DEFAULTS) -> Family:
    """Return Metacontroller, run with these options."""
    return Family(
        name="metacontroller",
        definitions=definitions,
        controllers=(keeper(options),),
        sources=(source(options),),
        owners=lambda world: tuple(_owners(world, options)),
        account=lambda world, ref: _account(world, ref, options),
        rollback=lambda world, ref, to: _rollback(world, ref, to, options),
        rights=rights,
        edited=("controllerrevisions.metacontroller.k8s.io",),
    )


def _owners(world: World, options: Options) -> Iterator[Obj]:
    """Yield the parents of all controllers, each once, however many work for it."""
    seen: set[str] = set()
    for setup in setups(world, options):
        for kind, rule in setup.parents.items():
            for obj in world.every(kind):
                if rule.wants(obj) and meta.uid(obj) not in seen:
                    seen.add(meta.uid(obj))
                    yield obj


def _view(world: World, ref: Ref, options: Options) -> View | SpecError | None:
    """Return a parent as the controller sees it that rolls its children, or as any sees it; or what is wrong with it."""
    found: list[View] = []
    refused: SpecError | None = None
    for setup in setups(world, options):
        try:
            view = gather(setup, world, ref)
        except SpecError as wrong:
            refused = wrong
            continue
        if view is not None:
            found.append(view)
    return next((view for view in found if view.setup.rolls), found[0] if found else refused)


def _account(world: World, ref: Ref, options: Options) -> Account | None:
    view, owner = _view(world, ref, options), world.get(ref)
    if isinstance(view, SpecError) and owner is not None:
        return Account(owner=owner, history=History(), goal=0, state="failed", because=str(view))
    return way_back.account(view) if isinstance(view, View) else None


def _rollback(world: World, ref: Ref, to: int | None, options: Options) -> Plan:
    view = _view(world, ref, options)
    if view is None:
        raise LaminaError(f"{ref} is no parent of any controller")
    if isinstance(view, SpecError):
        raise view
    return way_back.rollback(view, to)
