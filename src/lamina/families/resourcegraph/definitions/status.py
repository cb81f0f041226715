"""
The status of a definition and of its revisions.

What is counted changes with every instance; where nothing else changes, it is written at
most once a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Patch, Stage, set_status
from lamina.families.resourcegraph import counters
from lamina.families.resourcegraph.definitions import events
from lamina.families.resourcegraph.definitions.findings import (
    DEPENDENTS,
    ORDER,
    PROPAGATED,
    READY,
    ROLLED_BACK,
    SERVING,
    VERIFIED,
    Finding,
    awaiting,
    rolled_back_message,
    with_finding,
    worst,
)
from lamina.families.resourcegraph.definitions.revision_object import last_issued
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.labels import CONTENT_FROM
from lamina.graph.graph import Graph, GraphError
from lamina.objects import conditions, meta
from lamina.objects.numbers import positive
from lamina.objects.types import Condition, Made, Obj

_COUNTED = timedelta(seconds=1)
_RENAMED = "ResourceGraphAccepted"
"""A condition of releases of upstream before 0.9."""
_IS_READY = Finding("True", READY)


class Report(Struct, frozen=True, kw_only=True):
    """
    What a pass has found out.

    `findings` are conditions by type; those that are not among them stay as they are. With
    `is_current`, the newest revision is the one that instances follow from now on. `graphs`
    are those that were compiled, by the number of their revision.
    """

    findings: Mapping[str, Finding]
    is_current: bool = False
    counts: Mapping[int, int]
    graphs: Mapping[int, Graph | GraphError]
    admitted: Sequence[str] | None = None
    """The uids to record; None keeps those that are recorded."""
    pruned: frozenset[int] = frozenset()


# Conditions


def with_findings(obj: Obj, findings: Mapping[str, Finding], now: datetime) -> list[Condition]:
    """Return the conditions of a definition with these, in one order; the root that follows from them is last."""
    found = conditions.without_condition(conditions.of(obj), _RENAMED)
    known = {one["type"] for one in found}
    unknown = {name: awaiting(name) for name in DEPENDENTS if name not in known}
    for name, finding in {**unknown, **findings}.items():
        found = with_finding(found, name, finding, obj, now)
    found = with_finding(found, READY, _root(found, meta.generation(obj)), obj, now)
    return sorted(found, key=lambda one: ORDER.get(one["type"], len(ORDER) - 1))


def _root(found: Sequence[Condition], generation: int) -> Finding:
    """Return the root: True if all dependents are at this generation, else the worst; of equally bad ones the newest."""
    dependents = [one for one in found if one["type"] in DEPENDENTS]
    if (bad := worst(dependents)) is not None:
        return bad
    stale = next((one["type"] for one in dependents if one.get("observedGeneration") != generation), "")
    return awaiting(stale) if stale else _IS_READY


# The definition


def definition_status(view: View, report: Report, now: datetime) -> Made:
    """Return the status of a definition."""
    made: Made = {}
    current, is_new = view.current, False
    if report.is_current and current is not None:
        is_new = view.status.get("currentRevision") != current.number
        made["currentRevision"] = current.number
        made["currentRevisionName"] = current.name
        made["currentRevisionHash"] = current.hash
    findings = {**report.findings, **(_rolled_back(current) if is_new and current is not None else {})}
    made = {**with_state(view.definition, findings, now), **made}
    if last := last_issued(view):
        made["lastIssuedRevision"] = last
    graph = report.graphs.get(current.number) if current is not None else None
    if isinstance(graph, Graph):
        made["topologicalOrder"] = list(graph.order)
        made["resources"] = list(_resources(graph))
    made["revisionHistory"] = [
        {
            "revision": one.number,
            "createdAt": one.created,
            "current": one.number == made.get("currentRevision"),
            "instanceCount": report.counts.get(one.number, 0),
        }
        for one in reversed(view.revisions)
        if one.number not in report.pruned
    ]
    return made


def with_state(definition: Obj, findings: Mapping[str, Finding], now: datetime) -> Made:
    """Return the status of a definition with these conditions, and with the state that follows from them."""
    found = with_findings(definition, findings, now)
    is_active = all(conditions.is_true(found, name) for name in SERVING)
    return {
        **(definition.get("status") or {}),
        "observedGeneration": meta.generation(definition),
        "conditions": found,
        "state": "Active" if is_active else "Inactive",
    }


def _rolled_back(current: Revision) -> Mapping[str, Finding]:
    """Return the result of the rollback that a revision comes from."""
    number = positive(meta.annotations(current.obj).get(CONTENT_FROM) or "")
    message = rolled_back_message(current.number, number)
    return {ROLLED_BACK: Finding("True", "RolledBack", message)} if number else {}


def _resources(graph: Graph) -> Iterator[Made]:
    """Yield the nodes that depend on others."""
    for name in graph.order:
        if needed := graph.nodes[name].dependencies:
            yield {"id": name, "dependencies": [{"id": one} for one in needed]}


# Its revisions


def unverified(view: View) -> frozenset[int]:
    """Return the revisions of which it is not reported whether they compile."""
    return frozenset(
        one.number for one in view.revisions if conditions.find(conditions.of(one.obj), VERIFIED) is None
    )


def revision_status(revision: Revision, report: Report, current: int, now: datetime) -> Made:
    """Return the status of a revision; `current` is the number of the one that instances follow."""
    made: Made = {
        **(revision.obj.get("status") or {}),
        "specHash": revision.hash,
        "createdAt": revision.created,
        "superseded": revision.number < current,
        "instanceCount": report.counts.get(revision.number, 0),
    }
    graph = report.graphs.get(revision.number)
    if graph is not None:
        finding = (
            Finding("True", "Verified")
            if isinstance(graph, Graph)
            else Finding("False", "InvalidGraph", str(graph))
        )
        found = with_finding(conditions.of(revision.obj), VERIFIED, finding, revision.obj, now)
        root = _IS_READY if finding.is_true else finding
        made["conditions"] = with_finding(found, READY, root, revision.obj, now)
    if isinstance(graph, Graph):
        made["topologicalOrder"] = list(graph.order)
    recorded = made.pop("admitted", ())
    admitted = recorded if report.admitted is None else report.admitted
    if revision.number == current and admitted:
        made["admitted"] = list(admitted)
    return made


# The writes


def report_stages(view: View, findings: Mapping[str, Finding], now: datetime) -> tuple[Stage, ...]:
    """Return the write of these conditions, which leaves everything else in the status as it is."""
    return tuple(
        _written("write the status", [(view.definition, with_state(view.definition, findings, now))])
    )


def stages(view: View, report: Report, now: datetime) -> Iterator[Stage]:
    """Yield the writes of the statuses: that of the definition first, since instances follow it."""
    if (finding := report.findings.get(PROPAGATED)) is not None:
        yield Stage("emit events", tuple(events.propagated(view.definition, finding, now)))
    made = definition_status(view, report, now)
    current = made.get("currentRevision") or 0
    yield from _written("write the status", [(view.definition, made)])
    kept = [one for one in view.revisions if one.number not in report.pruned]
    statuses = [(one.obj, revision_status(one, report, current, now)) for one in kept]
    yield from _written("write the statuses of revisions", statuses)


def status_patch(obj: Obj, status: Obj) -> Patch | None:
    """Return the write of the status of a definition or of a revision, which is counted; None where nothing differs."""
    patch = set_status(obj, status)
    return patch and replace(patch, counters=tuple(counters.of_definition(obj, status)))


def _written(name: str, statuses: Sequence[tuple[Obj, Made]]) -> Iterator[Stage]:
    at_once: list[Patch] = []
    counted: list[Patch] = []
    for obj, status in statuses:
        patch = status_patch(obj, status)
        if patch is not None:
            (counted if _differ_in_counts(obj.get("status") or {}, status) else at_once).append(patch)
    if at_once:
        yield Stage(name, tuple(at_once))
    if counted:
        yield Stage("write counts", tuple(counted), min_interval=_COUNTED)


def _differ_in_counts(old: Obj, new: Obj) -> bool:
    """Say whether nothing differs but what changes with every instance; one that has moved was admitted before."""
    admitted = set(new.get("admitted") or ()) - set(old.get("admitted") or ())
    return not admitted and _without_counts(old) == _without_counts(new)


def _without_counts(status: Obj) -> Made:
    """Return a status without what changes with every instance."""
    made = {key: value for key, value in status.items() if key not in ("instanceCount", "admitted")}
    made["revisionHistory"] = [
        {key: value for key, value in one.items() if key != "instanceCount"}
        for one in status.get("revisionHistory") or ()
    ]
    made["conditions"] = [
        {**one, "message": ""} if one.get("type") == PROPAGATED else one
        for one in status.get("conditions") or ()
    ]
    return made
