"""The names, finalizers and annotations that an agent uses on its cluster and on the hub."""

from __future__ import annotations

from msgspec import Struct

from lamina.core.model.agents import AgentOptions
from lamina.families.manifestwork.labels import APPLIED_WORK, CLUSTER_GROUP, WORK, WORK_GROUP, WORK_VERSION
from lamina.objects.digest import sha256
from lamina.objects.types import Ref

HUB = "hub"
"""The name of the hub as a cluster of the controllers; the cluster of the agent is the primary one."""
ASSIGNED = WORK_VERSION, WORK.kind
"""The version and the kind of what the hub assigns to a cluster."""
AGENT = "work-agent"
"""The field manager of an agent, on both servers."""

WORK_CLEANUP = f"{CLUSTER_GROUP}/manifest-work-cleanup"
"""The finalizer that holds a work until its objects are gone."""
APPLIED_CLEANUP = f"{CLUSTER_GROUP}/applied-manifest-work-cleanup"
"""The finalizer that holds the record of a work until the objects in it are gone."""
CONFIG_HASH = "open-cluster-management.io/config-spec-hash"
"""The annotation on objects with ignored fields: the hash of what was applied last, without these fields."""
SET_KEYS = f"{WORK_GROUP}/metadata-keys"
"""The annotation on the record of a work: which labels and annotations its objects have from their manifests."""


class Agent(Struct, frozen=True, kw_only=True):
    """The identity of an agent: its cluster, its hub, and which of the agents of that cluster it is."""

    cluster: str
    hub: str
    """The hash of the address of the hub."""
    id: str
    options: AgentOptions = AgentOptions()

    def record_name(self, work: str) -> str:
        """Return the name of the record of a work."""
        return f"{self.hub}-{work}"

    def record_ref(self, work: str) -> Ref:
        return Ref(WORK_VERSION, APPLIED_WORK.kind, "", self.record_name(work))

    def work_ref(self, name: str) -> Ref:
        return Ref(WORK_VERSION, WORK.kind, self.cluster, name, HUB)


def hub_hash(address: str) -> str:
    """Return the hash of the address of a hub, which distinguishes it from others."""
    return sha256(address.encode())
