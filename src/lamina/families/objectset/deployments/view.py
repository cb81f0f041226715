"""Gathers the view of one ObjectDeployment: its sets, oldest first, and what each of them contains and controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from lamina.core.model.world import World
from lamina.core.ownership.controller_ref import controls
from lamina.core.parse import template_selector
from lamina.errors import SpecError
from lamina.families.objectset.api import DeploymentSpec, read_deployment
from lamina.families.objectset.contents import slices_of
from lamina.families.objectset.labels import CLUSTER_DEPLOYMENT, CLUSTER_SET, DEPLOYMENT, SET
from lamina.families.objectset.set_facts import SetFacts, facts
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Obj, Ref

SET_OF = {DEPLOYMENT.kind: SET, CLUSTER_DEPLOYMENT.kind: CLUSTER_SET}
"""The kind of the sets of a kind of deployments."""


class View(Struct, frozen=True, kw_only=True):
    """Everything that decides about one deployment; `error` says what is wrong with its spec."""

    obj: Obj
    kinds: Kinds
    spec: DeploymentSpec | None
    error: str = ""
    sets: tuple[SetFacts, ...] = ()
    """The sets that it controls, oldest first; without those that are being deleted."""
    owned: tuple[Obj, ...] = ()
    """All sets that it controls: the numbers of those that are being deleted are not given again."""
    slices: Mapping[str, Obj] = field(default_factory=dict)
    named: Mapping[str, Obj] = field(default_factory=dict)
    """All sets of its namespace whose name is its own with a hash: a name of a new set may be taken."""

    @property
    def valid_spec(self) -> DeploymentSpec:
        assert self.spec is not None, "a deployment whose spec cannot be read is reported as invalid"
        return self.spec

    @property
    def is_paused(self) -> bool:
        """Say whether it is paused, whatever else its spec has."""
        return (self.obj.get("spec") or {}).get("paused") is True

    @property
    def set_kind(self) -> GroupKind:
        return SET_OF[self.obj["kind"]]


def gather(world: World, ref: Ref) -> View | None:
    """Return the view of a deployment, or None where it does not exist."""
    obj = world.get(ref) if ref.kind in SET_OF else None
    if obj is None:
        return None
    owned = [one for one in world.owned_by(meta.uid(obj), SET_OF[ref.kind]) if controls(meta.uid(obj), one)]
    spec, error = None, ""
    try:
        stated = read_deployment(obj)
        template_selector(stated.selector, stated.template.metadata.labels)
        spec = stated
    except SpecError as wrong:
        error = str(wrong)
    slices = slices_of(world, owned)
    # What it controls is its own, also after an edit of the selector.
    sets = [one for one in owned if not meta.is_deleting(one)]
    return View(
        obj=obj,
        kinds=world.kinds,
        spec=spec,
        error=error,
        sets=facts(sets, slices, world.kinds),
        owned=tuple(owned),
        slices=slices,
        named={
            meta.name(one): one
            for one in world.by_index(SET_OF[ref.kind], by_stem, f"{ref.namespace}/{ref.name}")
        },
    )


def by_stem(obj: Obj) -> Iterator[str]:
    """Index a set by its name without the hash, which is the name of a deployment."""
    yield f"{meta.namespace(obj)}/{meta.name(obj).rpartition('-')[0]}"
