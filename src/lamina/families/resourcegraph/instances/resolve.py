"""Resolves which revision an instance has, and its graph: the first decision of a pass."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Patch, change
from lamina.core.model.queries import Answers, Query
from lamina.families.resourcegraph.compiled_graphs import RevisionGraph
from lamina.families.resourcegraph.instances.effective_revision import (
    Effective,
    Reason,
    Situation,
    effective_revision,
)
from lamina.families.resourcegraph.instances.view import View
from lamina.families.resourcegraph.labels import ACCEPT_REVISION, PIN, UPDATE_POLICY
from lamina.graph.graph import Graph
from lamina.objects import meta
from lamina.objects.types import Obj


class Resolved(Struct, frozen=True, kw_only=True):
    """The effective revision with its graph; without a graph nothing is applied, and `effective` says why."""

    effective: Effective
    graph: Graph | None = None
    queries: tuple[Query, ...] = ()


def resolve(view: View, answers: Answers) -> Resolved:
    """Return the effective revision of an instance, or the queries that its graph depends on."""
    effective = effective_revision(situation(view))
    if not effective.number:
        return Resolved(effective=effective)
    found = graph_at(view, effective.number, answers)
    if not isinstance(found, RevisionGraph):
        return Resolved(effective=effective, queries=found)
    if not found.wrong:
        return Resolved(effective=effective, graph=found.graph)
    message = f"RGD revision {effective.number} {found.wrong}"
    if found.graph is None:
        return Resolved(effective=_unusable(effective, Reason.FAILED, message))
    return Resolved(effective=replace(effective, reason=Reason.FAILED, message=message), graph=found.graph)


def situation(view: View) -> Situation:
    """Return what the effective revision of an instance depends on."""
    newest, annotations = view.inputs[-1] if view.inputs else None, meta.annotations(view.obj)
    return Situation(
        current=view.current,
        available=view.revisions,
        recorded=newest.revision if newest is not None else 0,
        stamped=view.rgd_stamp,
        is_replaced=newest is not None and view.is_replaced(newest),
        pin=annotations.get(PIN),
        policy=annotations.get(UPDATE_POLICY),
        accepted=annotations.get(ACCEPT_REVISION),
        is_gated=view.is_gated,
        is_admitted=view.is_admitted,
    )


def _unusable(effective: Effective, reason: Reason, message: str) -> Effective:
    """Return a revision that cannot be used, and why."""
    return replace(effective, number=0, reason=reason, message=message)


def consume(instance: Obj) -> Patch:
    """Return the write that removes the annotation by which a revision was accepted."""
    return change(instance, {"metadata": {"annotations": {ACCEPT_REVISION: None}}})


def invalid_spec(resolved: Resolved, wrong: str) -> Resolved:
    """Return a revision that cannot be used, because the spec of the instance is invalid for it."""
    effective = resolved.effective
    message = (
        f"its spec is invalid for RGD revision {effective.number}: {wrong}; "
        f"correct its spec, or set {PIN} to a revision that it is valid for"
    )
    return Resolved(effective=_unusable(effective, Reason.SPEC_INVALID, message))


def graph_at(view: View, number: int, answers: Answers) -> RevisionGraph | tuple[Query, ...]:
    """Return the graph of a revision that exists, or the queries that it depends on."""
    return view.setup.graphs.of_revision(view.revisions[number], view.kinds, view.marks, answers)
