"""
The agents that a family runs on clusters beside its own, and how its hub knows these clusters.

A family that has agents offers them as one `Agents` value: the objects that register
a cluster, the controllers of its agent, and what is left on the hub once it has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from lamina.core.model.controller import AnyController
from lamina.core.rbac import Rights
from lamina.objects.types import Made, Obj, Ref

_NEVER_EVICTS = timedelta(days=100 * 365)


class AgentOptions(Struct, frozen=True, kw_only=True):
    """How an agent runs."""

    workers: int = 10
    reapply: timedelta = timedelta(minutes=4)
    """The longest time between two applies of the same manifests; up to half of it is added as jitter."""
    poll: timedelta = timedelta(seconds=10)
    """The period of reads of objects that cannot be watched; up to nine tenths of it are added as jitter."""
    watches: int = 50
    """How many kinds are watched; objects of any further kind are polled."""
    eviction: timedelta = timedelta(minutes=60)
    """How long objects are kept whose work has vanished from the hub; a hundred years mean for ever."""
    raw_feedback: bool = False
    """Whether feedback may be more than one plain value, and then comes as JSON."""
    raw_length: int = 1024

    @property
    def evicts(self) -> bool:
        return self.eviction < _NEVER_EVICTS


class AgentSpec(Struct, frozen=True, kw_only=True):
    """
    Which agent is to be run: of which cluster, for the hub at which address.

    `id` distinguishes it from other agents on the cluster, where it is to stay the
    same with another hub; `version` is the one that the cluster's server reports.
    """

    cluster: str
    address: str
    id: str = ""
    version: str = ""
    options: AgentOptions = AgentOptions()


class JoinStep(Struct, frozen=True, kw_only=True):
    """The next step of a cluster that joins a hub: what is created there, what it waits for, or its certificate."""

    creates: tuple[Made, ...] = ()
    certificate: bytes = b""
    because: str = ""
    refused: str = ""
    """Why the hub will issue no certificate for this request."""


class Joining(Struct, frozen=True, kw_only=True):
    """
    How a cluster joins a hub without an administrator's credentials.

    The cluster registers itself and requests a client certificate with a bootstrap
    token; an administrator of the hub approves the request and accepts the cluster.
    """

    bootstrap: tuple[Made, ...]
    """The objects of the bootstrap token on the hub; the last of them is its ServiceAccount."""
    step: Callable[[str, str, bytes, Obj | None, Obj | None], JoinStep]
    """
    The next step of a cluster of that name and address with a request in PEM, given the cluster
    and the CertificateSigningRequest on the hub, where they exist.
    """
    name_problem: Callable[[str], str]
    """Why no cluster may join under that name; empty if one may."""
    requests: Callable[[str], str]
    """The label selector of the requests for a cluster."""
    mismatch: Callable[[str, Obj], str]
    """Why a request is not one for the agent of that cluster; empty if it is one."""
    is_renewal: Callable[[str, Obj], bool]
    """Whether a request was sent with a certificate of that cluster."""
    grants: Callable[[str], tuple[Made, ...]]
    """The objects that an accepted cluster has on the hub: its namespace first, roles and bindings of its agent."""
    acceptance: Callable[[Obj], Made]
    """The patch with which a hub accepts a cluster."""


class Agents(Struct, frozen=True, kw_only=True):
    """How clusters are registered with a family's hub, and the agent that runs for each."""

    family: str
    hub: str
    """The name by which an agent's controllers call the cluster that is the hub."""
    controllers: Callable[[AgentSpec], tuple[AnyController, ...]]
    definitions: Callable[[], tuple[Made, ...]]
    """The kinds that an agent needs on its cluster."""
    required_status_fields: Mapping[str, tuple[str, ...]]
    """The status fields it depends on, by the name of the definition."""
    cluster: Callable[[str], Ref]
    """The object by which a hub knows a cluster."""
    registration: Callable[[str, str], tuple[Made, ...]]
    """The objects that register a cluster that is at an address; the last of them is the cluster itself."""
    relocation: Callable[[Obj, str], Made]
    """The patch of a registered cluster that has another address now; empty where it says so already."""
    addresses: Callable[[Obj], tuple[str, ...]]
    is_accepted: Callable[[Obj], bool]
    assigned: tuple[str, str]
    """The version and the kind of the objects that a hub has for an agent, in the namespace of its cluster."""
    finalizer: str
    """What an agent holds these objects with until it has removed what it applied."""
    lease: Callable[[str], Ref]
    owns_namespace: Callable[[Obj, str], bool]
    """Whether the hub made a namespace for a cluster, so that it goes with the cluster."""
    hub_user: Callable[[str], tuple[str, tuple[str, ...]]]
    """The user name and the groups of the agent of a cluster on its hub."""
    local_user: tuple[str, tuple[str, ...]]
    """The user name and the groups of an agent on its own cluster."""
    joining: Joining
    rights: Callable[[str], tuple[Rights, Rights]]
    """What an agent needs on its hub: cluster-wide, and in the namespace of its cluster."""
    local_rights: str
    """What an agent needs on its own cluster, in words: that follows from what it is sent."""


class WorkloadOutcome(Struct, frozen=True):
    """How long workloads take to become healthy; if they never do, what they wait for, and when and why they fail."""

    takes: timedelta = timedelta(0)
    waiting: str = ""
    failed: str = ""
    fails_after: timedelta = timedelta.max


class SimulatedFleet(Protocol):
    """What simulated agents need to know of the clusters they stand for."""

    def fault(self, cluster: str, now: datetime) -> str:
        """Return what is wrong with an agent: `silent`, `refused`, `degraded`, `stuck`, or nothing."""
        ...

    def latency(self, cluster: str) -> timedelta:
        """Return how long an agent takes at least until what it applied is healthy."""
        ...

    def outcome(self, cluster: str, manifests: Sequence[Obj], *, was_healthy: bool) -> WorkloadOutcome:
        """Return what becomes of manifests on a cluster; `was_healthy` where a real agent has reported so."""
        ...


class SimulatedAgents(Struct, frozen=True, kw_only=True):
    """The counterpart of a family's agents in a simulation that has the hub and none of its clusters."""

    controllers: tuple[AnyController, ...]
    cluster: Callable[[str], Ref]
    """The object by which the hub knows a cluster; all objects of its kind are clusters."""
    silence: Callable[[str, datetime], tuple[Ref, Made]]
    """The last patch of an agent that falls silent, and of what: its lease."""
