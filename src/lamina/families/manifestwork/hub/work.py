"""
One ManifestWork: its revision, when its spec was written, and the conditions that its agent reports.

A work is read once for each of its versions, because the digest of its spec is
costly. The cache keeps what is read and the metadata; the specs of a fleet are
megabytes that no plan needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Create, Patch, Replace, change_metadata
from lamina.core.rollout.revision import Revision
from lamina.families.manifestwork.hub.revision import content_digest
from lamina.families.manifestwork.labels import (
    DISPATCHED,
    HASH,
    OWNER,
    OWNER_HASH,
    PLACED_BY,
    WORK,
    WORK_VERSION,
    owner_key,
)
from lamina.objects import conditions, meta
from lamina.objects.digest import short
from lamina.objects.times import moment, stamp
from lamina.objects.types import GroupKind, Made, Obj, Ref

_LONGEST = 120
_FAILED, _CAUSE = "Failed to apply manifest work", "Failed to apply manifest: "
"""The message of a work of which a manifest could not be applied, and what that of the manifest begins with."""
_NAME_LENGTH = 8
_FOR_EVER = timedelta(days=100 * 365)


class WorkCondition(Struct, frozen=True, kw_only=True):
    """A condition as an agent reports it."""

    status: str
    observed: int
    since: datetime | None
    message: str = ""

    def is_true_at(self, generation: int) -> bool:
        return self.status == "True" and self.observed == generation


class Work(Struct, frozen=True, kw_only=True):
    """What the hub reads of one work. `digest` identifies its content, `hash` labels its revision."""

    kind: ClassVar[GroupKind] = WORK
    obj: Obj
    """Its metadata, without its spec and status."""
    cluster: str
    placement: str
    hash: str
    digest: str
    generation: int
    dispatched: datetime | None
    is_deleting: bool
    applied: WorkCondition | None
    available: WorkCondition | None
    progressing: WorkCondition | None
    degraded: WorkCondition | None
    is_true: tuple[bool, bool, bool, bool]
    """Which of the four conditions is True at the current generation."""
    expires: datetime | None
    """When it is deleted because it is complete and has a time to live; None if that is not known, or never."""

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def age(self) -> tuple[str, str]:
        """Return a key that orders works by creation."""
        return meta.metadata(self.obj).get("creationTimestamp") or "", self.name

    def has(self, revision: Revision) -> bool:
        """Say whether this work has the content of a revision; where that is lost, the hash decides."""
        return self.digest == revision.digest if revision.digest else self.hash == revision.hash


def keep_metadata(obj: Obj) -> Made:
    """Keep the metadata of a work."""
    metadata = {key: value for key, value in meta.metadata(obj).items() if key != "managedFields"}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def read_work(obj: Obj) -> Work:
    """Return what the hub reads of a work."""
    labels = meta.labels(obj)
    status = obj.get("status") or {}
    reported = status.get("conditions") or ()
    applied, available, progressing, degraded = (
        _condition(conditions.find(reported, name))
        for name in ("Applied", "Available", "Progressing", "Degraded")
    )
    generation = meta.generation(obj)
    return Work(
        obj=keep_metadata(obj),
        cluster=meta.namespace(obj),
        placement=labels.get(PLACED_BY, ""),
        hash=labels.get(HASH, ""),
        digest=content_digest(obj.get("spec") or {}),
        generation=generation,
        dispatched=moment(meta.annotations(obj).get(DISPATCHED)),
        is_deleting=meta.is_deleting(obj),
        applied=_with_cause(applied, status),
        available=available,
        progressing=progressing,
        degraded=degraded,
        is_true=(
            _is_true(applied, generation),
            _is_true(available, generation),
            _is_true(progressing, generation),
            _is_true(degraded, generation),
        ),
        expires=_expires(obj, _condition(conditions.find(reported, "Complete"))),
    )


def _expires(obj: Obj, complete: WorkCondition | None) -> datetime | None:
    labels, generation = meta.labels(obj), meta.generation(obj)
    seconds = ((obj.get("spec") or {}).get("deleteOption") or {}).get("ttlSecondsAfterFinished")
    if seconds is None or OWNER in labels or OWNER_HASH in labels:
        return None
    if complete is None or complete.since is None or not complete.is_true_at(generation):
        return None
    # The largest allowed number of seconds is beyond the last date that can be represented.
    return complete.since + timedelta(seconds=seconds) if seconds < _FOR_EVER.total_seconds() else None


def _is_true(condition: WorkCondition | None, generation: int) -> bool:
    # A condition without observedGeneration counts as current.
    return condition is not None and (
        condition.is_true_at(generation) or (condition.status == "True" and not condition.observed)
    )


def _with_cause(applied: WorkCondition | None, status: Obj) -> WorkCondition | None:
    """Return Applied with the message of the first manifest that could not be applied, where it has none itself."""
    if applied is None or applied.status != "False" or applied.message not in ("", _FAILED):
        return applied
    for entry in (status.get("resourceStatus") or {}).get("manifests") or ():
        found = conditions.find(entry.get("conditions") or (), "Applied")
        if found is None or found["status"] != "False" or not found.get("message"):
            continue
        if (found.get("observedGeneration") or applied.observed) == applied.observed:
            return replace(applied, message=_cause(entry.get("resourceMeta") or {}, found["message"]))
    return applied


def _cause(resource: Obj, message: str) -> str:
    """Return why a manifest could not be applied; a server names the object at the start, and the cause at the end."""
    named = "/".join(filter(None, (resource.get("namespace"), resource.get("name"))))
    message = message.removeprefix(_CAUSE)
    if len(message) > 2 * _LONGEST:
        message = f"{message[:_LONGEST]}…{message[-_LONGEST:]}"
    return f"{resource.get('kind')} {named}: {message}" if resource.get("kind") and named else message


def _condition(condition: Mapping[str, Any] | None) -> WorkCondition | None:
    if condition is None:
        return None
    message = condition.get("message") or ""
    return WorkCondition(
        status=condition.get("status") or "",
        observed=condition.get("observedGeneration") or 0,
        since=moment(condition.get("lastTransitionTime")),
        message=message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…",
    )


# ── writes ──


def work_name(owner: Obj, placement: str, attempt: int = 0) -> str:
    """
    Return the name of a work, the same in every pass; each attempt leads to another.

    The labels say which owner a work has, so any name will do where the first is taken.
    """
    parts: list[Any] = [meta.namespace(owner), meta.name(owner), placement]
    return f"{meta.name(owner)}-{short([*parts, attempt] if attempt else parts, _NAME_LENGTH)}"


def _labels(owner: Obj, placement: str, hash: str) -> Made:
    """Return the labels of a work: those of its owner, and those that select it."""
    key = owner_key(meta.namespace(owner), meta.name(owner))
    return {**meta.labels(owner), OWNER: key, PLACED_BY: placement, HASH: hash}


def create_work(
    owner: Obj, cluster: str, placement: str, name: str, revision: Revision, now: datetime
) -> Create:
    """Return the creation of a work on a revision."""
    return Create(
        obj={
            "apiVersion": WORK_VERSION,
            "kind": WORK.kind,
            "metadata": {
                "name": name,
                "namespace": cluster,
                "labels": _labels(owner, placement, revision.hash),
                "annotations": {DISPATCHED: stamp(now)},
            },
            "spec": revision.snapshot,
        }
    )


def replace_work(owner: Obj, work: Work, revision: Revision, now: datetime) -> Replace:
    """Return the replacement of a work's spec: a merge patch would keep fields that the template lacks."""
    metadata = {
        **meta.metadata(work.obj),
        "labels": {**meta.labels(work.obj), **_labels(owner, work.placement, revision.hash)},
        "annotations": {**meta.annotations(work.obj), DISPATCHED: stamp(now)},
    }
    return Replace(obj={**work.obj, "metadata": metadata, "spec": revision.snapshot})


def relabel_work(work: Work, hash: str) -> Patch:
    """Return the change of a work's hash label alone, which its agent ignores."""
    return change_metadata(work.obj, labels={**meta.labels(work.obj), HASH: hash})


def work_ref(cluster: str, name: str) -> Ref:
    return Ref(WORK_VERSION, WORK.kind, cluster, name)
