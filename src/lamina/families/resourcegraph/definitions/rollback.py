"""
Rollback of a definition to an older revision, which an annotation asks for.

The checks run in order; the first that fails is reported, and nothing else changes but that
the annotation goes. Where all pass, one write restores the schema and the resources and
removes the annotation; the new content is then published as any edit is, so history only
grows. A result is reported before the annotation goes: a process that ends in between
reports it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from lamina.core.model.plan import Emit, Plan, Replace, Stage
from lamina.core.model.queries import Answers, DryRun, Found, Read, Refused
from lamina.families.resourcegraph import counters
from lamina.families.resourcegraph.definitions import events
from lamina.families.resourcegraph.definitions.findings import Finding
from lamina.families.resourcegraph.definitions.queried import Instances, Unanswered, answer
from lamina.families.resourcegraph.definitions.rollback_checks import incompatible, uncompilable
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.labels import CONTENT_FROM, MANAGER, ROLLBACK, ROLLBACK_MODE
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.numbers import positive
from lamina.objects.types import Made, Obj

_SERVER_ERROR = 500
_WAITING = Plan(because="waiting for the cache to have the revision to roll back to")


class Result(Struct, frozen=True):
    """The result of a rollback that creates no revision, and the definition as it is to be afterwards."""

    finding: Finding
    restored: Obj


def step(view: View, instances: Instances, answers: Answers, now: datetime) -> Plan | Result | None:
    """Return the next step of a rollback, or its result; None where none is asked for. Raises Unanswered."""
    asked = meta.annotations(view.definition).get(ROLLBACK)
    if asked is None:
        return None
    number = positive(asked)
    if not number:
        return _refused(view, "InvalidRevision", f'{ROLLBACK} must be a positive integer, got "{asked}"')
    target = view.numbered(number)
    if target is None:
        return _missing(view, number, answers)
    if because := uncompilable(view, target, answers):
        return _refused(view, "RevisionFailed", f"revision {number} does not compile: {because}")
    if view.current is not None and target.hash == view.current.hash:
        message = f"revision {number} has the content of the current revision {view.current.number}"
        is_edited = not view.is_published
        restored = _restored(view, view.current, 0) if is_edited else _annotated(view.definition, {})
        return Result(Finding("True", "NoChange", message), restored)
    if view.awaits_discovery:
        return Plan(because=f"waiting until kind {view.stated.schema.kind} is served, to check its instances")
    if because := incompatible(view, target, instances, answers):
        return _refused(view, "BreakingChange", because)
    return _restore(view, target, answers, now)


def ended(view: View, result: Result, now: datetime) -> Plan:
    """Return what removes the annotation of a rollback whose result is reported, and reverts an edit if that is it."""
    counted = counters.rolled_back(counters.DEFINITION, result.finding.reason)
    stages = (
        Stage("emit events", (events.rolled_back(view.definition, result.finding, now),)),
        Stage("end the rollback", (Replace(obj=result.restored, counters=(counted,)),)),
    )
    return Plan(stages=stages, because=f"{result.finding.reason}: {result.finding.message}")


def _refused(view: View, reason: str, because: str) -> Result:
    return Result(Finding("False", reason, because), _annotated(view.definition, {}))


def _missing(view: View, number: int, answers: Answers) -> Plan | Result:
    """Report a revision that does not exist, after a live read: a cache may not have it yet."""
    assert view.revision_kind is not None, "a definition is served together with its revisions"
    there = answer(answers, Read(view.revision_kind.ref("", view.name_of(number))))
    if isinstance(there, Found):
        return _WAITING
    available = ", ".join(str(one.number) for one in view.revisions) or "none"
    return _refused(
        view, "RevisionNotFound", f"there is no revision {number}; the available revisions are {available}"
    )


def _restore(view: View, target: Revision, answers: Answers, now: datetime) -> Plan | Result:
    restored = _restored(view, target, target.number)
    version = meta.resource_version(view.definition)
    asked = DryRun(
        obj=restored,
        manager=MANAGER,
        key=digest([ROLLBACK, meta.uid(view.definition), version, target.number]),
        replaces=True,
        fresh=True,
    )
    found = answers.get(asked)
    if found is None:
        raise Unanswered((asked,))
    # Where the server itself fails, the write fails as well, and the rollback is tried again.
    if isinstance(found, Refused) and found.code < _SERVER_ERROR:
        return _refused(view, "Rejected", found.because)
    news = _news(view, target, found.obj if isinstance(found, Found) else {}, now)
    stages = (Stage("restore the content", (Replace(obj=restored),)), Stage("emit events", tuple(news)))
    return Plan(
        stages=tuple(one for one in stages if one.actions),
        because=f"restoring the content of revision {target.number}",
    )


def _restored(view: View, target: Revision, content_from: int) -> Made:
    """Return the definition with the content of a revision; with its number, where that is to be published."""
    spec = {**(view.definition.get("spec") or {}), **target.content}
    noted = {CONTENT_FROM: str(content_from)} if content_from else {}
    return _annotated({**view.definition, "spec": spec}, noted)


def _annotated(definition: Obj, noted: Obj) -> Made:
    """Return a definition without the annotations of its rollback; the mode is needed until it is published."""
    gone = {ROLLBACK, CONTENT_FROM} | (set() if noted else {ROLLBACK_MODE})
    kept = {key: value for key, value in meta.annotations(definition).items() if key not in gone}
    return meta.with_metadata(definition, annotations={**kept, **noted})


def _news(view: View, target: Revision, written: Obj, now: datetime) -> Iterator[Emit]:
    """Yield the event that names the field managers of the replaced spec, by the managed fields that the dry run shows."""
    managers = {
        str(one.get("manager"))
        for one in meta.metadata(written).get("managedFields") or ()
        if "f:spec" in (one.get("fieldsV1") or {}) and _applies(one)
    }
    if managers:
        yield events.applied_elsewhere(view.definition, ", ".join(sorted(managers)), target.number, now)


def _applies(entry: Obj) -> bool:
    manager = str(entry.get("manager") or "")
    return manager != MANAGER and (entry.get("operation") == "Apply" or manager.endswith("-apply"))
