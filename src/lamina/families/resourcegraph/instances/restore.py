"""
Rolls an instance back to an input revision: its spec, and with it the revision of the definition.

The annotation that asks for it is removed together with the edit, in one conditional update.
How it stands is reported first, so that a process that ends in between loses neither. What
the server refuses, or would store without some of the fields, changes nothing. A dry run that
the server fails is repeated. Nothing is decided on a stale cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from lamina.core.model.plan import Plan, Replace, Stage, change
from lamina.core.model.queries import Answers, DryRun, Found, Query, Refused
from lamina.families.resourcegraph.definitions.findings import ROLLED_BACK, Finding
from lamina.families.resourcegraph.instances import status
from lamina.families.resourcegraph.instances.input_revisions import InputRevision, numbered
from lamina.families.resourcegraph.instances.recording import what_the_cache_lacks
from lamina.families.resourcegraph.instances.restored import (
    PAIR,
    SPEC,
    Request,
    is_unchanged,
    message_of,
    request,
    restored,
)
from lamina.families.resourcegraph.instances.view import View
from lamina.families.resourcegraph.labels import MANAGER, ROLLBACK_INPUT, ROLLBACK_SCOPE
from lamina.objects import conditions, meta
from lamina.objects.digest import digest
from lamina.objects.paths import Path, shown
from lamina.objects.types import Made, Obj

_FAILED = "DryRunFailed"
_SERVER_ERROR = 500
_SOON, _LATER = timedelta(seconds=1), timedelta(seconds=10)


def plan(view: View, answers: Answers, now: datetime) -> Plan | None:
    """Return the next step of a rollback; None where none is asked for."""
    asked = request(view)
    if asked is None:
        return None
    if lacking := what_the_cache_lacks(view, answers):
        return Plan(queries=lacking.queries, because=lacking.waits, requeue_after=_SOON)
    decided = _decide(view, asked, answers)
    if not isinstance(decided, tuple):
        return Plan(queries=(decided,))
    finding, wanted = decided
    reported = status.rolled_back(view, finding, now)
    if reported and not _is_reported(view, finding):
        again = _LATER if finding.reason == _FAILED else None
        return Plan(stages=(Stage("report", reported),), because=finding.message, requeue_after=again)
    if finding.reason == _FAILED:
        return Plan(because=finding.message, requeue_after=_LATER)
    if wanted is not None:
        counted = (status.rollback_counter(),)
        name, action = "restore the spec", Replace(obj=wanted, counters=counted)
        return Plan(stages=(Stage(name, (action,)),), because=finding.message)
    removed = {"metadata": {"annotations": {ROLLBACK_INPUT: None, ROLLBACK_SCOPE: None}}}
    counted = (status.rollback_counter(finding.reason),)
    ended = replace(change(view.obj, removed), counters=counted)
    return Plan(stages=(Stage("remove the annotation", (ended,)),), because=finding.message)


def _is_reported(view: View, finding: Finding) -> bool:
    if finding.is_true and view.hides_conditions:
        # What is true is not shown beside the conditions of an author.
        return True
    found = conditions.find(conditions.of(view.obj), ROLLED_BACK)
    return found is not None and (found["status"], found.get("reason"), found.get("message")) == finding


def _decide(view: View, asked: Request, answers: Answers) -> tuple[Finding, Made | None] | Query:
    """Return how the rollback stands and the instance to write, or the dry run of that write."""
    number, scope = asked.number, asked.scope
    if not number:
        return _refused(
            "InvalidRevision", f'{ROLLBACK_INPUT} is "{asked.stated}", which is no positive integer'
        )
    if scope not in (PAIR, SPEC):
        return _refused("InvalidRevision", f'{ROLLBACK_SCOPE} is "{scope}": set it to {PAIR} or {SPEC}')
    found = numbered(view.inputs, number)
    if found is None or found.spec is None:
        known = ", ".join(str(one.number) for one in view.inputs if one.spec is not None) or "none"
        return _refused(
            "InputRevisionNotFound", f"input revision {number} does not exist; available: {known}"
        )
    if scope == PAIR and not view.has_revision(found):
        because = f"RGD revision {found.revision} of input revision {number} does not exist any more"
        return _refused("RGDRevisionPruned", f"{because}; {ROLLBACK_SCOPE}={SPEC} restores the spec alone")
    wanted = restored(view, found, scope)
    if is_unchanged(view, wanted):
        return Finding("True", "NoChange", f"it has the content of input revision {number} already"), None
    return _checked(view, found, wanted, message_of(found, scope), answers)


def _checked(
    view: View, found: InputRevision, wanted: Made, message: str, answers: Answers
) -> tuple[Finding, Made | None] | Query:
    query = DryRun(
        obj=wanted,
        manager=MANAGER,
        key=digest(["restore", meta.uid(view.obj), meta.resource_version(view.obj), found.number]),
        replaces=True,
        fresh=True,
    )
    match answers.get(query):
        case None:
            return query
        case Refused(code=code, because=because) if code >= _SERVER_ERROR:
            failed = f"the dry run of input revision {found.number} failed, and is repeated: {because}"
            return Finding("Unknown", _FAILED, failed), None
        case Refused(because=because):
            return _refused("SpecRejected", f"input revision {found.number} is refused: {because}")
        case Found(obj=became) if lost := _first_lost(wanted["spec"], became.get("spec") or {}):
            because = f"the schema that is served has no field {shown(('spec', *lost))}"
            return _refused("SpecPruned", f"input revision {found.number} would lose data: {because}")
    return Finding("Unknown", "Restoring", message), wanted


def _refused(reason: str, message: str) -> tuple[Finding, None]:
    return Finding("False", reason, message), None


def _first_lost(wanted: Obj, became: Obj) -> Path:
    return next(_lost(wanted, became), ())


def _lost(wanted: Any, became: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the fields that a server would not store."""
    if isinstance(wanted, Mapping) and isinstance(became, Mapping):
        for name, value in wanted.items():
            if name not in became:
                yield (*path, name)
            else:
                yield from _lost(value, became[name], (*path, name))
    elif isinstance(wanted, list) and isinstance(became, list):
        for index, (one, other) in enumerate(zip(wanted, became, strict=False)):
            yield from _lost(one, other, (*path, index))
