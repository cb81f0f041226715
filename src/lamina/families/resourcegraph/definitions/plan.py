"""
The next step of one ResourceGraphDefinition.

In order: it is held by a finalizer, orphaned revisions are adopted, a rollback is carried out,
an edit is published as a revision, and the current revision is served. Each pass does what can
be done now; its writes lead to the next pass.
"""

from __future__ import annotations

from datetime import datetime

from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.definitions import rollback
from lamina.families.resourcegraph.definitions.findings import ACCEPTED, ROLLED_BACK, Finding, invalid
from lamina.families.resourcegraph.definitions.preparation import prepare
from lamina.families.resourcegraph.definitions.publish import edit_of
from lamina.families.resourcegraph.definitions.queried import Unanswered, instances_of
from lamina.families.resourcegraph.definitions.serving import reported, serve_current
from lamina.families.resourcegraph.definitions.view import View
from lamina.objects import conditions


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a definition."""
    try:
        return prepare(view, answers, now) or _plan(view, answers, now)
    except Unanswered as missing:
        return Plan(queries=missing.queries)


def _plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.spec is None:
        return reported(view, {ACCEPTED: invalid(view.error)}, now)
    instances = instances_of(view, answers)
    match rollback.step(view, instances, answers, now):
        case Plan() as step:
            return step
        case rollback.Result(finding=finding) as result:
            if _is_reported(view, finding):
                return rollback.ended(view, result, now)
            return reported(view, {ROLLED_BACK: finding}, now)
    edit = edit_of(view, instances.needed, answers, now)
    if edit.plan is not None:
        return edit.plan
    return serve_current(view, instances, edit.findings, edit.again, answers, now)


def _is_reported(view: View, finding: Finding) -> bool:
    found = conditions.find(conditions.of(view.definition), ROLLED_BACK)
    return found is not None and finding == Finding(
        found["status"], found.get("reason", ""), found.get("message", "")
    )
