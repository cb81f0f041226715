"""
What is done about one manifest of a work.

A manifest that completed at this generation of the work is not applied again, even if
its object changes. A new generation is applied anew.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.apply.change_check import Effect
from lamina.core.model.plan import Action, Create
from lamina.core.model.queries import Answers, Query
from lamina.families.manifestwork.agent.applied_manifestwork import SetKeys
from lamina.families.manifestwork.agent.executor_rbac import access
from lamina.families.manifestwork.agent.live_object import LiveState, live_state, namespace_queries
from lamina.families.manifestwork.agent.manifest import AWAITS_DELETION, KEPT, Manifest
from lamina.families.manifestwork.agent.ownership import Others
from lamina.families.manifestwork.agent.update_strategy import (
    UNCHANGED,
    Writing,
    claim,
    content_check,
    writing,
)
from lamina.families.manifestwork.agent.view import View
from lamina.objects import meta
from lamina.objects.types import Obj

_DENIED_AGAIN = timedelta(seconds=60)


class ManifestOutcome(StrEnum):
    """How far a manifest is."""

    DONE = "done"
    WRITE = "write"
    """Its object has to be written first."""
    FAILED = "failed"


class ManifestStep(Struct, frozen=True, kw_only=True):
    """What is done about one manifest, or the queries that it depends on."""

    manifest: Manifest
    found: LiveState = LiveState()
    outcome: ManifestOutcome = ManifestOutcome.DONE
    action: Action | None = None
    message: str = ""
    is_ignore_error: bool = False
    is_kept: bool = False
    """Whether it is not applied because it has completed."""
    queries: tuple[Query, ...] = ()
    again: timedelta | None = None

    @property
    def live(self) -> Obj | None:
        return self.found.obj

    @property
    def creates(self) -> bool:
        """Whether its object is about to be created."""
        return self.action is not None and self.live is None


def manifest_step(
    view: View, manifest: Manifest, record: Obj, keys: SetKeys, recorded: str | None, answers: Answers
) -> ManifestStep:
    """
    Return what is done about a manifest.

    `keys` are those that earlier manifests set on its object; `recorded` is the uid that the
    record has for it, None where it does not list the object.
    """
    if manifest.wrong or manifest.kind is None:
        return ManifestStep(manifest=manifest, outcome=ManifestOutcome.FAILED, message=manifest.wrong)
    watches = (manifest.ref.api_version, manifest.ref.kind) in view.watched
    found = live_state(manifest.kind, manifest.ref, answers, record=meta.name(record), watches=watches)
    is_read_only, is_complete = manifest.config.strategy.type == "ReadOnly", view.is_complete(manifest)
    is_new = view.terms.executor is None and recorded is None
    older_work = None if is_read_only or is_complete else view.rivals.older_work(manifest)
    if found.queries and found.looks_absent and is_new and not (is_read_only or is_complete or older_work):
        # It is recorded first in any case, and read live before it is created; the next pass fills the creation in.
        return ManifestStep(manifest=manifest, outcome=ManifestOutcome.WRITE, action=Create(obj=manifest.obj))
    if found.queries:
        return ManifestStep(manifest=manifest, queries=found.queries)
    step = ManifestStep(manifest=manifest, found=found, is_kept=is_complete)
    if is_complete or is_read_only:
        return step
    if found.unknown:
        return _failed(step, found.unknown)
    if found.obj is not None and meta.is_deleting(found.obj):
        return _failed(step, f"{manifest} {AWAITS_DELETION}")
    # An object is recorded before its owner reference is set: only then are the other owners needed.
    is_listed = found.obj is not None and recorded == meta.uid(found.obj)
    live = found.obj if is_listed else None
    others = partial(view.sharers.sharing, manifest.resource, manifest.kind, live)
    if (
        older_work is not None
        and (kept := _kept(view, step, older_work, record, others, answers)) is not None
    ):
        return kept
    return _checked(view, step, writing(manifest, found.obj, record, keys, answers, others), answers)


def _kept(
    view: View, step: ManifestStep, older_work: Obj, record: Obj, others: Others, answers: Answers
) -> ManifestStep | None:
    """
    Return what is done about a manifest whose object an older work states otherwise; None where that is the same.

    Its content is left to that work. It is owned all the same, so that it stays when that
    work goes, and is taken over then.
    """
    manifest, live, claims = step.manifest, step.live, UNCHANGED
    if live is not None:
        if not view.rivals.differs_in_keys(older_work, manifest):
            check = content_check(manifest, live, answers)
            if check.effect is Effect.UNKNOWN and check.query is not None:
                return replace(step, queries=(check.query,))
            if check.effect is Effect.NONE:
                # They differ in what the server defaults, and do not undo each other's writes.
                return None
        claims = claim(manifest, live, record, others)
    checked = _checked(view, step, claims, answers)
    if checked.queries or checked.outcome is ManifestOutcome.FAILED:
        return checked
    message = f"{manifest} has other content in the older ManifestWork {meta.name(older_work)}, {KEPT}"
    return replace(_failed(checked, message), again=view.agent.options.poll)


def _failed(step: ManifestStep, message: str) -> ManifestStep:
    return replace(step, outcome=ManifestOutcome.FAILED, message=message)


def _checked(view: View, step: ManifestStep, wanted: Writing, answers: Answers) -> ManifestStep:
    """Return what is done about a manifest that its executor has to be allowed to apply."""
    manifest = step.manifest
    if wanted.queries:
        return replace(step, queries=wanted.queries)
    if wanted.failed:
        return replace(_failed(step, wanted.failed), is_ignore_error=wanted.is_ignore_error)
    if wanted.action is not None or not view.is_applied(manifest):
        evaluated = access(view.terms.executor, manifest, answers)
        if evaluated.queries:
            return replace(step, queries=evaluated.queries)
        if refused := evaluated.denied or evaluated.wrong:
            return replace(_failed(step, refused), again=_DENIED_AGAIN)
    if wanted.action is None:
        return step
    queries: tuple[Query, ...] = ()
    if step.live is None:
        # Its namespace may not exist yet.
        queries = tuple(
            one for one in namespace_queries(view.kinds, manifest.ref.namespace) if one not in answers
        )
    return replace(step, outcome=ManifestOutcome.WRITE, action=wanted.action, queries=queries)
