"""
The revisions of a parent: snapshots of the fields it rolls out, and which children each of them claims.

A snapshot is a patch of the parent: the listed fields, as they were. A parent of
an older revision is the parent with those fields put back; its metadata and
status are the current ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from lamina.core.apply.three_way import go_json
from lamina.core.model.world import derived
from lamina.core.rollout.history import history, look_up
from lamina.core.rollout.revision import Revision
from lamina.families.metacontroller.labels import API_VERSION, CONTROLLER_UID, MOVED_AT, NUMBER, REVISION
from lamina.families.metacontroller.sync.view import Parent, View, revision_labels
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.kinds import Kind
from lamina.objects.paths import Path, drop, get, pick, put
from lamina.objects.times import moment, stamp
from lamina.objects.types import GroupKind, Made, Obj

_LONGEST_PREFIX = 212
_ABSENT = object()


class ClaimingRevision(Struct, frozen=True, kw_only=True):
    """A revision and the children it claims, as they are stored, if they are."""

    revision: Revision
    claimed: tuple[tuple[GroupKind, str], ...] = ()
    is_normalized: bool = False
    """Whether the claims are stored as they would be written now."""

    @property
    def name(self) -> str:
        return self.revision.name

    @property
    def obj(self) -> Obj | None:
        return self.revision.obj

    @property
    def moved_at(self) -> datetime | None:
        obj = self.revision.obj
        return moment(meta.annotations(obj).get(MOVED_AT)) if obj is not None else None


class ParentRevisions(Struct, frozen=True, kw_only=True):
    """The revision of the current spec, and the others of the parent."""

    latest: ClaimingRevision
    number: int
    """The number that the latest is to have."""
    others: tuple[ClaimingRevision, ...]
    """Newest first, whether or not they claim children."""
    duplicates: tuple[ClaimingRevision, ...] = ()
    """Older ones with the content of the latest."""

    @property
    def in_use(self) -> tuple[ClaimingRevision, ...]:
        """Return the revisions whose children have to be known: the latest, and those that claim any."""
        return (self.latest, *(one for one in self.others if one.claimed))


def revisions(view: View) -> ParentRevisions:
    """Return the revisions of a parent; the latest is not stored yet where the spec is new."""
    return view.memo.once(_of_view, view)


def _of_view(view: View) -> ParentRevisions:
    return view.memo.call(_revisions, view.identity, view.rule.kind, view.parent, view.revisions)


def _revisions(identity: Parent, kind: Kind, parent: Obj, stored: tuple[Obj, ...]) -> ParentRevisions:
    known = {one.name: one for one in (derived(read_revision, obj) for obj in stored)}
    patch = snapshot(parent, identity.setup.paths)
    wanted = Revision(number=0, name=revision_name(identity, kind, patch), snapshot=patch)
    found = look_up(history(one.revision for one in known.values()), wanted)
    return ParentRevisions(
        latest=known[found.stored.name] if found.stored is not None else ClaimingRevision(revision=wanted),
        number=found.wanted.number,
        others=tuple(known[one.name] for one in reversed(found.others)),
        duplicates=tuple(known[one.name] for one in reversed(found.duplicates)),
    )


def snapshot(parent: Obj, paths: Iterable[Path]) -> Made:
    """Return the fields that are rolled out; a field that is absent is left out."""
    return pick(parent, paths)


def with_snapshot(parent: Obj, revision: Revision, paths: Sequence[Path]) -> Obj:
    """Return the parent with the fields of a revision put back; a field that it did not have is removed."""
    older: Obj = parent
    for path in paths:
        value = get(revision.snapshot, path, default=_ABSENT)
        older = drop(older, path) if value is _ABSENT else put(older, path, value)
    return older


def revision_name(parent: Parent, kind: Kind, patch: Obj) -> str:
    """Return a name that is the same for every equal snapshot of one parent."""
    text = parent.owner["uid"] + go_json(patch)
    prefix = f"{kind.plural}.{kind.group or 'core'}"[:_LONGEST_PREFIX].rstrip("-.")
    return f"{prefix}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}"


def read_revision(obj: Obj) -> ClaimingRevision:
    """Return the revision that an object stores."""
    claimed = tuple(_claimed(obj))
    return ClaimingRevision(
        revision=Revision(
            number=_number(obj),
            name=meta.name(obj),
            snapshot=obj.get("parentPatch") or {},
            created=meta.metadata(obj).get("creationTimestamp") or "",
            obj=obj,
        ),
        claimed=claimed,
        is_normalized=is_same(_grouped(claimed), obj.get("children") or []),
    )


def _claimed(obj: Obj) -> Iterator[tuple[GroupKind, str]]:
    for group in obj.get("children") or ():
        kind = GroupKind(group.get("apiGroup") or "", group.get("kind") or "")
        for name in group.get("names") or ():
            yield kind, name


def _number(obj: Obj) -> int:
    text = meta.annotations(obj).get(NUMBER, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def revision_object(
    view: View,
    stored: ClaimingRevision,
    names: Iterable[tuple[GroupKind, str]],
    *,
    number: int,
    moved_at: datetime | None,
) -> Made:
    """Return the object that stores a revision: the existing one with these claims, or a new one."""
    annotations = _annotations(number, moved_at)
    children = _grouped(names)
    if stored.obj is not None:
        metadata = {
            **meta.metadata(stored.obj),
            "annotations": {**meta.annotations(stored.obj), **annotations},
        }
        return {**stored.obj, "metadata": metadata, "children": children}
    return {
        "apiVersion": API_VERSION,
        "kind": REVISION.kind,
        "metadata": {
            "name": stored.name,
            "namespace": meta.namespace(view.parent),
            "labels": _labels(view),
            "annotations": annotations,
            "ownerReferences": [view.identity.owner],
        },
        "parentPatch": stored.revision.snapshot,
        "children": children,
    }


def has_annotations(obj: Obj, *, number: int, moved_at: datetime | None) -> bool:
    """Say whether a revision is stored with this number and time already."""
    return _annotations(number, moved_at).items() <= meta.annotations(obj).items()


def _annotations(number: int, moved_at: datetime | None) -> dict[str, str]:
    return {NUMBER: str(number)} | ({MOVED_AT: stamp(moved_at)} if moved_at is not None else {})


def _grouped(names: Iterable[tuple[GroupKind, str]]) -> list[Made]:
    groups: dict[GroupKind, list[str]] = {}
    for kind, name in names:
        groups.setdefault(kind, []).append(name)
    return [
        {"apiGroup": kind.group, "kind": kind.kind, "names": those} for kind, those in sorted(groups.items())
    ]


def _labels(view: View) -> Made:
    """Return labels by which a parent with the same selector finds its revisions again."""
    parent, own = view.parent, revision_labels(view.rule.kind)
    if view.setup.generates_selector:
        return {CONTROLLER_UID: meta.uid(parent), **own}
    spec = parent.get("spec") or {}
    template = _text_values(get(spec, ("template", "metadata", "labels")))
    selected = (spec.get("selector") or {}).get("matchLabels") or {}
    return {**template, **selected, **own}


def _text_values(value: Any) -> Made:
    """Return what can be labels of a value: a parent may have anything in place of a template."""
    if not isinstance(value, Mapping):
        return {}
    return {name: text for name, text in value.items() if isinstance(text, str)}
