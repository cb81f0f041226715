"""
Which ReplicaSet is the new one, and what number it has.

The new set is the oldest one whose template is the Deployment's; where there is
none, one is made, named after the template. Its revision is one more than that
of any other. A set that becomes the new one again gets a new number and
remembers the one it had.
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
    as_seen,
    is_rolling,
    max_surge,
    oldest_first,
    sizes_noted,
    total,
)
from lamina.actors.workloads.replicas import wanted
from lamina.actors.workloads.templates import HASH_LABEL, is_same, mark
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_INTEGER = re.compile("[+-]?[0-9]+", re.ASCII).fullmatch
_LONGEST_NAME = 253
_LONGEST_HISTORY = 2000


def divided(deployment: Obj, sets: Iterable[Obj]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """Return the new set, if there is one, and the old ones from old to new."""
    ordered = oldest_first(map(as_seen, sets))
    template = deployment["spec"]["template"]
    for index, one in enumerate(ordered):
        if is_same(one.seen["spec"]["template"], template):
            return one, ordered[:index] + ordered[index + 1 :]
    return None, ordered


def revision(obj: Obj) -> int | None:
    """Return the number of a set, 0 where it has none yet; None where it is nonsense."""
    written = meta.annotations(obj).get(REVISION)
    if written is None:
        return 0
    return int(written) if _INTEGER(written) else None


def next_revision(old: Iterable[ReplicaSet]) -> int:
    return max((number for one in old if (number := revision(one.seen)) is not None), default=0) + 1


def last_revision(sets: Iterable[ReplicaSet]) -> int:
    """Return the number before the highest, 0 where there is none."""
    numbers = sorted(number for one in sets if (number := revision(one.seen)) is not None)
    return numbers[-2] if len(numbers) > 1 else 0


def renewed(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> ReplicaSet:
    """Return the new set with its number and what it is to know about the Deployment."""
    annotations = {**new.annotations, **_handed_on(deployment)}
    before = revision(new.seen)
    number = next_revision(old)
    if before is not None and before < number:
        annotations[REVISION] = str(number)
        if REVISION in new.annotations:
            annotations |= _remembered(new.annotations)
    min_ready = int(deployment["spec"].get("minReadySeconds") or 0)
    return replace(new, annotations=annotations, min_ready=min_ready)


def made(deployment: Obj, old: Sequence[ReplicaSet]) -> ReplicaSet:
    """Return the set of a Deployment's template that is not there yet."""
    template = deployment["spec"]["template"]
    hashed = mark(template, collisions(deployment))
    labelled = _with_hash(template.get("metadata") or {}, hashed)
    selector = deployment["spec"].get("selector") or {}
    obj: Made = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name_of_new(deployment),
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
        **_handed_on(deployment),
        REVISION: str(next_revision(old)),
        **sizes_noted(deployment),
    }
    new = ReplicaSet(
        seen=obj,
        annotations=annotations,
        min_ready=int(deployment["spec"].get("minReadySeconds") or 0),
        exists=False,
    )
    return replace(new, sizes=(room(deployment, new, old),))


def room(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> int:
    """Return how large the new set may be, given what the others have."""
    desired = wanted(deployment)
    if not is_rolling(deployment):
        return desired
    free = desired + max_surge(deployment) - total([new, *old])
    return new.size + max(0, min(free, desired - new.size))


def name_of_new(deployment: Obj) -> str:
    """Return what a set of the Deployment's template would be called."""
    hashed = mark(deployment["spec"]["template"], collisions(deployment))
    return f"{meta.name(deployment)[: _LONGEST_NAME - 1 - len(hashed)]}-{hashed}"


def collisions(deployment: Obj) -> int | None:
    count = (deployment.get("status") or {}).get("collisionCount")
    return None if count is None else int(count)


def _with_hash(head: Obj, hashed: str) -> Made:
    return {**head, "labels": {**(head.get("labels") or {}), HASH_LABEL: hashed}}


def _handed_on(deployment: Obj) -> dict[str, str]:
    return {key: value for key, value in meta.annotations(deployment).items() if key not in NOT_COPIED}


def _remembered(annotations: Obj) -> dict[str, str]:
    """Return the numbers a set has had, this one added; the oldest are forgotten when there are too many."""
    number = annotations[REVISION]
    history = annotations.get(HISTORY) or ""
    if not history:
        return {HISTORY: number}
    numbers = [*history.split(","), number]
    while len(",".join(numbers)) > _LONGEST_HISTORY and len(numbers) > 1:
        del numbers[0]
    return {HISTORY: ",".join(numbers)}
