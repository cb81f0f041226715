"""
The new ReplicaSet of a Deployment, and its revision.

The new ReplicaSet is the oldest one with the Deployment's template; where there
is none, one is created, named after the template's hash. Its revision is one more
than that of any other. One that becomes the new ReplicaSet again gets a new
revision, and keeps its old one in its revision history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lamina.actors.workloads.deployment.sets import (
    HISTORY,
    NOT_COPIED,
    REVISION,
    ReplicaSet,
    from_object,
    is_rolling,
    max_surge,
    oldest_first,
    size_annotations,
    total,
)
from lamina.actors.workloads.replica_sync import wanted
from lamina.actors.workloads.templates import HASH_LABEL, compute_hash, is_same
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_INTEGER = re.compile("[+-]?[0-9]+", re.ASCII).fullmatch
_LONGEST_NAME = 253
_LONGEST_HISTORY = 2000


def find_new_and_old(deployment: Obj, sets: Iterable[Obj]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """Return the new ReplicaSet, if there is one, and the old ones, the oldest first."""
    ordered = oldest_first(map(from_object, sets))
    template = deployment["spec"]["template"]
    for index, one in enumerate(ordered):
        if is_same(one.observed["spec"]["template"], template):
            return one, ordered[:index] + ordered[index + 1 :]
    return None, ordered


def revision(obj: Obj) -> int | None:
    """Return the revision of a ReplicaSet, 0 where it has none yet; None where it is invalid."""
    written = meta.annotations(obj).get(REVISION)
    return 0 if written is None else parsed_revision(written)


def parsed_revision(text: str) -> int | None:
    """Return the number of an annotation, None where it is invalid."""
    return int(text) if _INTEGER(text) else None


def next_revision(old: Iterable[ReplicaSet]) -> int:
    return max((number for one in old if (number := revision(one.observed)) is not None), default=0) + 1


def last_revision(sets: Iterable[ReplicaSet]) -> int:
    """Return the revision before the highest, 0 where there is none."""
    numbers = sorted(number for one in sets if (number := revision(one.observed)) is not None)
    return numbers[-2] if len(numbers) > 1 else 0


def with_annotations_synced(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> ReplicaSet:
    """Return the new ReplicaSet with its revision and the Deployment's annotations."""
    annotations = {**new.annotations, **_copied_annotations(deployment)}
    before = revision(new.observed)
    number = next_revision(old)
    if before is not None and before < number:
        annotations[REVISION] = str(number)
        if REVISION in new.annotations:
            annotations |= _revision_history(new.annotations)
    min_ready = int(deployment["spec"].get("minReadySeconds") or 0)
    return replace(new, annotations=annotations, min_ready=min_ready)


def new_replicaset(deployment: Obj, old: Sequence[ReplicaSet]) -> ReplicaSet:
    """Return a ReplicaSet to create, with the Deployment's template."""
    template = deployment["spec"]["template"]
    hashed = compute_hash(template, collisions(deployment))
    labelled = _with_hash(template.get("metadata") or {}, hashed)
    selector = deployment["spec"].get("selector") or {}
    obj: Made = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": new_replicaset_name(deployment),
            "namespace": meta.namespace(deployment),
            "labels": labelled["labels"],
            "ownerReferences": [meta.owner_ref(deployment, controller=True, blocks=True)],
        },
        "spec": {
            "replicas": 0,
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: hashed},
            },
            "template": {**template, "metadata": labelled},
        },
    }
    annotations = {
        **_copied_annotations(deployment),
        REVISION: str(next_revision(old)),
        **size_annotations(deployment),
    }
    new = ReplicaSet(
        observed=obj,
        annotations=annotations,
        min_ready=int(deployment["spec"].get("minReadySeconds") or 0),
        exists=False,
    )
    return replace(new, sizes=(new_size(deployment, new, old),))


def new_size(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> int:
    """Return the replicas that the new ReplicaSet may have, given those of the others."""
    desired = wanted(deployment)
    if not is_rolling(deployment):
        return desired
    free = desired + max_surge(deployment) - total([new, *old])
    return new.size + max(0, min(free, desired - new.size))


def new_replicaset_name(deployment: Obj) -> str:
    """Return the name of a ReplicaSet with the Deployment's template."""
    hashed = compute_hash(deployment["spec"]["template"], collisions(deployment))
    return f"{meta.name(deployment)[: _LONGEST_NAME - 1 - len(hashed)]}-{hashed}"


def collisions(deployment: Obj) -> int | None:
    count = (deployment.get("status") or {}).get("collisionCount")
    return None if count is None else int(count)


def _with_hash(head: Obj, hashed: str) -> Made:
    return {**head, "labels": {**(head.get("labels") or {}), HASH_LABEL: hashed}}


def _copied_annotations(deployment: Obj) -> dict[str, str]:
    return {key: value for key, value in meta.annotations(deployment).items() if key not in NOT_COPIED}


def _revision_history(annotations: Obj) -> dict[str, str]:
    """Return the revision history with the current revision added; the oldest are dropped when it is too long."""
    number = annotations[REVISION]
    history = annotations.get(HISTORY) or ""
    if not history:
        return {HISTORY: number}
    numbers = [*history.split(","), number]
    while len(",".join(numbers)) > _LONGEST_HISTORY and len(numbers) > 1:
        del numbers[0]
    return {HISTORY: ",".join(numbers)}
