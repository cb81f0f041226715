"""All that is done about one work: about its manifests, and about objects that no manifest is about any more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from lamina.core.model.queries import Answers, Query
from lamina.families.manifestwork.agent.applied_manifestwork import Entry, SetKeys, entries, set_keys
from lamina.families.manifestwork.agent.live_object import live_state
from lamina.families.manifestwork.agent.manifest import wanted_resources
from lamina.families.manifestwork.agent.manifest_step import ManifestStep, manifest_step
from lamina.families.manifestwork.agent.ownership import RELEASED, Release, release_object
from lamina.families.manifestwork.agent.shared_resources import Sharers
from lamina.families.manifestwork.agent.view import View
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj


class StaleResource(Struct, frozen=True, kw_only=True):
    """What is done about an object that is recorded and that no manifest is about."""

    entry: Entry
    release: Release = RELEASED
    queries: tuple[Query, ...] = ()
    is_watched: bool = True


class WorkSteps(Struct, frozen=True, kw_only=True):
    """All that is done about one work."""

    steps: tuple[ManifestStep, ...]
    stale: tuple[StaleResource, ...]

    @property
    def queries(self) -> Iterator[Query]:
        for step in self.steps:
            yield from step.queries
        for one in self.stale:
            yield from one.queries


def work_steps(view: View, record: Obj, answers: Answers) -> WorkSteps:
    """Return what is done about a work, as far as the answers decide it."""
    keys, wanted = set_keys(record), wanted_resources(view.manifests, view.kinds)
    known = {entry.resource: entry.uid for entry in entries(record)}
    steps = tuple(
        manifest_step(view, one, record, keys.get(one.resource, SetKeys()), known.get(one.resource), answers)
        for one in view.manifests
    )
    stale = tuple(
        stale_resource(entry, record, view.kinds, answers, view.sharers)
        for entry in entries(record)
        if entry.resource not in wanted
    )
    return WorkSteps(steps=steps, stale=stale)


def stale_resource(
    entry: Entry, record: Obj, kinds: Kinds, answers: Answers, sharers: Sharers
) -> StaleResource:
    """Return what is done about an object that a record lists and no manifest is about."""
    kind = entry.kind(kinds)
    if kind is None:
        # Objects of a kind that is no longer served are gone.
        return StaleResource(entry=entry)
    ref = kind.ref(entry.resource.namespace, entry.resource.name)
    found = live_state(kind, ref, answers, record=meta.name(record), watches=True)
    if found.queries:
        return StaleResource(entry=entry, queries=found.queries)
    if found.unknown:
        return StaleResource(entry=entry, release=Release(waits=True), is_watched=False)
    others = partial(sharers.sharing, entry.resource, kind, found.obj)
    release = release_object(found.obj, entry.uid, record, others)
    return StaleResource(entry=entry, release=release, is_watched=found.is_watched)
