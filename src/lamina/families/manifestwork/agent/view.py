"""All that the plan of one work depends on: its manifests, its record, and the kinds that its cluster serves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, cast

from msgspec import Struct

from lamina.core.model.world import Change, World, derived
from lamina.families.manifestwork.agent import api
from lamina.families.manifestwork.agent.api import Terms
from lamina.families.manifestwork.agent.labels import HUB, Agent
from lamina.families.manifestwork.agent.manifest import Manifest, resolved
from lamina.families.manifestwork.agent.reported_status import Reported, find_at, reported
from lamina.families.manifestwork.agent.rivals import Rivals, rivals, statements
from lamina.families.manifestwork.agent.shared_resources import Sharers, sharers
from lamina.families.manifestwork.labels import APPLIED_WORK, WORK
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kinds
from lamina.objects.types import Condition, Obj, Ref


class View(Struct, frozen=True, kw_only=True):
    """One work."""

    agent: Agent
    work: Obj
    record: Obj | None
    terms: Terms
    manifests: tuple[Manifest, ...]
    kinds: Kinds
    watched: frozenset[tuple[str, str]]
    """The apiVersions and kinds that are watched; objects of others are read periodically."""

    reported: Reported
    """What its status reports of its manifests."""
    sharers: Sharers
    rivals: Rivals

    @property
    def generation(self) -> int:
        return meta.generation(self.work)

    @property
    def status(self) -> Obj:
        return self.work.get("status") or {}

    def is_complete(self, manifest: Manifest) -> bool:
        """Say whether the work, or this manifest of it, completed at this generation."""
        both = (self.status.get("conditions") or (), self.reported.conditions(manifest))
        return any(self._is_true(reported, "Complete") for reported in both)

    def is_applied(self, manifest: Manifest) -> bool:
        """Say whether a manifest is reported as applied at this generation."""
        return self._is_true(self.reported.conditions(manifest), "Applied")

    def _is_true(self, reported: Sequence[Condition], name: str) -> bool:
        found = find_at(reported, name, self.generation)
        return found is not None and found["status"] == "True"


def gather(agent: Agent, world: World, ref: Ref) -> View | None:
    """Return the view of a work, or None if it does not exist."""
    work = world.get(ref)
    if work is None or (ref.group, ref.kind) != tuple(WORK) or ref.namespace != agent.cluster:
        return None
    terms, record = api.terms(work), world.get(agent.record_ref(ref.name))
    return View(
        agent=agent,
        work=work,
        record=record,
        terms=terms,
        manifests=resolved(api.manifests(work), terms, world.kinds),
        kinds=world.kinds,
        watched=_watched(agent, world),
        reported=reported(work.get("status") or {}),
        sharers=sharers(agent, world, record),
        rivals=rivals(agent, world, work),
    )


def _by_kinds(work: Obj) -> tuple[str, Hashable]:
    return meta.namespace(work), derived(statements, work).kinds


def _watched(agent: Agent, world: World) -> frozenset[tuple[str, str]]:
    # Counted as works change, and not in each pass: works are many, and their kinds few.
    groups = world.on(HUB).grouped(WORK, _by_kinds, agent.cluster)
    used: set[tuple[str, str]] = set()
    for kinds in groups:
        used |= cast(frozenset[tuple[str, str]], kinds)
    if len(used) > agent.options.watches:
        used = set(sorted(used)[: agent.options.watches])
    return frozenset(used)


def work_of_record(agent: Agent, world: World, change: Change) -> Iterable[Ref]:
    """A change of a record enqueues its work."""
    name = change.ref.name
    if change.kind.group_kind != APPLIED_WORK or not name.startswith(f"{agent.hub}-"):
        return ()
    return (agent.work_ref(name.removeprefix(f"{agent.hub}-")),)


def fraction_of(value: Any) -> float:
    """Return a number from 0 to 1 that depends on a value alone: jitter that stays the same."""
    return int(digest(value)[:8], 16) / 0xFFFFFFFF
