"""
The ReplicaSets of a Deployment, as they were seen and as they are to be.

How many pods may be had at once, and how many must be, is read off here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.workloads.replicas import wanted
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj

DEPLOYMENT = GroupKind("apps", "Deployment")

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
ROLLBACK = "deprecated.deployment.rollback.to"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

NOT_COPIED = frozenset((APPLIED, REVISION, HISTORY, DESIRED, MOST, ROLLBACK))
"""Annotations that say something about one object alone, and are not handed on."""

_LARGEST = 2**31 - 1


class ReplicaSet(Struct, frozen=True, kw_only=True):
    """
    One ReplicaSet of a Deployment: what was seen of it, and what it is to become.

    `sizes` are the sizes it is given one after the other, the last of them the
    one to write; none where it keeps the one it has.
    """

    seen: Obj
    annotations: Mapping[str, str]
    min_ready: int
    sizes: tuple[int, ...] = ()
    exists: bool = True

    @property
    def name(self) -> str:
        return meta.name(self.seen)

    @property
    def size(self) -> int:
        return self.sizes[-1] if self.sizes else wanted(self.seen)

    @property
    def is_active(self) -> bool:
        return self.size > 0

    @property
    def age(self) -> tuple[str, str]:
        """Return what orders sets from old to new."""
        return str(meta.metadata(self.seen).get("creationTimestamp") or "~"), self.name

    def count(self, field: str) -> int:
        """Return one of the counts in its status."""
        return int((self.seen.get("status") or {}).get(field) or 0)

    def resized(self, size: int, deployment: Obj) -> ReplicaSet:
        """Return the set with another size, and the note of what it was a part of."""
        if size == self.size:
            return self
        return replace(self.noted(deployment), sizes=(*self.sizes, size))

    def noted(self, deployment: Obj) -> ReplicaSet:
        """Return the set with the note of how large the whole Deployment is, and may get."""
        note = sizes_noted(deployment)
        return replace(self, annotations={**self.annotations, **note})


def as_seen(obj: Obj) -> ReplicaSet:
    return ReplicaSet(
        seen=obj,
        annotations=meta.annotations(obj),
        min_ready=int(obj["spec"].get("minReadySeconds") or 0),
    )


def total(sets: Iterable[ReplicaSet | None]) -> int:
    """Return how many pods these sets are to have together."""
    return sum(one.size for one in sets if one is not None)


def counted(sets: Iterable[ReplicaSet | None], field: str) -> int:
    """Return one of the counts in their status, added up."""
    return sum(one.count(field) for one in sets if one is not None)


def active(sets: Iterable[ReplicaSet | None]) -> list[ReplicaSet]:
    return [one for one in sets if one is not None and one.is_active]


def oldest_first(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return sorted(sets, key=lambda one: one.age)


def exchanged(sets: Sequence[ReplicaSet], others: Iterable[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Return the sets in their order, each replaced by the other of its name where there is one."""
    by_name = {one.name: one for one in others}
    return tuple(by_name.get(one.name, one) for one in sets)


def sizes_noted(deployment: Obj) -> dict[str, str]:
    """Return the annotations by which a set remembers what it was a part of when it was last sized."""
    desired = wanted(deployment)
    return {DESIRED: str(desired), MOST: str(desired + max_surge(deployment))}


def noted_size(one: ReplicaSet, annotation: str) -> int | None:
    """Return the number in one of those annotations; None where there is none, or nonsense."""
    written = meta.annotations(one.seen).get(annotation, "")
    if not written.isascii() or not written.isdigit():
        return None
    number = int(written)
    return number if number <= _LARGEST else None


def is_rolling(deployment: Obj) -> bool:
    return _strategy(deployment).get("type") == "RollingUpdate"


def max_surge(deployment: Obj) -> int:
    """Return how many pods more than wanted there may be."""
    if not is_rolling(deployment):
        return 0
    surge, _ = _fenceposts(deployment)
    return surge


def max_unavailable(deployment: Obj) -> int:
    """Return how many pods fewer than wanted may be available."""
    desired = wanted(deployment)
    if not is_rolling(deployment) or not desired:
        return 0
    _, unavailable = _fenceposts(deployment)
    return min(unavailable, desired)


def _fenceposts(deployment: Obj) -> tuple[int, int]:
    """
    Return how many more there may be, and how many fewer.

    One is rounded up and the other down. Were both nothing, a rollout could
    not begin, so then one may be missing.
    """
    rolling = _strategy(deployment).get("rollingUpdate") or {}
    desired = wanted(deployment)
    surge = scaled(rolling.get("maxSurge"), desired, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), desired, up=False)
    return surge, unavailable if surge or unavailable else 1


def scaled(value: int | str | None, of: int, *, up: bool) -> int:
    """Return a number, or a percentage of something rounded one way or the other; nothing is zero."""
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * of
        return -(-share // 100) if up else share // 100
    return int(value or 0)


def _strategy(deployment: Obj) -> Obj:
    return deployment["spec"].get("strategy") or {}
