"""
The ReplicaSets of a Deployment, observed and desired; maxSurge and maxUnavailable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.workloads.replica_sync import wanted
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
"""Annotations that are not copied between a Deployment and its ReplicaSets."""

_LARGEST = 2**31 - 1


class ReplicaSet(Struct, frozen=True, kw_only=True):
    """
    One ReplicaSet of a Deployment, observed and desired.

    `sizes` are its replicas after each step of this sync, the last of them to
    be written; empty where they do not change.
    """

    observed: Obj
    annotations: Mapping[str, str]
    min_ready: int
    sizes: tuple[int, ...] = ()
    exists: bool = True

    @property
    def name(self) -> str:
        return meta.name(self.observed)

    @property
    def size(self) -> int:
        return self.sizes[-1] if self.sizes else wanted(self.observed)

    @property
    def is_active(self) -> bool:
        return self.size > 0

    @property
    def age(self) -> tuple[str, str]:
        """Return the sort key, oldest first."""
        return str(meta.metadata(self.observed).get("creationTimestamp") or "~"), self.name

    def count(self, field: str) -> int:
        """Return one of the counts in its status."""
        return int((self.observed.get("status") or {}).get(field) or 0)

    def resized(self, size: int, deployment: Obj) -> ReplicaSet:
        """Return the ReplicaSet with other replicas, and the size annotations."""
        if size == self.size:
            return self
        return replace(self.with_size_annotations(deployment), sizes=(*self.sizes, size))

    def with_size_annotations(self, deployment: Obj) -> ReplicaSet:
        """Return the ReplicaSet with the annotations of the Deployment's replicas and maximum."""
        note = size_annotations(deployment)
        return replace(self, annotations={**self.annotations, **note})


def from_object(obj: Obj) -> ReplicaSet:
    return ReplicaSet(
        observed=obj,
        annotations=meta.annotations(obj),
        min_ready=int(obj["spec"].get("minReadySeconds") or 0),
    )


def total(sets: Iterable[ReplicaSet | None]) -> int:
    """Return the sum of the desired replicas."""
    return sum(one.size for one in sets if one is not None)


def counted(sets: Iterable[ReplicaSet | None], field: str) -> int:
    """Return the sum of one count in their status."""
    return sum(one.count(field) for one in sets if one is not None)


def active(sets: Iterable[ReplicaSet | None]) -> list[ReplicaSet]:
    return [one for one in sets if one is not None and one.is_active]


def oldest_first(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return sorted(sets, key=lambda one: one.age)


def replaced_by_name(sets: Sequence[ReplicaSet], others: Iterable[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Return the ReplicaSets in their order, each replaced by the one of its name in `others`."""
    by_name = {one.name: one for one in others}
    return tuple(by_name.get(one.name, one) for one in sets)


def size_annotations(deployment: Obj) -> dict[str, str]:
    """Return the annotations with the Deployment's replicas and maximum at the last scaling."""
    desired = wanted(deployment)
    return {DESIRED: str(desired), MOST: str(desired + max_surge(deployment))}


def annotated_size(one: ReplicaSet, annotation: str) -> int | None:
    """Return the number in one of those annotations; None where it is missing or invalid."""
    written = meta.annotations(one.observed).get(annotation, "")
    if not written.isascii() or not written.isdigit():
        return None
    number = int(written)
    return number if number <= _LARGEST else None


def is_rolling(deployment: Obj) -> bool:
    return _strategy(deployment).get("type") == "RollingUpdate"


def max_surge(deployment: Obj) -> int:
    """Return maxSurge as a number of pods."""
    if not is_rolling(deployment):
        return 0
    surge, _ = _fenceposts(deployment)
    return surge


def max_unavailable(deployment: Obj) -> int:
    """Return maxUnavailable as a number of pods."""
    desired = wanted(deployment)
    if not is_rolling(deployment) or not desired:
        return 0
    _, unavailable = _fenceposts(deployment)
    return min(unavailable, desired)


def _fenceposts(deployment: Obj) -> tuple[int, int]:
    """
    Return maxSurge and maxUnavailable as numbers.

    One is rounded up and the other down. With both 0, a rollout could not
    begin, so then maxUnavailable is 1.
    """
    rolling = _strategy(deployment).get("rollingUpdate") or {}
    desired = wanted(deployment)
    surge = scaled(rolling.get("maxSurge"), desired, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), desired, up=False)
    return surge, unavailable if surge or unavailable else 1


def scaled(value: int | str | None, of: int, *, up: bool) -> int:
    """Return an int-or-percent value of a total, rounded up or down; None is 0."""
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * of
        return -(-share // 100) if up else share // 100
    return int(value or 0)


def _strategy(deployment: Obj) -> Obj:
    return deployment["spec"].get("strategy") or {}
