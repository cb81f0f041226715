"""
What is done about a definition whose content is published or refused: its current revision is served.

Its CRD is written; once its kind is served, instances are let through to the revision, all
is reported, and old revisions are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from lamina.core.model.plan import Gauge, Plan, Stage
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.definitions.crd_step import Served, serve
from lamina.families.resourcegraph.definitions.findings import (
    CONTROLLER,
    KIND,
    PROPAGATED,
    RESOLVED,
    Finding,
    failed,
)
from lamina.families.resourcegraph.definitions.gate import Propagation, propagation
from lamina.families.resourcegraph.definitions.queried import Instances, graphs_of
from lamina.families.resourcegraph.definitions.retention import Pruning, pruning
from lamina.families.resourcegraph.definitions.status import Report, report_stages, stages, unverified
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.objects import conditions
from lamina.objects.times import moment


def serve_current(
    view: View,
    instances: Instances,
    findings: Mapping[str, Finding],
    again: timedelta | None,
    answers: Answers,
    now: datetime,
) -> Plan:
    """
    Return what serves the current revision and reports it; raises Unanswered.

    `findings` are about the content of the definition, and `again` is when that is tried again.
    """
    current = view.current
    if current is None:
        return reported(view, findings, now, again)
    served = serve(view, current, instances.needed, answers)
    if served.action is not None:
        return Plan(stages=(Stage("write the CRD", (served.action,)),), because=served.kind.message)
    graphs = graphs_of(view, instances.needed | unverified(view), answers)
    graph = graphs[current.number]
    problem = graph if isinstance(graph, Exception) else None
    found: Propagation | None = None
    pruned = Pruning()
    if served.ready:
        found = propagation(view, current, instances.all, answers, now)
        pruned = pruning(view, instances.needed, answers, now)
    report = Report(
        findings={**_findings(current, served, problem, found), **findings},
        is_current=served.ready and problem is None,
        counts=instances.counts,
        graphs=graphs,
        admitted=found.admitted if found is not None else None,
        pruned=pruned.numbers,
    )
    return Plan(
        stages=tuple(one for one in (*stages(view, report, now), *pruned.stages) if one.actions),
        because=_because(report, found),
        requeue_after=again or (found.again if found is not None else None),
        progress=found.progress if found is not None else {},
        gauges=tuple(_gauges(view, instances.counts, found, now)),
    )


def reported(
    view: View, findings: Mapping[str, Finding], now: datetime, again: timedelta | None = None
) -> Plan:
    """Return the report of these conditions, and of nothing else."""
    because = next((one.message for one in findings.values() if not one.is_true), "")
    return Plan(stages=report_stages(view, findings, now), because=because, requeue_after=again)


def _findings(
    current: Revision, served: Served, problem: Exception | None, found: Propagation | None
) -> Mapping[str, Finding]:
    resolved = Finding("True", "Resolved", f"revision {current.number} compiled and active")
    made = {
        RESOLVED: resolved
        if problem is None
        else failed(f"revision {current.number} does not compile: {problem}"),
        KIND: served.kind,
        CONTROLLER: served.controller,
    }
    return {**made, PROPAGATED: found.finding} if found is not None else made


def _because(report: Report, found: Propagation | None) -> str:
    """Return the first thing that is not as it is to be, or else how far the propagation is."""
    wrong = next(
        (one.message for name, one in report.findings.items() if name != PROPAGATED and not one.is_true), ""
    )
    return wrong or (found.because if found is not None else "")


def _gauges(
    view: View, counts: Mapping[int, int], found: Propagation | None, now: datetime
) -> Iterator[Gauge]:
    name = ("name", view.name)
    current = view.status.get("currentRevision")
    if current:
        yield Gauge(
            name="rgd_revision_current",
            help="The revision that the instances of a definition follow.",
            labels=(name,),
            value=current,
        )
    for one in view.revisions:
        yield Gauge(
            name="rgd_revision_instances",
            help="How many instances are on a revision.",
            labels=(name, ("revision", str(one.number))),
            value=counts.get(one.number, 0),
        )
    if found is not None:
        yield Gauge(
            name="instance_propagation_pending",
            help="How many instances have not completed the current revision.",
            labels=(name,),
            value=found.pending,
        )
        yield Gauge(
            name="propagation_duration_seconds",
            help="How long the current revision has been propagating, or took until all instances had completed it.",
            labels=(name,),
            value=_duration(view, found, now),
        )


def _duration(view: View, found: Propagation, now: datetime) -> float:
    """Return the seconds from the creation of the current revision until its propagation ended, or until now."""
    before = conditions.find(conditions.of(view.definition), PROPAGATED)
    is_over = found.finding.is_true and before is not None and before.get("status") == "True"
    ended = moment(before.get("lastTransitionTime")) if is_over and before is not None else now
    began = moment(view.current.created) if view.current is not None else None
    return max(0.0, (ended - began).total_seconds()) if ended is not None and began is not None else 0.0
