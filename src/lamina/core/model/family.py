"""
A family of controllers, as a value: its controllers, and the functions that commands call.

No command depends on a particular family: it calls the same functions of each, and
prints what they return in the same words. What a new family has to write, file by file,
is in docs/concepts/family.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from lamina.core.admission import AdmissionCheck
from lamina.core.health.kstatus import Health
from lamina.core.model.agents import Agents, SimulatedAgents, SimulatedFleet
from lamina.core.model.controller import AnyController, Source
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers, Query
from lamina.core.model.upstream_lease import UpstreamLease
from lamina.core.model.world import World
from lamina.core.rbac import Rights
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.preview import Preview
from lamina.objects.types import GroupKind, Made, Obj, Ref


class ClusterControllers(Struct, frozen=True, kw_only=True):
    """
    The controllers that a family runs on a hub for each other cluster, one by one.

    Their primary cluster is the hub, and they call the other cluster by its name.
    """

    controllers: Callable[[str], tuple[AnyController, ...]]
    """The controllers for the cluster of that name; none where the family cannot serve a cluster of that name."""
    held: tuple[tuple[str, str], ...]
    """The version and the kind of the objects on the hub that they hold with a finalizer."""
    release: Callable[[str, Obj], Plan]
    """The next step that frees one of these objects once the cluster of that name is gone; nothing at the end."""


class OptionalStatus(Struct, frozen=True, kw_only=True):
    """Status fields that a definition of another manager may lack, and what a family does then."""

    fields: tuple[str, ...]
    without: str


class Family(Struct, frozen=True, kw_only=True):
    """
    One family.

    `owners` returns the objects whose changes it rolls out; `owner_status` the status of
    one of them, or None if it is of another family; `rollback` the plan that rolls one
    back to an older revision, by an edit of its spec. `plan` returns a preview of an owner
    that was edited and not written yet, or the queries that it depends on.
    """

    name: str
    definitions: Callable[[], tuple[Made, ...]]
    controllers: tuple[AnyController, ...]
    sources: tuple[Source, ...]
    owners: Callable[[World], tuple[Obj, ...]]
    owner_status: Callable[[World, Ref], OwnerStatus | None]
    rollback: Callable[[World, Ref, int | None], Plan]
    plan: Callable[[World, Obj, Answers, datetime], Preview | tuple[Query, ...] | None]
    pin: Callable[[World, Ref, int | None], Plan] | None = None
    """The plan that pins an owner to a revision, or without a number unpins it; where owners have pins."""
    health: Callable[[Obj], Health | None] = lambda obj: None
    """The health of an object of its kinds that is no owner, None for any other object."""
    live_status: Callable[[World, Ref, Answers], OwnerStatus | tuple[Query, ...] | None] | None = None
    """The status of an owner from its objects as they are now, or what has to be asked first; where it differs."""
    rights: Callable[[Iterable[Obj]], Rights] = lambda objects: Rights()
    """The RBAC rules that these objects of its kinds need."""
    edits: Callable[[Iterable[Obj]], Rights] = lambda objects: Rights()
    """The RBAC rules that users need to roll back, pin and unpin the owners that these objects have."""
    shared_definitions: tuple[str, ...] = ()
    """The cluster-scoped definitions without whose objects owners in a namespace are not known as such."""
    checks: tuple[AdmissionCheck, ...] = ()
    """The admission checks of its kinds."""
    is_finalizer: Callable[[str], bool] = lambda finalizer: False
    """Whether a finalizer is one that its controllers or agents set."""
    revision_kinds: tuple[GroupKind, ...] = ()
    """The kinds of the objects that store the revisions of its owners."""
    elsewhere: tuple[GroupKind, ...] = ()
    """The kinds of what belongs to an owner in a namespace, and is in other namespaces."""
    required_status_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The status fields it depends on, by the name of the definition: if a definition lacks one, it does not run."""
    optional_status_fields: Mapping[str, OptionalStatus] = field(default_factory=dict)
    """The status fields that it can do without, by the name of the definition."""
    without_status: Callable[[str], Family] | None = None
    """The same family where a definition lacks some of them, given the sentence that says so on its objects."""
    user_definitions: tuple[str, ...] = ()
    """The definitions whose objects the role `edit` may write; others are for administrators and controllers."""
    upstream_leases: tuple[UpstreamLease, ...] = ()
    """The Leases that the upstream's controllers of the same objects hold while they work."""
    agents: Callable[[], Agents] | None = None
    """Its agents on other clusters, where it has any; a function, so that it is loaded only where agents run."""
    cluster_controllers: ClusterControllers | None = None
    """Its controllers on the hub that create objects on another cluster, where it has any."""
    simulated_agents: Callable[[SimulatedFleet], SimulatedAgents] | None = None
    """The agents of a simulation, which has the hub and none of the clusters."""
