"""
The revisions of a parent: snapshots of the fields it rolls out, and which children each has.

A snapshot is a patch of the parent: the listed fields, as they were. A parent as
it was is the parent as it is with those fields put back; metadata and status are
today's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from lamina.core.revision import Revision
from lamina.families.metacontroller.apply import as_go_writes
from lamina.families.metacontroller.names import API_VERSION, CONTROLLER_UID, MOVED_AT, NUMBER, REVISION
from lamina.families.metacontroller.view import View
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.paths import Path, drop, get, pick, put
from lamina.objects.times import moment, stamp
from lamina.objects.types import GroupKind, Made, Obj

_LONGEST_PREFIX = 212
_ABSENT = object()


class Kept(Struct, frozen=True, kw_only=True):
    """A revision, and the object it is kept as, if it is kept already."""

    revision: Revision
    obj: Obj | None
    claimed: tuple[tuple[GroupKind, str], ...] = ()
    """The children this revision is said to have."""
    is_plain: bool = False
    """Whether that is written down as it would be now."""

    @property
    def name(self) -> str:
        return self.revision.name

    @property
    def moved_at(self) -> datetime | None:
        return moment(meta.annotations(self.obj).get(MOVED_AT)) if self.obj is not None else None


def _claimed(obj: Obj) -> Iterator[tuple[GroupKind, str]]:
    for group in obj.get("children") or ():
        kind = GroupKind(group.get("apiGroup") or "", group.get("kind") or "")
        for name in group.get("names") or ():
            yield kind, name


def snapshot(parent: Obj, paths: Iterable[Path]) -> Made:
    """Return the fields that are rolled out; a field that is not there is left out."""
    return pick(parent, paths)


def as_it_was(parent: Obj, revision: Revision, paths: Sequence[Path]) -> Obj:
    """Return the parent with the fields of a revision put back; a field it did not have is gone."""
    past: Obj = parent
    for path in paths:
        value = get(revision.snapshot, path, default=_ABSENT)
        past = drop(past, path) if value is _ABSENT else put(past, path, value)
    return past


def revision_name(view: View, patch: Obj) -> str:
    """Return a name that is the same whenever the same snapshot of the same parent is taken."""
    kind = view.rule.kind
    text = meta.uid(view.parent) + as_go_writes(patch)
    prefix = f"{kind.plural}.{kind.group or 'core'}"[:_LONGEST_PREFIX].rstrip("-.")
    return f"{prefix}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}"


def kept_revisions(view: View) -> tuple[Kept, ...]:
    """Return the revisions that are kept, the newest first."""
    known = view.recall.kept
    kept = [known.find(obj) or known.keep(_read(obj), obj) for obj in view.revisions]
    return tuple(sorted(kept, key=_age, reverse=True))


def _read(obj: Obj) -> Kept:
    claimed = tuple(_claimed(obj))
    return Kept(
        revision=Revision(number=_number(obj), name=meta.name(obj), snapshot=obj.get("parentPatch") or {}),
        obj=obj,
        claimed=claimed,
        is_plain=is_same(_grouped(claimed), obj.get("children") or []),
    )


def _age(kept: Kept) -> tuple[int, str, str]:
    assert kept.obj is not None
    return kept.revision.number, meta.metadata(kept.obj).get("creationTimestamp") or "", kept.name


def _number(obj: Obj) -> int:
    text = meta.annotations(obj).get(NUMBER, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def written(
    view: View,
    kept: Kept,
    names: Iterable[tuple[GroupKind, str]],
    *,
    number: int,
    moved_at: datetime | None,
) -> Made:
    """Return the object a revision is kept as: the old one with these children, or a new one."""
    annotations = _annotations(number, moved_at)
    children = _grouped(names)
    if kept.obj is not None:
        metadata = {**meta.metadata(kept.obj), "annotations": {**meta.annotations(kept.obj), **annotations}}
        return {**kept.obj, "metadata": metadata, "children": children}
    return {
        "apiVersion": API_VERSION,
        "kind": REVISION.kind,
        "metadata": {
            "name": kept.name,
            "namespace": meta.namespace(view.parent),
            "labels": _labels(view),
            "annotations": annotations,
            "ownerReferences": [meta.owner_ref(view.parent, controller=True, blocks=True)],
        },
        "parentPatch": kept.revision.snapshot,
        "children": children,
    }


def says(obj: Obj, *, number: int, moved_at: datetime | None) -> bool:
    """Say whether a revision is kept with this number and moment already."""
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
    """Return labels by which a parent with the same selector would find its revisions again."""
    parent = view.parent
    if view.setup.generates_selector:
        return {CONTROLLER_UID: meta.uid(parent), **view.revision_labels}
    spec = parent.get("spec") or {}
    template = _words(get(spec, ("template", "metadata", "labels")))
    selected = (spec.get("selector") or {}).get("matchLabels") or {}
    return {**template, **selected, **view.revision_labels}


def _words(value: Any) -> Made:
    """Return what may be labels of it: a parent may have anything where others have a template."""
    if not isinstance(value, Mapping):
        return {}
    return {name: text for name, text in value.items() if isinstance(text, str)}
