"""
Publishing: an edit of a definition becomes a revision once it compiles, may be served and is approved.

A number is issued once: it is higher than those of all revisions and of all that were ever
issued, by a live read of the definition and of its revisions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.model.plan import Plan, change, one_stage
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.definitions.approval import approval, leftovers
from lamina.families.resourcegraph.definitions.crd_step import problem
from lamina.families.resourcegraph.definitions.findings import (
    ACCEPTED,
    KIND,
    PUBLISHED,
    VALID,
    Finding,
    failed,
    invalid,
)
from lamina.families.resourcegraph.definitions.queried import compiled
from lamina.families.resourcegraph.definitions.revision_object import creation, last_issued
from lamina.families.resourcegraph.definitions.view import View
from lamina.graph.graph import GraphError

_AGAIN = timedelta(minutes=1)
"""When what a server refuses is tried again: a policy may have been lifted."""


class Edit(Struct, frozen=True, kw_only=True):
    """
    What becomes of the content of a definition.

    `plan` publishes it. Without one, `findings` are what is reported of it: GraphAccepted,
    RevisionCurrent, and KindReady where the kind may not be served with it. `again` is when
    what the server refuses is tried again.
    """

    findings: Mapping[str, Finding] = {}
    plan: Plan | None = None
    again: timedelta | None = None


def edit_of(view: View, needed: Collection[int], answers: Answers, now: datetime) -> Edit:
    """
    Return what becomes of the content of a definition; raises Unanswered.

    `needed` are the revisions that instances need.
    """
    if gone := frozenset(leftovers(view)):
        return Edit(plan=_without(view, gone))
    current = view.current
    is_published = current is not None and view.is_published
    graph = compiled(view, current.content if current is not None and is_published else view.content, answers)
    accepted = invalid(_text(graph)) if isinstance(graph, GraphError) else VALID
    if current is not None and is_published:
        because = f"revision {current.number} has the content of the definition"
        return Edit(findings={ACCEPTED: accepted, PUBLISHED: Finding("True", "Current", because)})
    if isinstance(graph, GraphError):
        return Edit(findings={ACCEPTED: accepted, PUBLISHED: _unpublished(view, "it does not compile")})
    found = approval(view)
    if found.awaited is not None:
        return Edit(findings={ACCEPTED: accepted, PUBLISHED: found.awaited})
    number = last_issued(view) + 1
    checks = found.checks_compatibility
    if because := problem(view, graph, number, needed, answers, checks_compatibility=checks):
        published = _unpublished(view, "its kind cannot be served with it")
        return Edit(findings={ACCEPTED: accepted, PUBLISHED: published, KIND: failed(because)}, again=_AGAIN)
    return Edit(plan=creation(view, graph, found.content_from, found.mode, answers, now))


def _unpublished(view: View, because: str) -> Finding:
    serving = f"; instances follow revision {view.current.number}" if view.current is not None else ""
    return Finding("False", "NotPublished", f"the definition is not published: {because}{serving}")


def _without(view: View, names: Collection[str]) -> Plan:
    """Remove annotations that have had their effect."""
    patch = change(view.definition, {"metadata": {"annotations": dict.fromkeys(names)}})
    return one_stage("remove annotations", [patch], because=f"{', '.join(sorted(names))} had its effect")


def _text(error: GraphError) -> str:
    return f"{error}\n{error.hint}" if error.hint else str(error)
