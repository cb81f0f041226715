"""
The revision of a template: its hash, the set that has it, and the set that is created for it.

The hash covers the whole template and the count of collisions. A set that upstream made
has another hash; where its labels and its spec are those of the template, it is the current
one all the same, so that taking over a cluster rolls nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.ownership.controller_ref import controls
from lamina.core.rollout.history import History, history, look_up, next_collision
from lamina.core.rollout.revision import Revision
from lamina.families.objectset import lineage
from lamina.families.objectset.deployments.view import View
from lamina.families.objectset.labels import (
    API_VERSION,
    HASH,
    OWNING_DEPLOYMENT,
    TEARDOWN,
)
from lamina.families.objectset.set_facts import SetFacts
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.digest import short
from lamina.objects.types import Made, Obj

_LENGTH = 12
"""Longer than any hash of upstream, which tells ours from theirs."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OWN_PREFIX = "lamina.dev/"
COPIED = ("phases", "availabilityProbes", "successDelaySeconds", "collisionProtection")


class TemplateRevision(Struct, frozen=True, kw_only=True):
    """The current set, or None where the template has none yet; `previous` are all others, oldest first."""

    hash: str
    number: int
    """The number of the current set, or of the one to create."""
    current: SetFacts | None
    previous: tuple[SetFacts, ...]


def collisions(view: View) -> int:
    found = (view.obj.get("status") or {}).get("collisionCount")
    return found if isinstance(found, int) else 0


def template_hash(template: Obj, count: int) -> str:
    """Return the hash of a template."""
    return short([template, count], _LENGTH)


def find(view: View) -> TemplateRevision:
    """Return which set has the template: the newest one, or none."""
    hash, past = template_hash(view.valid_spec.template.stated, collisions(view)), revisions(view)
    digests = {one.name: hash for one in view.sets if _has(view, one, hash)}
    known = (replace(one, digest=digests.get(one.name, one.name)) for one in past.revisions)
    wanted = Revision(number=0, name=f"{meta.name(view.obj)}-{hash}", snapshot={}, digest=hash)
    found = look_up(history(known, past.high_water), wanted, ties=True)
    # The number of a set is immutable, so an older one of the same content is not renumbered.
    is_current = not (found.is_new or found.is_renumbered)
    return TemplateRevision(
        hash=hash,
        number=found.wanted.number,
        current=view.sets[-1] if is_current else None,
        previous=view.sets[:-1] if is_current else view.sets,
    )


def revisions(view: View) -> History:
    """Return all revisions of a deployment: its sets, archived ones included."""
    # Sets that an earlier deployment of this name left behind are of the same lineage.
    numbers = (lineage.number(one) for one in (*view.owned, *_left_behind(view)))
    return history(map(_revision, view.sets), max(numbers, default=0))


def _revision(one: SetFacts) -> Revision:
    return Revision(
        number=one.number,
        name=one.name,
        snapshot=_snapshot(one.obj),
        hash=meta.annotations(one.obj).get(HASH) or "",
        created=meta.metadata(one.obj).get("creationTimestamp") or "",
        obj=one.obj,
    )


def _snapshot(obj: Obj) -> Made:
    """Return the template that a set was made from; its annotations are not kept."""
    spec = obj.get("spec") or {}
    labels = {key: value for key, value in meta.labels(obj).items() if key != OWNING_DEPLOYMENT}
    return {"metadata": {"labels": labels}, "spec": {name: spec[name] for name in COPIED if name in spec}}


def _has(view: View, one: SetFacts, wanted: str) -> bool:
    found = meta.annotations(one.obj).get(HASH) or ""
    is_foreign = len(found) != _LENGTH
    return not one.is_archived and (found == wanted or (is_foreign and is_equal(view, one.obj)))


def is_equal(view: View, obj: Obj) -> bool:
    """Say whether a set has the labels and the spec of the template, whatever its hash is."""
    stated, spec = view.valid_spec.template.stated.get("spec") or {}, obj.get("spec") or {}
    labels = meta.labels(obj)
    return all(
        labels.get(key) == value for key, value in view.valid_spec.template.metadata.labels.items()
    ) and all(_is_same(stated.get(name), spec.get(name)) for name in COPIED)


def _is_same(one: object, other: object) -> bool:
    # Absent, empty and zero are the same; and so are an absent and the default collision protection.
    return is_same(_plain(one), _plain(other)) or (not one and not other)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: _plain(one)
            for key, one in value.items()
            if not (key == "collisionProtection" and one == "Prevent") and one is not None
        }
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


class NewSet(Struct, frozen=True, kw_only=True):
    """The set to create, or the count of collisions to record first; neither where a stale cache lacks the set."""

    obj: Made | None = None
    collisions: int | None = None


def new_set(view: View, found: TemplateRevision) -> NewSet:
    """Return the set that is created for a template that has none."""
    name = f"{meta.name(view.obj)}-{found.hash}"
    taken = view.named.get(name)
    if taken is None:
        return NewSet(obj=_made(view, name, found))
    if _is_ours(view, taken, found.number):
        return NewSet()
    template = view.valid_spec.template.stated

    def is_taken(count: int) -> bool:
        return f"{meta.name(view.obj)}-{template_hash(template, count)}" in view.named

    return NewSet(collisions=next_collision(is_taken, collisions(view) + 1))


def _left_behind(view: View) -> list[Obj]:
    """Return the sets with the label of this deployment that nothing controls."""
    marked = (
        one for one in view.named.values() if meta.labels(one).get(OWNING_DEPLOYMENT) == meta.name(view.obj)
    )
    return [one for one in marked if meta.controller_of(one) is None and not meta.is_deleting(one)]


def _is_ours(view: View, taken: Obj, number: int) -> bool:
    """Say whether a set that has the name is the one that was just created, which the cache does not list yet."""
    spec = taken.get("spec") or {}
    return (
        controls(meta.uid(view.obj), taken)
        and not meta.is_deleting(taken)
        and spec.get("lifecycleState") != "Archived"
        and (spec.get("revision") or 0) >= number
        and is_equal(view, taken)
    )


def _made(view: View, name: str, found: TemplateRevision) -> Made:
    stated = view.valid_spec.template.stated.get("spec") or {}
    metadata: Made = {
        "name": name,
        **({"namespace": meta.namespace(view.obj)} if meta.namespace(view.obj) else {}),
        "labels": {**view.valid_spec.template.metadata.labels, OWNING_DEPLOYMENT: meta.name(view.obj)},
        "annotations": {**_annotations(view.obj), HASH: found.hash},
        "finalizers": [TEARDOWN],
        "ownerReferences": [meta.owner_ref(view.obj, controller=True, blocks=True)],
    }
    spec: Made = {"lifecycleState": "Active", **{key: stated[key] for key in COPIED if key in stated}}
    spec["revision"] = found.number
    if earlier := [*(one.name for one in view.sets), *map(meta.name, _left_behind(view))]:
        spec["previous"] = [{"name": one} for one in earlier]
    if view.valid_spec.progress_deadline_seconds is not None:
        spec["progressDeadlineSeconds"] = view.valid_spec.progress_deadline_seconds
    return {"apiVersion": API_VERSION, "kind": view.set_kind.kind, "metadata": metadata, "spec": spec}


def _annotations(obj: Obj) -> Made:
    return {
        key: value
        for key, value in meta.annotations(obj).items()
        if key != _LAST_APPLIED and not key.startswith(_OWN_PREFIX)
    }
