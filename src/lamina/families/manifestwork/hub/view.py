"""The view of one ManifestWorkReplicaSet: its placements, its works, its revisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.core.model.world import World, derived
from lamina.core.rollout.history import History, history
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.revision_object import CONTROLLER_REVISION, name_prefix
from lamina.errors import SpecError
from lamina.families.manifestwork import api
from lamina.families.manifestwork.hub.phase import AVAILABLE, PROGRESSING
from lamina.families.manifestwork.hub.revision import stored_revision
from lamina.families.manifestwork.hub.strategy import Group, Strategy, clusters_of, strategy
from lamina.families.manifestwork.hub.work import Work, read_work, work_name
from lamina.families.manifestwork.labels import (
    DECISION,
    GROUP_INDEX,
    GROUP_NAME,
    OWNER,
    OWNER_HASH,
    OWNER_NOTE,
    PLACEMENT,
    PLACEMENT_VERSION,
    REPLICA_SET,
    WORK,
    by_placement,
    owner_key,
)
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Obj, Ref


class PlacementView(Struct, frozen=True, kw_only=True):
    """
    One placement that a replica set references, and its works.

    `frozen` says why its clusters or its strategy are unknown, if they are:
    existing works stay unchanged then. `reason` is the reason of the condition.
    """

    name: str
    strategy: Strategy
    groups: tuple[Group, ...]
    decision_groups: int
    works: Mapping[str, Work]
    """The work of each cluster that has one."""
    surplus: tuple[Work, ...] = ()
    """More works for a cluster that has one."""
    frozen: str = ""
    reason: str = ""
    decisions: tuple[Obj, ...] = ()
    other_names: Mapping[str, str] = {}
    """The name of the work to create in each cluster where another object has the usual name."""
    cached: PlacementView | None = None
    """The same placement with its cached works, where this one has live ones."""


class View(Struct, frozen=True, kw_only=True):
    """One replica set, and everything that its plan depends on."""

    obj: Obj
    limits: api.Limits
    placements: tuple[PlacementView, ...]
    works: tuple[Work, ...]
    history: History
    """The revisions that it controls, and those without a controller that have its label."""
    revision_names: frozenset[str]
    """The names of all ControllerRevisions that are named like its own, whatever owner they have."""
    unrecorded: str = ""
    """Why its status cannot have revisions and aborts; empty where it can."""

    @property
    def status(self) -> Obj:
        return self.obj.get("status") or {}

    @property
    def key(self) -> str:
        return owner_key(meta.namespace(self.obj), meta.name(self.obj))

    @property
    def current(self) -> str:
        """The hash of the last revision that reached all clusters; none while another one is rolled out unrecorded."""
        if self.unrecorded:
            return self.update if self._is_complete else ""
        return self.status.get("currentRevision") or ""

    @property
    def update(self) -> str:
        """The hash of the template, as it was last recorded: in the status, or else by its revision."""
        if self.unrecorded:
            return next((one.hash for one in reversed(self.history.revisions)), "")
        return self.status.get("updateRevision") or ""

    @property
    def _is_complete(self) -> bool:
        """Say whether the conditions report that the template of this generation has reached all clusters."""
        done = conditions.find(self.status.get("conditions") or (), PROGRESSING)
        return (
            done is not None
            and done.get("reason") == AVAILABLE
            and done.get("observedGeneration") == meta.generation(self.obj)
        )

    @property
    def collisions(self) -> int:
        return self.status.get("collisionCount") or 0

    @property
    def aborted_at(self) -> datetime | None:
        """When the rollout was aborted; ignored where no other revision is current."""
        if self.unrecorded or not self.current or self.current == self.update:
            return None
        return moment(self.status.get("abortedTime"))


# ── indexes ──


def by_owner(obj: Obj) -> Iterable[str]:
    labels = meta.labels(obj)
    if owner := labels.get(OWNER):
        return (owner,)
    # The original controller writes an owner whose name is too long for a label to an annotation.
    noted = meta.annotations(obj).get(OWNER_NOTE, "") if OWNER_HASH in labels else ""
    namespace, slash, name = noted.partition("/")
    return (owner_key(namespace, name),) if slash and namespace and name else ()


def by_placements(obj: Obj) -> Iterable[str]:
    refs = (obj.get("spec") or {}).get("placementRefs") or ()
    return tuple({f"{meta.namespace(obj)}/{ref.get('name')}" for ref in refs})


def _by_name(obj: Obj) -> Iterable[str]:
    return (meta.name(obj),)


def _by_revision_prefix(obj: Obj) -> Iterable[str]:
    return (f"{meta.namespace(obj)}/{meta.name(obj).rpartition('-')[0]}",)


# ── gather ──


def gather(world: World, ref: Ref, unrecorded: str = "") -> View | None:
    """Return the view of a replica set, or None if it does not exist; `unrecorded` as in the view."""
    obj = world.get(ref)
    if obj is None or (ref.group, ref.kind) != tuple(REPLICA_SET):
        return None
    key = owner_key(ref.namespace, ref.name)
    works = tuple(derived(read_work, one) for one in world.by_index(WORK, by_owner, key))
    prefix = f"{ref.namespace}/{name_prefix(ref.name)}"
    return View(
        obj=obj,
        limits=api.limits(obj),
        placements=tuple(_placements(world, obj, works)),
        works=works,
        history=history(_revisions(world, obj, key)),
        revision_names=frozenset(
            meta.name(one) for one in world.by_index(CONTROLLER_REVISION, _by_revision_prefix, prefix)
        ),
        unrecorded=unrecorded,
    )


def _revisions(world: World, obj: Obj, key: str) -> Iterator[Revision]:
    for one in world.owned_by(meta.uid(obj), CONTROLLER_REVISION):
        if meta.is_controlled_by(one, meta.uid(obj)) and meta.namespace(one) == meta.namespace(obj):
            yield derived(stored_revision, one)
    for one in world.unclaimed(CONTROLLER_REVISION, meta.namespace(obj)):
        if meta.labels(one).get(OWNER) == key and not meta.is_deleting(one):
            yield derived(stored_revision, one)


def _placements(world: World, obj: Obj, works: Sequence[Work]) -> Iterator[PlacementView]:
    by_placement: dict[str, list[Work]] = {}
    for work in works:
        by_placement.setdefault(work.placement, []).append(work)
    seen: set[str] = set()
    for place, value in enumerate((obj.get("spec") or {}).get("placementRefs") or ()):
        name = value.get("name") or ""
        if name not in seen:
            seen.add(name)
            yield _placement(world, obj, name, value, place, by_placement.get(name, ()))


def _placement(
    world: World, obj: Obj, name: str, value: Obj, place: int, works: Sequence[Work]
) -> PlacementView:
    first, surplus = _by_cluster(works)
    namespace = meta.namespace(obj)
    placement = world.get(Ref(PLACEMENT_VERSION, PLACEMENT.kind, namespace, name))
    decisions = world.by_index(DECISION, by_placement, f"{namespace}/{name}")
    status = (placement or {}).get("status") or {}
    groups = tuple(_groups(decisions))
    frozen = reason = ""
    parsed = Strategy()
    try:
        parsed = strategy(api.placement_ref(value, place))
    except SpecError as error:
        frozen, reason = str(error), "NotAsExpected"
    if placement is None or meta.is_deleting(placement):
        # The decisions of a placement that is being deleted are deleted one after another.
        frozen, reason = f"placement {name} not found", "PlacementDecisionNotFound"
    elif _is_undecided(decisions, groups, status, first):
        frozen, reason = f"decisions of placement {name} not found", "PlacementDecisionNotFound"
    elif _is_misconfigured(groups, status, first):
        frozen, reason = f"placement {name} is misconfigured", "PlacementDecisionNotFound"
    if frozen and reason != "NotAsExpected":
        groups = (Group(index=0, clusters=tuple(sorted(first))),)
    return PlacementView(
        name=name,
        strategy=parsed,
        groups=groups,
        decision_groups=len(status.get("decisionGroups") or groups),
        works=first,
        surplus=surplus,
        frozen=frozen,
        reason=reason,
        decisions=tuple(decisions),
        other_names=_other_names(
            world, obj, name, {one for group in groups for one in group.clusters} - {*first}
        ),
    )


def _other_names(world: World, obj: Obj, placement: str, missing: set[str]) -> Mapping[str, str]:
    """Return another name for the works to create where the usual one is taken."""
    names: dict[str, str] = {}
    attempt, taken = 0, missing
    while taken:
        name = work_name(obj, placement, attempt)
        names |= dict.fromkeys(taken, name) if attempt else {}
        taken = taken.intersection(map(meta.namespace, world.by_index(WORK, _by_name, name)))
        attempt += 1
    return names


def _is_undecided(
    decisions: Collection[Obj], groups: Sequence[Group], status: Obj, works: Mapping[str, Work]
) -> bool:
    """
    Say whether decisions that must exist are missing.

    They may have been deleted by hand, or be incomplete: a decision is created
    first, and its status written afterwards. No cluster loses its work for that.
    A placement that selects no cluster has a decision too; one without any, and
    without a number of selected clusters, is new or decided by hand.
    """
    incomplete = any("decisions" not in (one.get("status") or {}) for one in decisions)
    selected = status.get("numberOfSelectedClusters")
    if selected is None:
        return bool(works) and (not decisions or incomplete)
    if selected <= len(clusters_of(groups)):
        return False
    listed = {name for group in status.get("decisionGroups") or () for name in group.get("decisions") or ()}
    return not decisions or incomplete or bool(listed - {meta.name(one) for one in decisions})


def _is_misconfigured(groups: Sequence[Group], status: Obj, works: Mapping[str, Work]) -> bool:
    """Say whether clusters have works that a placement does not select, while it is misconfigured."""
    if not conditions.is_true(status.get("conditions") or (), "PlacementMisconfigured"):
        return False
    selected = set(clusters_of(groups))
    return any(not work.is_deleting and cluster not in selected for cluster, work in works.items())


def _by_cluster(works: Sequence[Work]) -> tuple[Mapping[str, Work], tuple[Work, ...]]:
    """Return the work of each cluster, the oldest that is not being deleted, and the surplus ones."""
    first = {work.cluster: work for work in works}
    if len(first) == len(works):
        return first, ()
    surplus: list[Work] = []
    first = {}
    for work in sorted(works, key=lambda one: (one.is_deleting, one.age)):
        if work.cluster in first:
            surplus.append(work)
        else:
            first[work.cluster] = work
    return first, tuple(surplus)


def _groups(decisions: Iterable[Obj]) -> Iterable[Group]:
    names: dict[int, str] = {}
    members: dict[int, set[str]] = {}
    for decision in decisions:
        labels = meta.labels(decision)
        text = labels.get(GROUP_INDEX, "")
        # A decision without a group index belongs to the first group.
        index = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        names[index] = labels.get(GROUP_NAME, "") or names.get(index, "")
        members.setdefault(index, set()).update(clusters_in(decision))
    taken: set[str] = set()
    for index in sorted(members):
        clusters = members[index] - taken
        taken |= clusters
        yield Group(index=index, name=names[index], clusters=tuple(sorted(clusters)))


def clusters_in(decision: Obj) -> set[str]:
    """Return the clusters that a decision selects."""
    decided = (decision.get("status") or {}).get("decisions") or ()
    return {one["clusterName"] for one in decided if one.get("clusterName")}
