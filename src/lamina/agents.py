"""
Clusters of a hub: the agent that runs for each, and how one joins the hub and leaves it.

An agent is at home on its cluster and knows the hub by name. On the hub it sees
one namespace, which has the name of its cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import orjson

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.embedded import EmbeddedCluster
from lamina.errors import AlreadyExists, NotFound, SettingsError, UnknownKind
from lamina.families.manifestwork.crds import spoke_definitions
from lamina.families.manifestwork.names import CLUSTER, CLUSTER_GROUP, CLUSTER_SET, WORK, WORK_VERSION
from lamina.families.manifestwork.placement.clusters import LEASE_NAME, NAMESPACE_LABEL
from lamina.families.manifestwork.placement.eligible import SET_LABEL
from lamina.families.manifestwork.spoke.controller import agent as controllers
from lamina.families.manifestwork.spoke.names import DEFAULTS, HUB, WORK_CLEANUP, Options, hub_hash
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.catalogue import DISCOVERS
from lamina.runtime.manager import Manager
from lamina.runtime.meter import Meter
from lamina.server.gate import FIRST
from lamina.server.request import ITSELF, Identity

_CLUSTER = f"{CLUSTER_GROUP}/v1"
_SET = f"{CLUSTER_GROUP}/v1beta2"
_DEFAULT: Final = "default"
_LABELLED: Final[Made] = {"selectorType": "ExclusiveClusterSetLabel"}
_ANY: Final[Made] = {"selectorType": "LabelSelector", "labelSelector": {}}


_AT_HOME: Final = Identity(
    "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa",
    ("system:masters", "system:serviceaccounts", "system:authenticated"),
)
_FEW: Final = Options(workers=4)
_SELDOM: Final = 3600.0
"""How often is looked what is served, in seconds, where definitions are heard of."""


class Kinds:
    """What a cluster serves for its agent's sake."""

    records: Mapping[str, Sequence[str]] = {
        "appliedmanifestworks.work.open-cluster-management.io": ("status.appliedResources",)
    }

    @staticmethod
    def definitions() -> tuple[Made, ...]:
        return spoke_definitions()


def agent(
    client: Client,
    hub: Client,
    name: str,
    *,
    address: str,
    clock: Clock,
    id: str = "",
    version: str = "",
    options: Options = DEFAULTS,
    meters: Callable[[str], Meter] = lambda name: Meter(),
    discovers: float = DISCOVERS,
) -> Manager:
    """
    Return the agent of the cluster that a hub knows by this name, ready to be run.

    `address` is where the hub is, which tells it from others with an agent on the same cluster;
    `id` is which of them this is, where it is to be the same one with another hub;
    `version` is the one that the cluster's server says it has.
    """
    return Manager(
        client,
        controllers(name, hub_hash(address), id, options=options, version=version),
        clock,
        log.bind(agent=name),
        meters=meters,
        discovers=discovers,
        others={HUB: hub},
    )


async def join(hub: Client, name: str, address: str = "") -> None:
    """Have a hub know a cluster, and accept it; it is one of those that nobody put into a set of their own."""
    for known, selector in ((_DEFAULT, _LABELLED), ("global", _ANY)):
        await _ensure(hub, _named(_SET, CLUSTER_SET.kind, known, {"clusterSelector": selector}))
    spec: Made = {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
    if address:
        spec["managedClusterClientConfigs"] = [{"url": address}]
    cluster = _named(_CLUSTER, CLUSTER.kind, name, spec)
    cluster["metadata"]["labels"] = {SET_LABEL: _DEFAULT}
    try:
        await hub.create(cluster)
    except AlreadyExists:
        await _move(hub, meta.ref(cluster), address)


async def _move(hub: Client, cluster: Ref, address: str) -> None:
    """Have a hub know where a cluster of its own is now: a server may listen elsewhere than last time."""
    said = (await hub.get(cluster)).get("spec") or {}
    known = said.get("managedClusterClientConfigs") or [{}]
    if address and all(one.get("url") != address for one in known):
        moved = [{**known[0], "url": address}, *known[1:]]
        await hub.patch(cluster, {"spec": {"managedClusterClientConfigs": moved}})


async def check_known(hub: Client, name: str, server: str) -> None:
    """See to it that a hub knows a cluster; raises what is wrong, in words for whoever has to mend it."""
    try:
        known = await hub.get(Ref(_CLUSTER, CLUSTER.kind, "", name))
    except UnknownKind:
        raise SettingsError(
            f"{server} is no hub: it serves no ManagedCluster",
            hint="make it one with `lamina run --families manifestwork`",
        ) from None
    except NotFound:
        raise SettingsError(
            f"the hub at {server} knows no cluster {name!r}",
            hint="have it known and accepted with --join, if that is yours to do",
        ) from None
    if not (known.get("spec") or {}).get("hubAcceptsClient"):
        log.warning("the hub has not accepted this cluster yet", cluster=name)


async def version(client: Client) -> str:
    """Return which version a cluster's server says it has."""
    said = orjson.loads(await client.request("GET", "/version"))
    return str(said.get("gitVersion") or "")


async def leave(hub: Client, name: str) -> None:
    """
    Have a hub forget a cluster that is no more, and everything it had for it.

    What its agent had applied went with the cluster, so nobody has to wait for an
    agent to say so. A namespace that the hub did not make for it is somebody else's,
    and stays with all that is theirs in it.
    """
    # First of all: as long as it is there, works are made for it.
    await _end(hub, Ref(_CLUSTER, CLUSTER.kind, "", name))
    await _clear(hub, name)


async def _clear(hub: Client, name: str) -> None:
    """Have a hub forget what it had for a cluster."""
    for work in (await hub.list((WORK_VERSION, WORK.kind), name)).items:
        left = [one for one in meta.finalizers(work) if one != WORK_CLEANUP]
        with suppress(NotFound):
            await hub.patch(meta.ref(work), {"metadata": {"finalizers": left}})
        await _end(hub, meta.ref(work))
    await _end(hub, Ref("coordination.k8s.io/v1", "Lease", name, LEASE_NAME))
    namespace = Ref("v1", "Namespace", "", name)
    with suppress(NotFound):
        if meta.labels(await hub.get(namespace)).get(NAMESPACE_LABEL) == name:
            await _end(hub, namespace)


class EmbeddedHub:
    """
    A first cluster that is the hub of those beside it; `address` returns where one of them is served.

    Agents reach it without HTTP, each as itself.
    """

    serves = (Kinds(),)

    def __init__(self, first: EmbeddedCluster, address: Callable[[str], str], version: str) -> None:
        self._first, self._client = first, first.client(ITSELF)
        self._address, self._version = address, version

    async def join(self, name: str) -> None:
        """Have the hub know a cluster; raises where it cannot be told."""
        await join(self._client, name, self._address(name))

    async def leave(self, name: str) -> None:
        """Have the hub forget a cluster; raises where it cannot be told, or not of everything."""
        await leave(self._client, name)

    def agent(self, name: str, cluster: EmbeddedCluster) -> Manager:
        """Return the agent of a cluster, ready to be run."""
        return agent(
            cluster.client(_AT_HOME),
            self._first.client(identity(name)),
            name,
            # Wherever this server listens next time, it is the same hub.
            address=FIRST,
            clock=cluster.clock,
            version=self._version,
            options=_FEW,
            discovers=_SELDOM,
        )


class FormerHub:
    """A first cluster that is no hub now, and may have been one at an earlier start."""

    def __init__(self, first: EmbeddedCluster) -> None:
        self._client = first.client(ITSELF)

    async def join(self, name: str) -> None:
        """Nobody has to know of it: at a start as a hub all there are join."""

    async def leave(self, name: str) -> None:
        """Have what the hub had for a cluster forgotten, unless that is a cluster of somebody else by now."""
        registered = Ref(_CLUSTER, CLUSTER.kind, "", name)
        try:
            known = (await self._client.get(registered)).get("spec") or {}
        except (UnknownKind, NotFound):
            return
        ways = known.get("managedClusterClientConfigs") or ()
        if any(str(one.get("url")).endswith(f"/clusters/{name}") for one in ways):
            # Last of all: nobody makes works here, and whoever goes on after a death knows by it whose all this is.
            await _clear(self._client, name)
            await _end(self._client, registered)


def identity(name: str) -> Identity:
    """Return who the agent of a cluster is on its hub."""
    group = f"system:open-cluster-management:{name}"
    return Identity(
        f"{group}:lamina",
        (group, "system:open-cluster-management:managed-clusters", "system:authenticated"),
    )


def _named(api_version: str, kind: str, name: str, spec: Made) -> Made:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def _ensure(hub: Client, obj: Made) -> None:
    with suppress(AlreadyExists):
        await hub.create(obj)


async def _end(hub: Client, ref: Ref) -> None:
    with suppress(NotFound):
        await hub.delete(ref)
