"""Metacontroller, as a family among others."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.core.family import Account, Family
from lamina.core.plan import Plan
from lamina.core.world import World
from lamina.errors import LaminaError, SpecError
from lamina.families.metacontroller import rollback as way_back
from lamina.families.metacontroller.controller import DEFAULTS, Options, keeper, setups, source
from lamina.families.metacontroller.crds import definitions
from lamina.families.metacontroller.rights import rights
from lamina.families.metacontroller.view import View, gather
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
    for setup in setups(world, options):
        for kind, rule in setup.parents.items():
            yield from (obj for obj in world.every(kind) if rule.wants(obj))


def _view(world: World, ref: Ref, options: Options) -> View | None:
    """Return a parent as the controller sees it that rolls its children, or as any sees it."""
    found: list[View] = []
    for setup in setups(world, options):
        try:
            view = gather(setup, world, ref)
        except SpecError:
            continue
        if view is not None:
            found.append(view)
    return next((view for view in found if view.setup.rolls), found[0] if found else None)


def _account(world: World, ref: Ref, options: Options) -> Account | None:
    view = _view(world, ref, options)
    return way_back.account(view) if view is not None else None


def _rollback(world: World, ref: Ref, to: int | None, options: Options) -> Plan:
    view = _view(world, ref, options)
    if view is None:
        raise LaminaError(f"{ref} is no parent of any controller")
    return way_back.rollback(view, to)
