"""
Clusters of a hub: runs the agent of each, registers clusters and removes them again.

An agent runs against its own cluster and calls the hub by name. On the hub it reads
one namespace, which has the name of its cluster. What is registered, and which
controllers an agent has, are defined by the family's `Agents` value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import orjson

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.control_plane.clusters import Hub
from lamina.core.model.agents import AgentOptions, Agents, AgentSpec
from lamina.errors import AlreadyExists, NotFound, SettingsError, UnknownKind
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.runtime.cache.discovery import DISCOVERY_PERIOD
from lamina.runtime.controller.manager import Manager
from lamina.runtime.metrics.recorder import Recorder
from lamina.server.http.cluster_router import FIRST_CLUSTER
from lamina.server.identity import LOOPBACK, Identity

_FEW_WORKERS: Final = AgentOptions(workers=4)
_RARE_DISCOVERY: Final = 3600.0
"""The period of discovery, in seconds, where definitions are watched."""


def agent(
    agents: Agents,
    spec: AgentSpec,
    client: Client,
    hub: Client,
    *,
    clock: Clock,
    meters: Callable[[str], Recorder] = lambda name: Recorder(),
    discovery_period: float = DISCOVERY_PERIOD,
) -> Manager:
    """Return the manager of an agent, ready to be run."""
    return Manager(
        client,
        agents.controllers(spec),
        clock,
        log.bind(agent=spec.cluster),
        meters=meters,
        discovery_period=discovery_period,
        others={agents.hub: hub},
    )


def check_name(agents: Agents, name: str) -> None:
    """Raise SettingsError if no cluster may join under a name."""
    if problem := agents.joining.name_problem(name):
        raise SettingsError(f"no cluster may be called {name!r}: {problem}", hint="give it another name")


async def join(agents: Agents, hub: Client, name: str, address: str = "") -> None:
    """Register a cluster with a hub, accepted; one that is registered gets the address it has now."""
    *before, cluster = agents.registration(name, address)
    for obj in before:
        with suppress(AlreadyExists):
            await hub.create(obj)
    try:
        await hub.create(cluster)
    except AlreadyExists:
        ref = meta.ref(cluster)
        if patch := agents.relocation(await hub.get(ref), address):
            await hub.patch(ref, patch)


async def check_known(agents: Agents, hub: Client, name: str, server: str) -> None:
    """Check that a cluster is registered with a hub; SettingsError says what is missing."""
    ref = agents.cluster(name)
    try:
        known = await hub.get(ref)
    except UnknownKind:
        raise SettingsError(
            f"{server} is no hub: it serves no {ref.kind}",
            hint=f"make it one with `lamina run --families {agents.family}`",
        ) from None
    except NotFound:
        raise SettingsError(
            f"cluster {name!r} is not registered with the hub at {server}",
            hint="register and accept it with --join, if you may, or ask to join with --bootstrap-kubeconfig",
        ) from None
    if not agents.is_accepted(known):
        log.warning("the hub has not accepted this cluster yet", cluster=name)


async def version(client: Client) -> str:
    """Return the version that a cluster's server reports."""
    reported = orjson.loads(await client.request("GET", "/version"))
    return str(reported.get("gitVersion") or "")


async def leave(agents: Agents, hub: Client, name: str) -> None:
    """
    Remove a cluster that no longer exists from a hub, with everything the hub had for it.

    What its agent applied went with the cluster, so the agent's finalizers are
    removed here. A namespace that the hub did not make for the cluster stays.
    """
    # First: objects are assigned to the cluster for as long as it is registered.
    await _delete(hub, agents.cluster(name))
    await _clear(agents, hub, name)


async def _clear(agents: Agents, hub: Client, name: str) -> None:
    """Delete what a hub has for a cluster."""
    for obj in (await hub.list(agents.assigned, name)).items:
        left = [one for one in meta.finalizers(obj) if one != agents.finalizer]
        with suppress(NotFound):
            await hub.patch(meta.ref(obj), {"metadata": {"finalizers": left}})
        await _delete(hub, meta.ref(obj))
    await _delete(hub, agents.lease(name))
    namespace = Ref("v1", "Namespace", "", name)
    with suppress(NotFound):
        if agents.owns_namespace(await hub.get(namespace), name):
            await _delete(hub, namespace)


class EmbeddedHub:
    """
    A first cluster that is the hub of the other clusters; `address` returns the URL of one.

    Agents reach it without HTTP, each as its own user.
    """

    def __init__(
        self, agents: Agents, first: EmbeddedCluster, address: Callable[[str], str], version: str
    ) -> None:
        self._agents, self._first, self._client = agents, first, first.client(LOOPBACK)
        self._address, self._version = address, version
        self.crd_providers = (agents,)

    async def join(self, name: str) -> None:
        """Register a cluster."""
        await join(self._agents, self._client, name, self._address(name))

    async def leave(self, name: str) -> None:
        """Remove a cluster."""
        await leave(self._agents, self._client, name)

    def agent(self, name: str, cluster: EmbeddedCluster) -> Manager:
        """Return the agent of a cluster, ready to be run."""
        # The hub's address is a constant: the server may listen elsewhere after a restart and is the same hub.
        spec = AgentSpec(cluster=name, address=FIRST_CLUSTER, version=self._version, options=_FEW_WORKERS)
        return agent(
            self._agents,
            spec,
            cluster.client(Identity(*self._agents.local_user)),
            self._first.client(identity(self._agents, name)),
            clock=cluster.clock,
            discovery_period=_RARE_DISCOVERY,
        )


class CombinedHub:
    """The parts of one hub, each with objects of its own for a cluster."""

    def __init__(self, *parts: Hub) -> None:
        self._parts = parts

    async def join(self, name: str) -> None:
        """Register a cluster with each part."""
        for part in self._parts:
            await part.join(name)

    async def leave(self, name: str) -> None:
        """Remove a cluster from each part; each of them may be repeated."""
        for part in self._parts:
            await part.leave(name)


class FormerHub:
    """A first cluster that is no hub now, and may have been one at an earlier start."""

    def __init__(self, agents: Sequence[Agents], first: EmbeddedCluster) -> None:
        self._agents, self._client = agents, first.client(LOOPBACK)

    async def join(self, name: str) -> None:
        """Do nothing: at a start as a hub all clusters join."""

    async def leave(self, name: str) -> None:
        """Delete what the hub had for a cluster, unless another cluster is registered under its name by now."""
        for one in self._agents:
            registered = one.cluster(name)
            try:
                known = await self._client.get(registered)
            except (UnknownKind, NotFound):
                continue
            if any(address.endswith(f"/clusters/{name}") for address in one.addresses(known)):
                # Last: after a crash in between, the cluster object marks the cleanup as incomplete.
                await _clear(one, self._client, name)
                await _delete(self._client, registered)


def identity(agents: Agents, name: str) -> Identity:
    """Return the user that the agent of a cluster is on its hub."""
    return Identity(*agents.hub_user(name))


async def _delete(hub: Client, ref: Ref) -> None:
    with suppress(NotFound):
        await hub.delete(ref)
