"""
One work, as the hub sees it: which revision it is on, when it was sent there, and what its agent says.

What is costly to know of a work is found out once for each version of it, and is
all that is remembered: what it holds is some megabytes for a fleet, and nobody
reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from lamina.core.plan import Create, Replace, change_metadata
from lamina.families.manifestwork.names import (
    DISPATCHED,
    HASH,
    OWNER,
    OWNER_HASH,
    PLACED_BY,
    WORK,
    WORK_VERSION,
    owner_key,
)
from lamina.families.manifestwork.template import identity
from lamina.objects import conditions, meta
from lamina.objects.digest import short
from lamina.objects.times import moment, stamp
from lamina.objects.types import Made, Obj, Ref

_FACTS = "facts"
_LONGEST = 120
_NAME_LENGTH = 8
_FOR_EVER = timedelta(days=100 * 365)


class Said(Struct, frozen=True, kw_only=True):
    """A condition, as an agent wrote it."""

    status: str
    observed: int
    since: datetime | None
    message: str = ""

    def is_true_at(self, generation: int) -> bool:
        return self.status == "True" and self.observed == generation


class Work(Struct, frozen=True, kw_only=True):
    """What there is to know of one work. `holds` tells what it holds from everything else."""

    obj: Obj
    """Its metadata, whole, and nothing else of it."""
    cluster: str
    placement: str
    tag: str
    holds: str
    generation: int
    dispatched: datetime | None
    is_deleting: bool
    applied: Said | None
    available: Said | None
    progressing: Said | None
    degraded: Said | None
    truths: tuple[bool, bool, bool, bool]
    """Which of the four is True of what the work holds now, and not of what it held before."""
    goes: datetime | None
    """When it goes by itself, because it is complete and nobody else looks after it; None if it does not."""

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def age(self) -> tuple[str, str]:
        """Return what puts the works of one cluster in order: those made first, first."""
        return meta.metadata(self.obj).get("creationTimestamp") or "", self.name


def facts_only(obj: Obj) -> Obj:
    """Keep what there is to know of a work, found out once."""
    return {**(known := _named(obj)), _FACTS: _work(known, obj)}


def facts(obj: Obj) -> Work:
    """Return what there is to know of a work, whether or not somebody found out before."""
    known = obj.get(_FACTS)
    return known if isinstance(known, Work) else _work(_named(obj), obj)


def _named(obj: Obj) -> Made:
    metadata = {key: value for key, value in meta.metadata(obj).items() if key != "managedFields"}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _work(named: Obj, obj: Obj) -> Work:
    labels = meta.labels(obj)
    status = obj.get("status") or {}
    said = status.get("conditions") or ()
    applied, available = _said(conditions.find(said, "Applied")), _said(conditions.find(said, "Available"))
    progressing, degraded = (
        _said(conditions.find(said, "Progressing")),
        _said(conditions.find(said, "Degraded")),
    )
    generation = meta.generation(obj)
    return Work(
        obj=named,
        cluster=meta.namespace(obj),
        placement=labels.get(PLACED_BY, ""),
        tag=labels.get(HASH, ""),
        holds=identity(obj.get("spec") or {}),
        generation=generation,
        dispatched=moment(meta.annotations(obj).get(DISPATCHED)),
        is_deleting=meta.is_deleting(obj),
        applied=applied,
        available=available,
        progressing=progressing,
        degraded=degraded,
        truths=(
            _is_true(applied, generation),
            _is_true(available, generation),
            _is_true(progressing, generation),
            _is_true(degraded, generation),
        ),
        goes=_goes(obj, _said(conditions.find(said, "Complete"))),
    )


def _goes(obj: Obj, complete: Said | None) -> datetime | None:
    labels, generation = meta.labels(obj), meta.generation(obj)
    seconds = ((obj.get("spec") or {}).get("deleteOption") or {}).get("ttlSecondsAfterFinished")
    if seconds is None or OWNER in labels or OWNER_HASH in labels:
        return None
    if complete is None or complete.since is None or not complete.is_true_at(generation):
        return None
    # As many seconds as are allowed are more than a calendar has room for.
    return complete.since + timedelta(seconds=seconds) if seconds < _FOR_EVER.total_seconds() else None


def _is_true(said: Said | None, generation: int) -> bool:
    # An agent that does not say of which generation it speaks has not spoken of another one.
    return said is not None and (said.is_true_at(generation) or (said.status == "True" and not said.observed))


def _said(condition: Mapping[str, Any] | None) -> Said | None:
    if condition is None:
        return None
    message = condition.get("message") or ""
    return Said(
        status=condition.get("status") or "",
        observed=condition.get("observedGeneration") or 0,
        since=moment(condition.get("lastTransitionTime")),
        message=message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…",
    )


# What is done with one


def work_name(owner: Obj, placement: str, attempt: int = 0) -> str:
    """
    Return a name that two who make the same work at the same time both come to.

    Whose a work is its labels say, so where somebody else has the name another will do.
    """
    parts: list[Any] = [meta.namespace(owner), meta.name(owner), placement]
    return f"{meta.name(owner)}-{short([*parts, attempt] if attempt else parts, _NAME_LENGTH)}"


def labels_of(owner: Obj, placement: str, tag: str) -> Made:
    """Return the labels of a work: those of its owner, and over them the ones it is found by."""
    key = owner_key(meta.namespace(owner), meta.name(owner))
    return {**meta.labels(owner), OWNER: key, PLACED_BY: placement, HASH: tag}


def create(
    owner: Obj, cluster: str, placement: str, name: str, tag: str, template: Obj, now: datetime
) -> Create:
    """Return the making of a work."""
    return Create(
        obj={
            "apiVersion": WORK_VERSION,
            "kind": WORK.kind,
            "metadata": {
                "name": name,
                "namespace": cluster,
                "labels": labels_of(owner, placement, tag),
                "annotations": {DISPATCHED: stamp(now)},
            },
            "spec": template,
        }
    )


def rewrite(owner: Obj, work: Work, tag: str, template: Obj, now: datetime) -> Replace:
    """
    Return the rewriting of a work: the whole of its spec, since a patch would keep what the template lacks.
    """
    metadata = {
        **meta.metadata(work.obj),
        "labels": {**meta.labels(work.obj), **labels_of(owner, work.placement, tag)},
        "annotations": {**meta.annotations(work.obj), DISPATCHED: stamp(now)},
    }
    return Replace(obj={**work.obj, "metadata": metadata, "spec": template})


def relabel(work: Work, tag: str) -> Any:
    """Return the change of a work's mark alone: nothing is sent anywhere."""
    return change_metadata(work.obj, labels={**meta.labels(work.obj), HASH: tag})


def work_ref(cluster: str, name: str) -> Ref:
    return Ref(WORK_VERSION, WORK.kind, cluster, name)
