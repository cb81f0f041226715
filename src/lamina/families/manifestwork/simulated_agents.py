"""
Simulated agents of managed clusters, for a simulation that has the hub and none of its clusters.

An agent that is not silent keeps its lease, applies what it is sent at once, and
reports after its latency that this is healthy, or what failed. It sets the four
conditions that the real agent sets, with the same words, each for the latest
generation. What the real agent has reported already is not started again.

A lease is not renewed every minute, but once for a hundred years; an agent that
falls silent has renewed it for the last time at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec import Struct

from lamina.core.model.agents import SimulatedAgents, SimulatedFleet, WorkloadOutcome
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Action, Plan, change, one_stage, remove_finalizer, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, whole
from lamina.families.manifestwork.agent.labels import WORK_CLEANUP
from lamina.families.manifestwork.agent.registration import joined_and_available
from lamina.families.manifestwork.agent.reported_status import condition, find_at
from lamina.families.manifestwork.agent.status import AGGREGATED
from lamina.families.manifestwork.labels import CLUSTER, WORK, WORK_VERSION
from lamina.families.manifestwork.placement.managedcluster import (
    LEASE,
    LEASE_NAME,
    VERSION,
    cluster_ref,
    lease_ref,
)
from lamina.objects import conditions, meta
from lamina.objects.times import micro_stamp, moment
from lamina.objects.types import Condition, Made, Obj, Ref

_FOR_GOOD = timedelta(days=36500)
_SILENT, _REFUSED, _DEGRADED = "silent", "refused", "degraded"


def simulated_agents(fleet: SimulatedFleet) -> SimulatedAgents:
    """Return the agents of a fleet: one controller registers their clusters, one reports on their works."""
    return SimulatedAgents(
        controllers=(_registering(fleet), _working(fleet)),
        cluster=cluster_ref,
        silence=lambda cluster, now: (lease_ref(cluster), _renewed_at(now)),
    )


# ── registration ──


class _Registration(Struct, frozen=True):
    cluster: Obj
    lease: Obj | None


def _registering(fleet: SimulatedFleet) -> Controller[_Registration]:
    def gather(world: World, ref: Ref) -> _Registration | None:
        cluster = world.get(ref)
        accepted = cluster is not None and (cluster.get("spec") or {}).get("hubAcceptsClient")
        if cluster is None or not accepted or meta.is_deleting(cluster):
            return None
        return _Registration(cluster, world.get(lease_ref(ref.name)))

    def plan(view: _Registration, answers: Answers, now: datetime) -> Plan:
        if fleet.fault(meta.name(view.cluster), now) == _SILENT:
            return NOTHING
        actions: list[Action] = []
        status = view.cluster.get("status") or {}
        reported = {**status, "conditions": joined_and_available(status, now)}
        if (patch := set_status(view.cluster, reported)) is not None:
            actions.append(patch)
        renewed = moment(((view.lease or {}).get("spec") or {}).get("renewTime"))
        if view.lease is not None and (renewed is None or renewed < now + _FOR_GOOD / 2):
            actions.append(change(view.lease, _renewed_at(now + _FOR_GOOD)))
        return one_stage("report", actions, because="")

    return Controller(
        name="simulated registration agents",
        watches=(
            Watch(selects=only(*CLUSTER), api_version=VERSION, enqueue=itself),
            Watch(selects=only(*LEASE), enqueue=_its_cluster, named=LEASE_NAME),
        ),
        gather=gather,
        plan=plan,
        manager="simulation",
    )


def _renewed_at(when: datetime) -> Made:
    return {"spec": {"renewTime": micro_stamp(when)}}


def _its_cluster(world: World, change: Change) -> Iterable[Ref]:
    return (cluster_ref(meta.namespace(change.obj)),)


# ── works ──


def _working(fleet: SimulatedFleet) -> Controller[Obj]:
    def plan(work: Obj, answers: Answers, now: datetime) -> Plan:
        cluster = meta.namespace(work)
        fault = fleet.fault(cluster, now)
        if fault == _SILENT:
            return NOTHING
        if meta.is_deleting(work):
            held = WORK_CLEANUP in meta.finalizers(work)
            release = [remove_finalizer(work, WORK_CLEANUP)] if held else []
            return one_stage("remove finalizer", release, because="its agent has deleted what it applied")
        status, generation = work.get("status") or {}, meta.generation(work)
        began = moment(status.get("simulatedSince") or "")
        if status.get("simulatedGeneration") != generation or began is None:
            found = _was_healthy(work)
            began = now - fleet.latency(cluster) if found else now
            begun = {"simulatedSince": began.isoformat(), "simulatedAsFound": found}
            status = {**status, "simulatedGeneration": generation, **begun}
        stage = _Stage(fault, *_outcome(fleet, work, bool(status.get("simulatedAsFound"))), now - began)
        patch = set_status(work, {**status, "conditions": _conditions(work, _reported(work, stage), now)})
        later = stage.next
        return Plan(
            stages=one_stage("report", [patch] if patch is not None else [], because="").stages,
            requeue_after=later,
            because="its agent reports progress"
            if later is not None
            else "its agent has reported the outcome",
        )

    return Controller(
        name="simulated work agents",
        watches=(Watch(selects=only(*WORK), api_version=WORK_VERSION, enqueue=itself, keep=whole),),
        gather=lambda world, ref: world.get(ref),
        plan=plan,
        manager="simulation",
    )


def _ruled(work: Obj) -> set[str]:
    """Return the conditions of a work that it has rules for."""
    configs = (work.get("spec") or {}).get("manifestConfigs") or ()
    return {str(rule.get("condition")) for one in configs for rule in one.get("conditionRules") or ()}


def _was_healthy(work: Obj) -> bool:
    """Return whether a real agent has reported already that a work is applied and healthy."""
    reported: Sequence[Condition] = (work.get("status") or {}).get("conditions") or ()
    ruled = _ruled(work)

    def has(name: str, status: str) -> bool:
        found = find_at(reported, name, meta.generation(work))
        return found is not None and found["status"] == status

    def lacks(name: str) -> bool:
        # Other agents leave this condition out where no rule asks for it.
        return has(name, "False") or (name not in ruled and conditions.find(reported, name) is None)

    return has("Applied", "True") and has("Available", "True") and lacks("Progressing") and lacks("Degraded")


def _outcome(fleet: SimulatedFleet, work: Obj, as_found: bool) -> tuple[timedelta, WorkloadOutcome]:
    """Return how long a cluster takes for a work, and the outcome; what an agent found healthy stays healthy."""
    cluster = meta.namespace(work)
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
    outcome = fleet.outcome(cluster, manifests, was_healthy=as_found)
    return max(fleet.latency(cluster), outcome.takes), outcome


class _Stage(Struct, frozen=True):
    """How far an agent is with a work: its fault, how long it takes, the outcome, and how long it has been at it."""

    fault: str
    takes: timedelta
    outcome: WorkloadOutcome
    passed: timedelta

    @property
    def is_done(self) -> bool:
        return self.passed >= self.takes

    @property
    def degraded(self) -> str:
        """Return what has failed, if anything has."""
        if self.fault == _DEGRADED:
            return "simulated fault" if self.is_done else ""
        return self.outcome.failed if self.passed >= self.outcome.fails_after else ""

    @property
    def progressing(self) -> str:
        """Return what it waits for, if it does."""
        if self.outcome.waiting:
            return self.outcome.waiting
        if not self.is_done:
            return f"simulated to be healthy after {self.takes.total_seconds():.1f} s"
        return f"{self.fault}: simulated fault" if self.fault else ""

    @property
    def next(self) -> timedelta | None:
        """Return after how long the report changes."""
        ends = (self.takes, self.outcome.fails_after)
        return min((end - self.passed for end in ends if self.passed < end < _FOR_GOOD), default=None)


_Reported: TypeAlias = tuple[str, str, str, str]
"""A condition, its status, its reason and its message."""


def _reported(work: Obj, stage: _Stage) -> Iterator[_Reported]:
    """Yield the conditions that an agent reports of a work."""
    ruled = _ruled(work)
    if stage.fault == _REFUSED:
        message = f"{stage.fault}: simulated fault"
        yield "Applied", "False", "AppliedManifestWorkFailed", message
        # A refused update leaves the objects of the last one in place.
        if conditions.is_true((work.get("status") or {}).get("conditions") or (), "Available"):
            yield "Available", "True", "ResourcesAvailable", "All resources are available"
        else:
            yield "Available", "False", "ResourcesNotAvailable", "Resources are not available"
        # Rules are evaluated on applied objects only.
        if "Progressing" not in ruled:
            yield "Progressing", "True", "Applying", message
        if "Degraded" not in ruled:
            yield "Degraded", "False", "Applying", "Nothing that is known of has failed"
        return
    yield "Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete"
    yield "Available", "True", "ResourcesAvailable", "All resources are available"
    progressing, degraded = stage.progressing, stage.degraded
    reason = "Applying" if progressing else "Completed"
    yield (
        "Progressing",
        str(bool(progressing)),
        AGGREGATED if "Progressing" in ruled else reason,
        progressing or "Everything is applied, available and settled",
    )
    yield (
        "Degraded",
        str(bool(degraded)),
        AGGREGATED if "Degraded" in ruled else "Failed" if degraded else reason,
        degraded or "Nothing that is known of has failed",
    )


def _conditions(work: Obj, words: Iterable[_Reported], now: datetime) -> list[Condition]:
    """Return the conditions of a work with these among them, each in its place."""
    before: Sequence[Condition] = (work.get("status") or {}).get("conditions") or ()
    generation = meta.generation(work)
    made = {name: condition(before, name, *what, now=now, generation=generation) for name, *what in words}
    return [*(made.pop(one["type"], one) for one in before), *made.values()]
