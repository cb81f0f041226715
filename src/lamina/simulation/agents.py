"""
Who stands in for the agents of managed clusters, where a hub is played: no cluster of theirs is on paper.

An agent that is not silent keeps its lease, applies what it is sent at once, and
says a while later that it has settled, or what went wrong. It says the four things
that the real one says, in its words, and all of them of the generation it was
sent last. What the real one has said already is not begun again.

A lease is not renewed every minute, but once for a hundred years; whoever falls
silent has renewed it for the last time just then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.core.controller import AnyController, Controller, Watch, itself, only
from lamina.core.plan import NOTHING, Action, Plan, change, one_stage, remove_finalizer, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World, whole
from lamina.families.manifestwork.names import CLUSTER, CLUSTER_GROUP, WORK, WORK_VERSION
from lamina.families.manifestwork.placement.clusters import AVAILABLE, LEASE_NAME
from lamina.families.manifestwork.spoke.names import WORK_CLEANUP
from lamina.families.manifestwork.spoke.registration import JOINED
from lamina.families.manifestwork.spoke.said import condition, find_at
from lamina.families.manifestwork.spoke.status import AGGREGATED
from lamina.objects import conditions, meta
from lamina.objects.digest import sha256
from lamina.objects.times import micro_stamp, moment
from lamina.objects.types import Condition, GroupKind, Obj, Ref
from lamina.paper import Paper
from lamina.simulation.failures import Failures
from lamina.simulation.rehearsal import SETTLES, Rehearsals, Verdict

_CLUSTER_VERSION = f"{CLUSTER_GROUP}/v1"
_LEASE = GroupKind("coordination.k8s.io", "Lease")
_FOR_GOOD = timedelta(days=36500)
_SPREAD = 0.5
"""Not all clusters are equally quick: some take half as long again."""
_SAID = {JOINED: "ManagedClusterJoined", AVAILABLE: "ManagedClusterAvailable"}
_SAYS_NOTHING, _NOT_APPLIED, _DEGRADED = "silent", "refused", "degraded"


class Fleet(Struct, frozen=True, kw_only=True):
    """The agents of all clusters: since when they are watched, how long they take, and what goes wrong with them."""

    since: datetime
    takes: timedelta
    failures: Failures
    rehearsals: Rehearsals

    def ails(self, cluster: str, now: datetime) -> str:
        return self.failures.ails(cluster, now - self.since)

    def spread(self, cluster: str) -> timedelta:
        """Return how long a cluster takes: it depends on which it is, and on nothing else."""
        return self.takes * (1 + _SPREAD * int(sha256(cluster.encode())[:8], 16) / 2**32)


def agents(fleet: Fleet) -> tuple[AnyController, ...]:
    """Return those who stand in for the agents that register clusters and do their works."""
    return (_registering(fleet), _working(fleet))


def lease_of(cluster: str) -> Ref:
    return Ref("coordination.k8s.io/v1", _LEASE.kind, cluster, LEASE_NAME)


def cluster_ref(name: str) -> Ref:
    return Ref(_CLUSTER_VERSION, CLUSTER.kind, "", name)


def _images(value: Any) -> Iterator[str]:
    """Yield the images of all containers in something, however deep."""
    if isinstance(value, Mapping):
        for name, held in value.items():
            if name in ("containers", "initContainers") and isinstance(held, list):
                yield from (
                    str(one.get("image")) for one in held if isinstance(one, Mapping) and "image" in one
                )
            else:
                yield from _images(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _images(held)


# ── that it is there ──


class _Registered(Struct, frozen=True):
    cluster: Obj
    lease: Obj | None


def _registering(fleet: Fleet) -> Controller[_Registered]:
    def gather(world: World, ref: Ref) -> _Registered | None:
        cluster = world.get(ref)
        accepted = cluster is not None and (cluster.get("spec") or {}).get("hubAcceptsClient")
        if cluster is None or not accepted or meta.is_deleting(cluster):
            return None
        return _Registered(cluster, world.get(lease_of(ref.name)))

    def plan(view: _Registered, answers: Answers, now: datetime) -> Plan:
        if fleet.ails(meta.name(view.cluster), now) == _SAYS_NOTHING:
            return NOTHING
        actions: list[Action] = []
        status = view.cluster.get("status") or {}
        said: Sequence[Condition] = status.get("conditions") or ()
        for name, message in (
            (JOINED, "Managed cluster joined"),
            (AVAILABLE, "Managed cluster is available"),
        ):
            said = conditions.with_condition(said, name, "True", now=now, reason=_SAID[name], message=message)
        if (patch := set_status(view.cluster, {**status, "conditions": said})) is not None:
            actions.append(patch)
        renewed = moment(((view.lease or {}).get("spec") or {}).get("renewTime"))
        if view.lease is not None and (renewed is None or renewed < now + _FOR_GOOD / 2):
            actions.append(change(view.lease, _renewed_at(now + _FOR_GOOD)))
        return one_stage("say so", actions, because="")

    return Controller(
        name="agents that register",
        watches=(
            Watch(selects=only(*CLUSTER), api_version=_CLUSTER_VERSION, concerns=itself),
            Watch(selects=only(*_LEASE), concerns=_its_cluster, named=LEASE_NAME),
        ),
        gather=gather,
        plan=plan,
        manager="simulation",
    )


def fall_silent(paper: Paper, cluster: str) -> None:
    """Have the agent of a cluster renew its lease for the last time."""
    if paper.at(lease_of(cluster)) is not None:
        paper.patch(lease_of(cluster), _renewed_at(paper.now))


def clusters(paper: Paper) -> list[str]:
    """Return the names of all managed clusters."""
    return [ref.name for ref in paper.objects if ref.kind == CLUSTER.kind]


def _renewed_at(when: datetime) -> Obj:
    return {"spec": {"renewTime": micro_stamp(when)}}


def _its_cluster(world: World, change: Change) -> Iterable[Ref]:
    return (cluster_ref(meta.namespace(change.obj)),)


# ── what it does with its works ──


def _working(fleet: Fleet) -> Controller[Obj]:
    def plan(work: Obj, answers: Answers, now: datetime) -> Plan:
        cluster = meta.namespace(work)
        ails = fleet.ails(cluster, now)
        if ails == _SAYS_NOTHING:
            return NOTHING
        if meta.is_deleting(work):
            held = WORK_CLEANUP in meta.finalizers(work)
            let_go = [remove_finalizer(work, WORK_CLEANUP)] if held else []
            return one_stage("let go", let_go, because="its agent has taken back what it applied")
        status, generation = work.get("status") or {}, meta.generation(work)
        began = moment(status.get("simulatedSince") or "")
        if status.get("simulatedGeneration") != generation or began is None:
            found = _is_settled(work)
            began = now - fleet.spread(cluster) if found else now
            begun = {"simulatedSince": began.isoformat(), "simulatedAsFound": found}
            status = {**status, "simulatedGeneration": generation, **begun}
        stage = _Stage(ails, *_outlook(fleet, work, bool(status.get("simulatedAsFound"))), now - began)
        patch = set_status(work, {**status, "conditions": _said(work, _words(work, stage), now)})
        later = stage.next
        return Plan(
            stages=one_stage("say so", [patch] if patch is not None else [], because="").stages,
            look_again=later,
            because="its agent works on it" if later is not None else "its agent has done what it can",
        )

    return Controller(
        name="agents that work",
        watches=(Watch(selects=only(*WORK), api_version=WORK_VERSION, concerns=itself, keep=whole),),
        gather=lambda world, ref: world.get(ref),
        plan=plan,
        manager="simulation",
    )


def _ruled(work: Obj) -> set[str]:
    """Return the conditions of a work that it has rules for."""
    configs = (work.get("spec") or {}).get("manifestConfigs") or ()
    return {str(rule.get("condition")) for one in configs for rule in one.get("conditionRules") or ()}


def _is_settled(work: Obj) -> bool:
    """Say whether an agent has said already that what it was sent is there and well, as far as it says anything."""
    said: Sequence[Condition] = (work.get("status") or {}).get("conditions") or ()
    ruled = _ruled(work)

    def says(name: str, status: str) -> bool:
        found = find_at(said, name, meta.generation(work))
        return found is not None and found["status"] == status

    def denies(name: str) -> bool:
        # Other agents say nothing of this where no rule asks for it.
        return says(name, "False") or (name not in ruled and conditions.find(said, name) is None)

    return (
        says("Applied", "True") and says("Available", "True") and denies("Progressing") and denies("Degraded")
    )


def _outlook(fleet: Fleet, work: Obj, as_found: bool) -> tuple[timedelta, Verdict]:
    """Return how long a cluster takes for a work, and what comes of that; what an agent found well stays well."""
    cluster = meta.namespace(work)
    called = set(_images(work.get("spec")))
    failing = tuple(
        one
        for one in fleet.failures.striking(cluster)
        if any(fnmatchcase(name, one.image) for name in called)
    )
    verdict = SETTLES if not called or (as_found and not failing) else fleet.rehearsals.of(work, failing)
    return max(fleet.spread(cluster), verdict.takes), verdict


class _Stage(Struct, frozen=True):
    """How far an agent is with a work: what ails it, how long it takes, what comes of it, and how long it is at it."""

    ails: str
    takes: timedelta
    verdict: Verdict
    passed: timedelta

    @property
    def is_done(self) -> bool:
        return self.passed >= self.takes

    @property
    def degraded(self) -> str:
        """Return what has failed, if anything has."""
        if self.ails == _DEGRADED:
            return "as was asked" if self.is_done else ""
        return self.verdict.failed if self.passed >= self.verdict.fails_after else ""

    @property
    def progressing(self) -> str:
        """Return what it is waiting for, if it waits for anything."""
        if self.verdict.waiting:
            return self.verdict.waiting
        if not self.is_done:
            return f"settles after {self.takes.total_seconds():.1f} s on paper"
        return f"{self.ails}, as was asked" if self.ails else ""

    @property
    def next(self) -> timedelta | None:
        """Return in how long there is news."""
        ends = (self.takes, self.verdict.fails_after)
        return min((end - self.passed for end in ends if self.passed < end < _FOR_GOOD), default=None)


_Words: TypeAlias = tuple[str, str, str, str]
"""A condition, its status, its reason and its message."""


def _words(work: Obj, stage: _Stage) -> Iterator[_Words]:
    """Yield what an agent says of a work."""
    ruled = _ruled(work)
    if stage.ails == _NOT_APPLIED:
        asked = f"{stage.ails}, as was asked"
        yield "Applied", "False", "AppliedManifestWorkFailed", asked
        # What was there before still is.
        if conditions.is_true((work.get("status") or {}).get("conditions") or (), "Available"):
            yield "Available", "True", "ResourcesAvailable", "All resources are available"
        else:
            yield "Available", "False", "ResourcesNotAvailable", "Resources are not available"
        # Rules judge nothing before it is applied.
        if "Progressing" not in ruled:
            yield "Progressing", "True", "Applying", asked
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


def _said(work: Obj, words: Iterable[_Words], now: datetime) -> list[Condition]:
    """Return the conditions of a work with these among them, each in its place."""
    said: Sequence[Condition] = (work.get("status") or {}).get("conditions") or ()
    generation = meta.generation(work)
    made = {
        name: condition(said, name, *what, now=now, generation=generation, restarts=name == "Applied")
        for name, *what in words
    }
    return [*(made.pop(one["type"], one) for one in said), *made.values()]
