"""
What is done about each manifest of a work now, and about what its manifests no longer mean.

A manifest that completed at this generation of the work is left alone, whatever
becomes of its object. A new generation is a new question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import partial

from msgspec import Struct

from lamina.core.plan import Action, Create
from lamina.core.questions import Answers, Question
from lamina.families.manifestwork.spoke.api import Resource
from lamina.families.manifestwork.spoke.executor import verdict
from lamina.families.manifestwork.spoke.manifest import Manifest, meant
from lamina.families.manifestwork.spoke.ownership import GONE, Parting, let_go
from lamina.families.manifestwork.spoke.record import Entry, SetKeys, entries, set_keys
from lamina.families.manifestwork.spoke.said import find_at
from lamina.families.manifestwork.spoke.sharing import ALONE, Shares, Sharing
from lamina.families.manifestwork.spoke.strategies import Writing, writing
from lamina.families.manifestwork.spoke.view import Seen, View, home_of, seen
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Obj

_DENIED_AGAIN = timedelta(seconds=60)


class Outcome(StrEnum):
    """What there is to say of a manifest."""

    DONE = "done"
    WRITE = "write"
    """Something has to be written first."""
    FAILED = "failed"


class Deed(Struct, frozen=True, kw_only=True):
    """What is done about one manifest, or what has to be asked before that is known."""

    manifest: Manifest
    seen: Seen = Seen()
    outcome: Outcome = Outcome.DONE
    action: Action | None = None
    message: str = ""
    is_ignore_error: bool = False
    is_kept: bool = False
    """Whether it is left alone because it has completed."""
    asks: tuple[Question, ...] = ()
    again: timedelta | None = None

    @property
    def there(self) -> Obj | None:
        return self.seen.obj

    @property
    def makes(self) -> bool:
        """Whether its object is about to be made."""
        return self.action is not None and self.there is None


class Leaving(Struct, frozen=True, kw_only=True):
    """What becomes of an object that was recorded and is no longer meant."""

    entry: Entry
    parting: Parting = GONE
    asks: tuple[Question, ...] = ()
    is_heard_of: bool = True


class Considered(Struct, frozen=True, kw_only=True):
    """Everything that is done about one work."""

    deeds: tuple[Deed, ...]
    leaving: tuple[Leaving, ...]

    @property
    def asks(self) -> Iterator[Question]:
        for deed in self.deeds:
            yield from deed.asks
        for one in self.leaving:
            yield from one.asks


def considered(view: View, record: Obj, answers: Answers) -> Considered:
    """Return what is done about a work, as far as that is known from what has been answered."""
    keys, wanted = set_keys(record), meant(view.manifests, view.kinds)
    known = {entry.resource: entry.uid for entry in entries(record)}
    deeds = tuple(_deed(view, one, record, keys, known, answers) for one in view.manifests)
    leaving = tuple(
        left(entry, record, view.kinds, answers, view.shares)
        for entry in entries(record)
        if entry.resource not in wanted
    )
    return Considered(deeds=deeds, leaving=leaving)


def left(entry: Entry, record: Obj, kinds: Kinds, answers: Answers, shares: Shares) -> Leaving:
    """Return what becomes of an object that a record has and nobody means any more."""
    kind = entry.kind(kinds)
    if kind is None:
        # What is not served any more took its objects along.
        return Leaving(entry=entry)
    ref = kind.ref(entry.resource.namespace, entry.resource.name)
    found = seen(kind, ref, answers, record=meta.name(record), watches=True)
    if found.asks:
        return Leaving(entry=entry, asks=found.asks)
    if found.unknown:
        return Leaving(entry=entry, parting=Parting(waits=True), is_heard_of=False)
    others = partial(_others, shares, entry.resource, kind, found.obj)
    parting = let_go(found.obj, entry.uid, record, others)
    return Leaving(entry=entry, parting=parting, is_heard_of=found.is_heard_of)


def _others(shares: Shares, resource: Resource, kind: Kind, obj: Obj | None) -> Sharing:
    return shares(resource, kind, obj) if obj is not None else ALONE


def _about_to_be(manifest: Manifest) -> Action:
    """Return the making of an object that has yet to be written down; the next pass knows what is to be in it."""
    return Create(obj=manifest.obj)


def _deed(
    view: View,
    manifest: Manifest,
    record: Obj,
    keys: Mapping[Resource, SetKeys],
    known: Mapping[Resource, str],
    answers: Answers,
) -> Deed:
    """Return what is done about a manifest; `known` are the objects on the record, each with its uid."""
    if manifest.wrong or manifest.kind is None:
        return Deed(manifest=manifest, outcome=Outcome.FAILED, message=manifest.wrong)
    watches = (manifest.ref.api_version, manifest.ref.kind) in view.watched
    found = seen(manifest.kind, manifest.ref, answers, record=meta.name(record), watches=watches)
    makes = manifest.config.strategy.type != "ReadOnly" and not _is_complete(view, manifest)
    is_new = view.terms.executor is None and manifest.resource not in known
    if found.asks and found.looks_absent and is_new and makes:
        # It goes on the list first in any case, and is looked up for real before it is made.
        return Deed(manifest=manifest, outcome=Outcome.WRITE, action=_about_to_be(manifest))
    if found.asks:
        return Deed(manifest=manifest, asks=found.asks)
    if _is_complete(view, manifest):
        return Deed(manifest=manifest, seen=found, is_kept=True)
    if manifest.config.strategy.type == "ReadOnly":
        return Deed(manifest=manifest, seen=found)
    if found.unknown:
        return Deed(manifest=manifest, seen=found, outcome=Outcome.FAILED, message=found.unknown)
    if found.obj is not None and meta.is_deleting(found.obj):
        message = f"{manifest} is being deleted, and is made anew once it is gone"
        return Deed(manifest=manifest, seen=found, outcome=Outcome.FAILED, message=message)
    # What is not on the record goes there before it is marked: then is the time to look who else shares in it.
    is_listed = found.obj is not None and known.get(manifest.resource) == meta.uid(found.obj)
    others = partial(_others, view.shares, manifest.resource, manifest.kind, found.obj if is_listed else None)
    wanted = writing(manifest, found.obj, record, keys.get(manifest.resource, SetKeys()), answers, others)
    return _checked(view, manifest, found, wanted, answers)


def _checked(view: View, manifest: Manifest, found: Seen, wanted: Writing, answers: Answers) -> Deed:
    """Return what is done about a manifest that somebody has to be allowed to apply."""
    if wanted.asks:
        return Deed(manifest=manifest, seen=found, asks=wanted.asks)
    if wanted.failed:
        return Deed(
            manifest=manifest,
            seen=found,
            outcome=Outcome.FAILED,
            message=wanted.failed,
            is_ignore_error=wanted.is_ignore_error,
        )
    if wanted.action is not None or not _is_applied(view, manifest):
        judged = verdict(view.terms.executor, manifest, answers)
        if judged.asks:
            return Deed(manifest=manifest, seen=found, asks=judged.asks)
        if refused := judged.denied or judged.wrong:
            return Deed(
                manifest=manifest, seen=found, outcome=Outcome.FAILED, message=refused, again=_DENIED_AGAIN
            )
    if wanted.action is None:
        return Deed(manifest=manifest, seen=found)
    asks: tuple[Question, ...] = ()
    if found.obj is None:
        # Where it is to be made there may be nothing yet to make it in.
        asks = tuple(one for one in home_of(view.kinds, manifest.ref.namespace) if one not in answers)
    return Deed(manifest=manifest, seen=found, outcome=Outcome.WRITE, action=wanted.action, asks=asks)


def _is_complete(view: View, manifest: Manifest) -> bool:
    """Say whether a work, or this manifest of it, completed at this generation."""
    at = view.generation
    for said in (view.status.get("conditions") or (), view.said.conditions(manifest)):
        complete = find_at(said, "Complete", at)
        if complete is not None and complete["status"] == "True":
            return True
    return False


def _is_applied(view: View, manifest: Manifest) -> bool:
    applied = find_at(view.said.conditions(manifest), "Applied", view.generation)
    return applied is not None and applied["status"] == "True"
