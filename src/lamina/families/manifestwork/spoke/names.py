"""The names an agent is known by, on its cluster and on the hub."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from lamina.families.manifestwork.names import APPLIED_WORK, CLUSTER_GROUP, WORK, WORK_GROUP, WORK_VERSION
from lamina.objects.digest import sha256
from lamina.objects.types import Ref

HUB = "hub"
"""What an agent calls the cluster that its works come from; its own has no name."""
AGENT = "work-agent"
"""What an agent calls itself, to both servers."""

WORK_CLEANUP = f"{CLUSTER_GROUP}/manifest-work-cleanup"
"""The finalizer that holds a work until what was applied of it is gone."""
APPLIED_CLEANUP = f"{CLUSTER_GROUP}/applied-manifest-work-cleanup"
"""The finalizer that holds the record of a work until everything in it is gone."""
CONFIG_HASH = "open-cluster-management.io/config-spec-hash"
"""On objects that are applied with fields to ignore, an annotation: what was stated last, those fields left out."""
SET_KEYS = f"{WORK_GROUP}/metadata-keys"
"""On the record of a work, an annotation: which labels and annotations its objects have from their manifests."""

_EVICTS_NOBODY = timedelta(days=100 * 365)


class Options(Struct, frozen=True, kw_only=True):
    """How an agent runs."""

    workers: int = 10
    reapply: timedelta = timedelta(minutes=4)
    """How long a work is left alone at most; up to half of it more, not the same for all."""
    poll: timedelta = timedelta(seconds=10)
    """How often a look is taken at what cannot be watched; up to nine tenths of it more."""
    watches: int = 50
    """How many kinds are watched; of any more, objects are looked at now and then."""
    eviction: timedelta = timedelta(minutes=60)
    """How long objects stay whose work has vanished from the hub; a hundred years mean for ever."""
    raw_feedback: bool = False
    """Whether feedback may be more than one plain value, and then comes as JSON."""
    raw_length: int = 1024

    @property
    def evicts(self) -> bool:
        return self.eviction < _EVICTS_NOBODY


DEFAULTS = Options()


class Agent(Struct, frozen=True, kw_only=True):
    """Whose agent it is: of which cluster, of which hub, and which of the agents of that cluster."""

    cluster: str
    hub: str
    """The hash of where the hub is."""
    id: str
    options: Options = DEFAULTS

    def record_name(self, work: str) -> str:
        """Return what the record of a work is called."""
        return f"{self.hub}-{work}"

    def record_ref(self, work: str) -> Ref:
        return Ref(WORK_VERSION, APPLIED_WORK.kind, "", self.record_name(work))

    def work_ref(self, name: str) -> Ref:
        return Ref(WORK_VERSION, WORK.kind, self.cluster, name, HUB)


def hub_hash(address: str) -> str:
    """Return what tells a hub from another: the hash of its address."""
    return sha256(address.encode())
