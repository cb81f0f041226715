"""`lamina uninstall`: removes what controllers left on a cluster, and leaves the objects of users."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import click

from lamina.cli.options.cluster_flags import cluster_options, load_access, with_client
from lamina.cli.options.run_flags import TIME
from lamina.cli.options.upstream_flags import upstream_leases, upstream_namespace_option
from lamina.client.client import Client
from lamina.core.model.agents import Agents
from lamina.core.model.family import Family
from lamina.deploy import uninstall as decisions
from lamina.errors import (
    Conflict,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    SettingsError,
    Unavailable,
    UnknownKind,
)
from lamina.families.registry import agents, chosen
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.leader_election_lock import lease_ref

_TRIES, _PAUSE = 10, 1.0
_LOOK = 5.0
"""After how many seconds a Lease that looks expired is read again: longer than a controller takes to renew one."""
_MANY = 3
"""From how many objects of a kind on they are counted and not named."""


@click.command()
@click.option(
    "--families", metavar="NAMES", default="all", show_default=True, help="Families, comma-separated."
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="lamina-system",
    show_default=True,
    help="Namespace of the installation: of its Leases, and of the webhook's Secret.",
)
@click.option("--lease-name", metavar="NAME", default="lamina", show_default=True, help="Name of the Lease.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed.")
@click.option("--force", is_flag=True, help="Do not refuse while a Lease is held.")
@click.option("--wait", type=TIME, metavar="TIME", help="Wait this long for Leases to be released.")
@click.option(
    "--keep-finalizers",
    is_flag=True,
    help="Keep finalizers, and the Leases of clusters: the original controllers, which have the same, remove them.",
)
@upstream_namespace_option
@cluster_options
def uninstall(
    families: str,
    lease_namespace: str,
    lease_name: str,
    dry_run: bool,
    force: bool,
    wait: float | None,
    keep_finalizers: bool,
    upstream_lease_namespaces: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Remove what the controllers left on a cluster: webhook, finalizers, Secret, Leases.

    Stop the controllers and the agents first: it refuses while one of them holds
    a Lease. The objects of users and the CustomResourceDefinitions stay, and can
    be deleted afterwards, because no finalizer holds them any more.
    """
    installed = decisions.Installed(namespace=lease_namespace, lease_name=lease_name)

    selected = chosen(families)
    flags = {"upstream_lease_namespaces": upstream_lease_namespaces, "upstream_lease": True}
    originals = [
        lease_ref(one.namespace, one.name)
        for leases in upstream_leases(flags, selected).values()
        for one in leases
    ]

    async def work(client: Client) -> None:
        run = _Uninstall(client, selected, installed, dry_run, originals)
        await run.check(force, wait, keep_finalizers)
        await run.remove(keep_finalizers)

    with_client(load_access(kubeconfig, context), work)


class _Uninstall:
    """One run: it reads the cluster, and writes unless it is a dry run."""

    def __init__(
        self,
        client: Client,
        families: Sequence[Family],
        installed: decisions.Installed,
        dry_run: bool,
        originals: Sequence[Ref],
    ) -> None:
        self._client, self._families, self._installed = client, families, installed
        self._dry_run, self._originals = dry_run, originals
        has_agents = any(family.agents is not None for family in families)
        self._agents: Agents | None = agents() if has_agents else None

    async def check(self, force: bool, wait: float | None, keep_finalizers: bool) -> None:
        """Refuse while a controller or an agent holds a Lease, or an original, which needs finalizers; wait if asked."""
        deadline = monotonic() + (wait or 0)
        while not force and (held := await self._held(keep_finalizers)):
            if self._dry_run:
                click.echo(f"refused without --force: {'; '.join(held)}", err=True)
                return
            if monotonic() >= deadline:
                raise SettingsError(
                    f"a controller still runs: {'; '.join(held)}",
                    hint="stop it first (kubectl scale --replicas=0), wait for it with --wait 60s, or go on with --force",
                )
            await asyncio.sleep(_PAUSE)

    async def remove(self, keep_finalizers: bool) -> None:
        """Remove webhook, finalizers, Secret and Leases, in this order."""
        for ref in decisions.configurations(self._families):
            await self._delete(ref)
        objects, unsearched = await self._objects()
        if not keep_finalizers:
            await self._release(decisions.releases(objects, decisions.is_finalizer(self._families)))
        await self._delete(decisions.secret(self._installed))
        for ref in decisions.own_leases(await self._leases(), self._installed):
            await self._delete(ref)
        for ref in decisions.held_for_originals(await self._upstream(), self._installed):
            await self._delete(ref)
        # The original agents, which take over with the finalizers, renew the Leases of clusters.
        for _, lease in [] if keep_finalizers else await self._cluster_leases():
            await self._delete(lease)
        if unsearched:
            click.echo(
                f"not searched for finalizers, because they may not be listed: {', '.join(unsearched)}"
            )
        if left := decisions.remainder(objects, self._families):
            click.echo(f"left: {', '.join(left)}")
            click.echo("delete them and their definitions with `lamina crds | kubectl delete -f -`")

    async def _held(self, keep_finalizers: bool) -> list[str]:
        """Return which Leases are held; one that looks expired is read twice, because clocks differ."""
        first = await self._read(keep_finalizers)
        held = decisions.held(first, self._installed, datetime.now(UTC), {})
        before = decisions.versions(first, self._installed)
        if held or not before:
            return held
        await asyncio.sleep(_LOOK)
        again = await self._read(keep_finalizers)
        return decisions.held(again, self._installed, datetime.now(UTC), before)

    async def _read(self, keep_finalizers: bool) -> decisions.Reading:
        """Read the Leases; those of agents and originals only if finalizers are removed, which they set again."""
        controllers = await self._leases()
        if keep_finalizers:
            return decisions.Reading(controllers=controllers)
        pairs = []
        for cluster, ref in await self._cluster_leases():
            with suppress(NotFound):
                pairs.append((cluster, await self._client.get(ref)))
        return decisions.Reading(controllers=controllers, originals=await self._upstream(), agents=pairs)

    async def _upstream(self) -> list[Made]:
        """Return the Leases of originals that exist."""
        found = []
        for ref in self._originals:
            with suppress(NotFound):
                found.append(await self._client.get(ref))
        return found

    async def _leases(self) -> tuple[Made, ...]:
        return (await self._client.list(("coordination.k8s.io/v1", "Lease"), self._installed.namespace)).items

    async def _cluster_leases(self) -> list[tuple[Made, Ref]]:
        """Return the clusters that are registered, and the references of their Leases."""
        if self._agents is None:
            return []
        kind = self._agents.cluster("")
        try:
            found = await self._client.list((kind.api_version, kind.kind))
        except (UnknownKind, NotFound):
            return []
        return [(one, self._agents.lease(one["metadata"]["name"])) for one in found.items]

    async def _objects(self) -> tuple[list[Made], list[str]]:
        """Return the metadata of the objects of every kind that can be patched, and the kinds that may not be listed."""
        found: list[Made] = []
        unsearched: list[str] = []
        for kind in sorted(await self._client.discover(), key=lambda kind: (kind.group, kind.plural)):
            if not kind.can("list", "patch"):
                continue
            try:
                found += (await self._client.list(kind, metadata_only=True)).items
            except Forbidden:
                unsearched.append(_resource(kind))
            except (NotFound, MethodNotAllowed):
                # Its definition was deleted since discovery.
                continue
        return found, unsearched

    async def _release(self, releases: Iterable[decisions.Release]) -> None:
        """Remove finalizers, and print them by kind and finalizer."""
        by_kind: dict[tuple[str, tuple[str, ...]], list[decisions.Release]] = {}
        for one in releases:
            if not self._dry_run:
                await self._patch(one)
            by_kind.setdefault((one.ref.kind, one.removed), []).append(one)
        for (kind, removed), group in by_kind.items():
            shown = (
                ", ".join(str(one.ref) for one in group) if len(group) <= _MANY else f"{len(group)} of {kind}"
            )
            going = sum(one.is_deleting for one in group)
            note = f"; {going} of them are being deleted, and what was made for them stays" if going else ""
            self._say("removed", f"finalizer {', '.join(removed)} from {shown}{note}")

    async def _patch(self, release: decisions.Release) -> None:
        """Remove finalizers from the object as it is now; a webhook that was just deleted may refuse at first."""

        async def attempt() -> None:
            with suppress(NotFound):
                live = await self._client.get(release.ref, metadata_only=True)
                if patch := decisions.patch_of(live, release.removed):
                    await self._client.patch(release.ref, patch)

        await _retried(attempt)

    async def _delete(self, ref: Ref) -> None:
        try:
            if self._dry_run:
                await self._client.get(ref, metadata_only=True)
            else:
                await self._client.delete(ref)
        except (NotFound, UnknownKind):
            return
        self._say("deleted", str(ref))

    def _say(self, verb: str, text: str) -> None:
        click.echo(f"{verb} {text}{' (dry run)' if self._dry_run else ''}")


async def _retried(attempt: Callable[[], Awaitable[None]]) -> None:
    """Try again after a conflict, or after an error of the server such as a webhook that does not answer."""
    for left in reversed(range(_TRIES)):
        try:
            await attempt()
            return
        except (Conflict, InternalError, Unavailable):
            if not left:
                raise
        await asyncio.sleep(_PAUSE)


def _resource(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural
