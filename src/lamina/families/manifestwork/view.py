"""What there is to know about one replica set: its placements, its works, its revisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.core.world import Change, World
from lamina.errors import SpecError
from lamina.families.manifestwork import api
from lamina.families.manifestwork.names import (
    DECISION,
    GROUP_INDEX,
    GROUP_NAME,
    OWNER,
    OWNER_HASH,
    OWNER_NOTE,
    PLACEMENT,
    PLACEMENT_LABEL,
    PLACEMENT_VERSION,
    REPLICA_SET,
    REPLICA_SET_VERSION,
    REVISION,
    WORK,
    owner_key,
    owner_of,
)
from lamina.families.manifestwork.revision import Kept, kept
from lamina.families.manifestwork.strategy import Group, Strategy, clusters_of, strategy
from lamina.families.manifestwork.work import Work, facts
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Obj, Ref


class Placed(Struct, frozen=True, kw_only=True):
    """
    One placement that a replica set names, and the works there are for it.

    Where `frozen` says why, nothing is known of what it selects, or how its
    clusters are to go: those that have a work keep it, and nobody moves.
    `reason` is the word for that.
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
    seen: Placed | None = None
    """The same as it was seen, where works were looked at for real since."""


class View(Struct, frozen=True, kw_only=True):
    """One replica set."""

    obj: Obj
    limits: api.Limits
    placed: tuple[Placed, ...]
    works: tuple[Work, ...]
    revisions: tuple[Kept, ...]
    """Those it controls, and those that nobody does and that carry its name."""
    world: World

    @property
    def status(self) -> Obj:
        return self.obj.get("status") or {}

    @property
    def key(self) -> str:
        return owner_key(meta.namespace(self.obj), meta.name(self.obj))

    @property
    def current(self) -> str:
        """The mark of the last revision that reached everybody."""
        return self.status.get("currentRevision") or ""

    @property
    def update(self) -> str:
        """The mark of the template, as of when it was last looked at."""
        return self.status.get("updateRevision") or ""

    @property
    def collisions(self) -> int:
        return self.status.get("collisionCount") or 0

    @property
    def aborted_at(self) -> datetime | None:
        """When the rollout was aborted; a mark of that which can mean nothing is none."""
        if not self.current or self.current == self.update:
            return None
        return moment(self.status.get("abortedTime"))


# Where things are found


def by_owner(obj: Obj) -> Iterable[str]:
    labels = meta.labels(obj)
    if owner := labels.get(OWNER):
        return (owner,)
    # A name too long for a label stands in an annotation, where the original made the work.
    noted = meta.annotations(obj).get(OWNER_NOTE, "") if OWNER_HASH in labels else ""
    namespace, slash, name = noted.partition("/")
    return (owner_key(namespace, name),) if slash and namespace and name else ()


def by_placement_label(obj: Obj) -> Iterable[str]:
    placement = meta.labels(obj).get(PLACEMENT_LABEL)
    return (f"{meta.namespace(obj)}/{placement}",) if placement else ()


def by_placements(obj: Obj) -> Iterable[str]:
    refs = (obj.get("spec") or {}).get("placementRefs") or ()
    return tuple({f"{meta.namespace(obj)}/{ref.get('name')}" for ref in refs})


def gather(world: World, ref: Ref) -> View | None:
    """Return what there is to know about a replica set, or None if it is not there."""
    obj = world.get(ref)
    if obj is None or (ref.group, ref.kind) != tuple(REPLICA_SET):
        return None
    key = owner_key(ref.namespace, ref.name)
    works = tuple(facts(one) for one in world.found(WORK, by_owner, key))
    return View(
        obj=obj,
        limits=api.limits(obj),
        placed=tuple(_placed(world, obj, works)),
        works=works,
        revisions=tuple(_revisions(world, obj, key)),
        world=world,
    )


def _revisions(world: World, obj: Obj, key: str) -> Iterable[Kept]:
    for one in world.owned_by(meta.uid(obj), REVISION):
        if meta.is_controlled_by(one, meta.uid(obj)) and meta.namespace(one) == meta.namespace(obj):
            yield kept(one)
    for one in world.unclaimed(REVISION, meta.namespace(obj)):
        if meta.labels(one).get(OWNER) == key and not meta.is_deleting(one):
            yield kept(one)


def _placed(world: World, obj: Obj, works: Sequence[Work]) -> Iterable[Placed]:
    theirs: dict[str, list[Work]] = {}
    for work in works:
        theirs.setdefault(work.placement, []).append(work)
    seen: set[str] = set()
    for place, value in enumerate((obj.get("spec") or {}).get("placementRefs") or ()):
        name = value.get("name") or ""
        if name not in seen:
            seen.add(name)
            yield _one(world, obj, name, value, place, theirs.get(name, ()))


def _one(world: World, obj: Obj, name: str, value: Obj, place: int, works: Sequence[Work]) -> Placed:
    first, surplus = _by_cluster(works)
    namespace = meta.namespace(obj)
    placement = world.get(Ref(PLACEMENT_VERSION, PLACEMENT.kind, namespace, name))
    decisions = world.found(DECISION, by_placement_label, f"{namespace}/{name}")
    status = (placement or {}).get("status") or {}
    groups = tuple(_groups(decisions))
    frozen = reason = ""
    how = Strategy()
    try:
        how = strategy(api.placement_ref(value, place))
    except SpecError as wrong:
        frozen, reason = str(wrong), "NotAsExpected"
    if placement is None or meta.is_deleting(placement):
        # One that goes takes its decisions along, one after another.
        frozen, reason = f"placement {name} is not there", "PlacementDecisionNotFound"
    elif _is_undecided(decisions, groups, status, first):
        frozen, reason = f"the decisions of placement {name} are not there", "PlacementDecisionNotFound"
    elif _has_lost_sense(groups, status, first):
        frozen, reason = f"placement {name} is misconfigured", "PlacementDecisionNotFound"
    if frozen and reason != "NotAsExpected":
        groups = (Group(index=0, clusters=tuple(sorted(first))),)
    return Placed(
        name=name,
        strategy=how,
        groups=groups,
        decision_groups=len(status.get("decisionGroups") or groups),
        works=first,
        surplus=surplus,
        frozen=frozen,
        reason=reason,
        decisions=tuple(decisions),
    )


def _is_undecided(
    decisions: Collection[Obj], groups: Sequence[Group], status: Obj, works: Mapping[str, Work]
) -> bool:
    """
    Say whether decisions that there must be are not there.

    They may have been deleted by hand, or be on their way: one is made first, and
    says whom it is about afterwards. Nobody loses its work over that. Even where
    nobody is selected there is a decision, so a placement that has none, and does not
    say how many it selects, was made anew or is decided by hand.
    """
    unsaid = any("decisions" not in (one.get("status") or {}) for one in decisions)
    selected = status.get("numberOfSelectedClusters")
    if selected is None:
        return bool(works) and (not decisions or unsaid)
    if selected <= len(clusters_of(groups)):
        return False
    told = {name for group in status.get("decisionGroups") or () for name in group.get("decisions") or ()}
    return not decisions or unsaid or bool(told - {meta.name(one) for one in decisions})


def _has_lost_sense(groups: Sequence[Group], status: Obj, works: Mapping[str, Work]) -> bool:
    """Say whether clusters have works that a placement does not name, while it makes no sense and cannot choose."""
    if not conditions.is_true(status.get("conditions") or (), "PlacementMisconfigured"):
        return False
    named = set(clusters_of(groups))
    return any(not work.is_deleting and cluster not in named for cluster, work in works.items())


def _by_cluster(works: Sequence[Work]) -> tuple[Mapping[str, Work], tuple[Work, ...]]:
    """Return the work of each cluster, the oldest that is to stay, and those that are too many."""
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
        # One that is not numbered is in the first group, like everybody who does not care for groups.
        index = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        names[index] = labels.get(GROUP_NAME, "") or names.get(index, "")
        members.setdefault(index, set()).update(clusters_in(decision))
    taken: set[str] = set()
    for index in sorted(members):
        clusters = members[index] - taken
        taken |= clusters
        yield Group(index=index, name=names[index], clusters=tuple(sorted(clusters)))


def clusters_in(decision: Obj) -> set[str]:
    """Return the clusters that one decision names."""
    named = (decision.get("status") or {}).get("decisions") or ()
    return {one["clusterName"] for one in named if one.get("clusterName")}


# Whom a change concerns


def itself_at_once(world: World, change: Change) -> Iterable[Ref]:
    """A change to a replica set concerns it; one to its status alone, which is ours as a rule, can wait."""
    return () if _is_only_status(change) else (change.ref,)


def itself_later(world: World, change: Change) -> Iterable[Ref]:
    """A change to the status of a replica set concerns it: somebody else may have written there."""
    return (change.ref,) if _is_only_status(change) else ()


def _is_only_status(change: Change) -> bool:
    if change.before is None or change.after is None:
        return False
    # The generation stands for the spec.
    was, now = meta.metadata(change.before), meta.metadata(change.after)
    version = now.get("resourceVersion")
    return version != was.get("resourceVersion") and {**was, "resourceVersion": version} == now


def of_its_owner(world: World, change: Change) -> Iterable[Ref]:
    """A change to a work or a revision concerns the replica set it names, or named."""
    return {ref for obj in (change.before, change.after) if obj is not None for ref in _owners(obj)}


def _owners(obj: Obj) -> Iterable[Ref]:
    for key in by_owner(obj):
        namespace, name = owner_of(key)
        yield Ref(REPLICA_SET_VERSION, REPLICA_SET.kind, namespace, name)
    owner = meta.controller_of(obj)
    if owner is not None and owner["kind"] == REPLICA_SET.kind:
        yield Ref(REPLICA_SET_VERSION, REPLICA_SET.kind, meta.namespace(obj), owner["name"])


def using_the_placement(world: World, change: Change) -> Iterable[Ref]:
    """A change to a placement concerns whoever names it."""
    return _using(world, {f"{change.ref.namespace}/{change.ref.name}"})


def using_its_placement(world: World, change: Change) -> Iterable[Ref]:
    """A change to a decision concerns whoever names the placement it belongs to, or belonged to."""
    keys = {
        key for obj in (change.before, change.after) if obj is not None for key in by_placement_label(obj)
    }
    return _using(world, keys)


def _using(world: World, keys: Iterable[str]) -> Iterable[Ref]:
    return {meta.ref(one) for key in keys for one in world.found(REPLICA_SET, by_placements, key)}
