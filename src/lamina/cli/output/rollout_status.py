"""Reads the rollout status of owners from a cluster, for the commands that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import click
from msgspec import Struct, field

from lamina.cli.options.cluster_flags import not_rolled_out
from lamina.client.client import Client
from lamina.core.model.effects import Ask
from lamina.core.model.family import Family
from lamina.core.model.queries import Answer, Query
from lamina.core.model.query_rounds import decided
from lamina.core.model.refused_reads import RecordingWorld, Refusals
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.readable_status import readable_status
from lamina.errors import LaminaError, NotFound, SettingsError
from lamina.families.registry import chosen
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Ref
from lamina.runtime.cache.lister import Lister
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.snapshot import Snapshot

ASK_FOR_RIGHTS = "ask an administrator of the cluster for a role that allows it"
_ONE_NAMESPACE = "select a namespace with -n: only that namespace is asked then"


class OwnerStatuses(Struct):
    """The statuses of owners, and the refusals of what more of them might be found in."""

    found: list[OwnerStatus] = field(default_factory=list)
    refused: Refusals = field(default_factory=dict)


async def snapshot_of(client: Client, namespace: str = "") -> Snapshot:
    """Return a snapshot of a cluster, or of a namespace and of what belongs to owners there."""
    return await Snapshot.of(client, namespace, elsewhere())


async def planning_snapshot(client: Client, namespace: str) -> Snapshot:
    """Return a snapshot of a cluster; of this namespace only where all of them may not be listed."""
    return await Snapshot.of(client, namespace, elsewhere(), widens=True)


def elsewhere() -> tuple[GroupKind, ...]:
    """Return the kinds of what belongs to an owner in a namespace, and is in other namespaces."""
    return tuple(kind for family in chosen("all") for kind in family.elsewhere)


async def family_world(family: Family, snapshot: Snapshot) -> Lister:
    """Return the world of a family: everything that its sources and controllers watch."""
    running = await snapshot.controllers(family.controllers, family.sources)
    watches = [watch for source in family.sources for watch in source.watches]
    watches += [watch for controller in running for watch in controller.watches]
    return await snapshot.world(watches)


async def owner_statuses(
    client: Client, kind: GroupKind | None, namespace: str, selects: Callable[[Ref], bool]
) -> OwnerStatuses:
    """Return the statuses of the selected owners of a kind, or of all kinds; with a namespace, only of that one."""
    snapshot = await snapshot_of(client, namespace)
    statuses, unlisted, listed = OwnerStatuses(), Refusals(), set[GroupKind]()
    for family in chosen("all"):
        world, refused = await family_world(family, snapshot), Refusals()
        recording = RecordingWorld(world, refused)
        for owner in family.owners(recording):
            ref = meta.ref(owner)
            if kind is not None and GroupKind(ref.group, ref.kind) != kind:
                continue
            if namespace in ("", ref.namespace) and selects(ref):
                status = await _live_owner_status(snapshot, family, world, ref, Refusals())
                statuses.found += [status] if status is not None else []
        unlisted |= _needed(refused, family, snapshot.kinds) if namespace else refused
        listed |= recording.read
    if kind is not None and kind in unlisted:
        statuses.refused = {kind: unlisted[kind]}
    elif kind not in listed:
        # All kinds are asked for, or none that is known to have owners: those that are not known may have some.
        statuses.refused = unlisted
    return statuses


def _needed(refused: Refusals, family: Family, kinds: Kinds) -> Refusals:
    """Return the refusals that may hide owners in a namespace: not those of most kinds that are in none."""
    named = {one: kinds.preferred(one) for one in refused}
    return {
        one: refused[one]
        for one, kind in named.items()
        if kind is None or kind.namespaced or f"{kind.plural}.{one.group}" in family.shared_definitions
    }


async def _live_owner_status(
    snapshot: Snapshot, family: Family, world: Lister, ref: Ref, refused: Refusals
) -> OwnerStatus | None:
    """Return the rollout status of an owner of a family, from its objects as they are now."""

    async def answer(ask: Ask) -> Mapping[Query, Answer]:
        return await snapshot.ask(ask.queries)

    return await drive(
        decided(lambda answers: readable_status(family, world, ref, answers, refused), family.name), answer
    )


async def owner_status_of(client: Client, ref: Ref) -> tuple[Family, Lister, OwnerStatus]:
    """
    Return the rollout status of an owner, with the family that reports it and that family's world.

    Of several families it is the one that rolls the owner out, and not one that decorates it.
    """
    snapshot, refused = await snapshot_of(client, ref.namespace), Refusals()
    found: list[tuple[Family, Lister, OwnerStatus]] = []
    for family in chosen("all"):
        world = await family_world(family, snapshot)
        owner_status = await _live_owner_status(snapshot, family, world, ref, refused)
        if owner_status is not None:
            found.append((family, world, owner_status))
            if owner_status.goal and not owner_status.is_decorated:
                break
    if found:
        return min(found, key=lambda one: (one[2].is_decorated, not one[2].goal))
    kind = GroupKind(ref.group, ref.kind)
    if kind in refused:
        raise not_readable(f"the status of {ref} is not known", {kind: refused[kind]})
    if refused and await exists(client, ref):
        raise not_readable(f"whether a family rolls out {ref} is not known", refused)
    raise not_rolled_out(ref)


async def exists(client: Client, ref: Ref) -> bool:
    """Say whether an object exists; raises if it may not be read."""
    try:
        await client.get(ref)
    except NotFound:
        return False
    return True


async def is_gone(client: Client, ref: Ref) -> bool:
    """Say whether an object is known not to exist; a read that fails says nothing about it."""
    try:
        return not await exists(client, ref)
    except LaminaError:
        return False


async def readable_owner_status_of(client: Client, ref: Ref) -> tuple[Family, Lister, OwnerStatus]:
    """Return the same, or raise an error if the revisions of the owner may not be read."""
    family, world, owner_status = await owner_status_of(client, ref)
    if not owner_status.is_goal_read:
        raise SettingsError(
            f"the revisions of {ref} are not known: {'; '.join(owner_status.unread)}", hint=ASK_FOR_RIGHTS
        )
    return family, world, owner_status


def not_readable(what: str, refused: Refusals, *, namespace: str | None = "") -> LaminaError:
    """Return the error that something is not known, because of refusals; without a namespace, one may help."""
    reasons = "; ".join(dict.fromkeys(error.message for error in refused.values()))
    return SettingsError(
        f"{what}: {reasons}", hint=ASK_FOR_RIGHTS if namespace is not None else _ONE_NAMESPACE
    )


def warn_unread(statuses: Iterable[OwnerStatus]) -> None:
    """Print what may not be read, each once, to standard error."""
    warn_each(reason for one in statuses for reason in one.unread)


def warn_each(reasons: Iterable[str]) -> None:
    """Print these reasons, each once, to standard error."""
    for reason in dict.fromkeys(reasons):
        click.echo(f"warning: {reason}", err=True)
