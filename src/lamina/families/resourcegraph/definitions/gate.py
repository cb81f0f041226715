"""
Propagation: which instances may move to the current revision, how far it has come, and why none moves.

An instance takes part if it follows new revisions: it is not pinned, not suspended, not being
deleted, and its update policy is Auto. Where propagateWhen is stated, it is evaluated for each
that is on another revision, oldest first, in this one place. Those that may move are recorded
before they do, after a live read, and that is not taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.health.probe import HEALTHY, ProbeResult, unhealthy
from lamina.core.live_check import is_current
from lamina.core.model.memo import Memo
from lamina.core.model.queries import Answers, Found, Listed, Read, ReadAll
from lamina.core.rollout.pace import Pace
from lamina.core.rollout.step import Step, Target, advance, listed
from lamina.families.resourcegraph.definitions.admission import admitted, is_gated
from lamina.families.resourcegraph.definitions.findings import Finding
from lamina.families.resourcegraph.definitions.instance_facts import InstanceFacts, all_facts, population
from lamina.families.resourcegraph.definitions.propagate_when import GateError, let_through
from lamina.families.resourcegraph.definitions.queried import require
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.objects import conditions, meta


class Propagation(Struct, frozen=True, kw_only=True):
    """
    How far the current revision has come.

    `admitted` are the uids to be recorded of the instances that may move and are not there yet;
    `pending` is how many have not completed it.
    """

    finding: Finding
    """The condition Propagated."""
    because: str
    admitted: tuple[str, ...] = ()
    pending: int = 0
    again: timedelta | None = None
    progress: Mapping[str, int]


class _Admission(Struct, frozen=True):
    """The uids of instances that may move and are not there: those recorded before, and those from now on."""

    before: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    error: str = ""


def propagation(
    view: View, current: Revision, instances: Sequence[InstanceFacts], answers: Answers, now: datetime
) -> Propagation:
    """Return how far a revision has come, and which instances may move to it; raises Unanswered."""
    number, following = current.number, population(instances)
    gated = is_gated(view.definition, current.obj)
    found = _admission(view, current, instances, following, answers) if gated else _Admission()
    may_move = dict.fromkeys((*found.before, *found.new))
    held_back = {one.key for one in following if gated and _waits(one, number) and one.uid not in may_move}
    step = _step(number, instances, found, held_back, now)
    affected = [one for one in following if not _is_new(one, current)]
    done = sum(one.observed == number for one in affected)
    if found.error:
        finding = Finding("Unknown", "PropagateWhenError", found.error)
    elif done == len(affected):
        there = sum(one.current == number for one in following)
        finding = Finding("True", "AllInstancesUpdated", f"{there}/{there} instances on revision {number}")
    else:
        message = f"{done}/{len(affected)} instances on revision {number}; {step.because}"
        finding = Finding("False", "PropagationInProgress", message)
    return Propagation(
        finding=finding,
        because=step.because,
        admitted=tuple(may_move),
        pending=len(affected) - done,
        again=view.options.propagation_interval if held_back else None,
        progress=step.progress,
    )


def _waits(one: InstanceFacts, number: int) -> bool:
    """Say whether an instance is on another revision; one that is on none is new, and starts on the current one."""
    return one.current not in (0, number)


def _is_new(one: InstanceFacts, current: Revision) -> bool:
    """Say whether an instance was created after a revision, which it starts on, so that nothing propagates to it."""
    return not _waits(one, current.number) and one.age[0] >= current.created


def _admission(
    view: View,
    current: Revision,
    instances: Sequence[InstanceFacts],
    following: Sequence[InstanceFacts],
    answers: Answers,
) -> _Admission:
    recorded = frozenset(admitted(current.obj))
    before = tuple(one.uid for one in instances if one.uid in recorded and one.current != current.number)

    def is_candidate(one: InstanceFacts) -> bool:
        return _waits(one, current.number) and one.uid not in recorded

    if view.status.get("currentRevision") != current.number:
        # Instances follow the status: it is written before any of them is let through.
        return _Admission(before)
    try:
        if not let_through(view, current, following, is_candidate):
            return _Admission(before)
        confirmed = let_through(view, current, _live(view, answers), is_candidate)
        return _Admission(before, tuple(one.uid for one in confirmed))
    except GateError as error:
        return _Admission(before, error=str(error))


def _live(view: View, answers: Answers) -> Sequence[InstanceFacts]:
    """Return the instances that follow new revisions, by a live read; none where the definition has changed."""
    assert view.kind is not None, "instances propagate once their kind is served"
    itself, all_of_them = Read(meta.ref(view.definition)), ReadAll(view.kind, "", whole=True)
    require(answers, itself, all_of_them)
    read, there = answers.get(itself), answers.get(all_of_them)
    if not isinstance(read, Found) or not isinstance(there, Listed):
        return ()
    return population(all_facts(Memo(), there.objects)) if is_current(read.obj, view.definition) else ()


def _step(
    number: int,
    instances: Sequence[InstanceFacts],
    found: _Admission,
    held_back: Collection[str],
    now: datetime,
) -> Step:
    """Return the step of the rollout: which instances move is decided already, and it says what the others wait for."""
    before = frozenset(found.before)
    targets = [_target(one, number, before) for one in instances if not one.is_deleting]
    # Those that are held back come last: the pace has room for exactly the others.
    targets.sort(key=lambda one: one.key in held_back)
    moving = sum(1 for one in targets if one.on_goal and not one.held and not one.verdict.is_healthy)
    at_once = moving + len(found.new) if held_back else None
    step = advance(f"revision {number}", targets, Pace(at_once=at_once, failures=None), now)
    if held_back and not moving and not step.move:
        because = f"propagateWhen holds back {listed([one.key for one in targets if one.key in held_back])}"
        return Step(because=because, standing=step.standing)
    return step


def _target(one: InstanceFacts, number: int, admitted: Collection[str]) -> Target:
    return Target(
        key=one.key,
        on_goal=not _waits(one, number) or one.uid in admitted,
        verdict=_verdict(one, number),
        held=one.held,
    )


def _verdict(one: InstanceFacts, number: int) -> ProbeResult:
    """Say whether an instance has completed a revision, or else what it reports."""
    if one.observed == number:
        return HEALTHY
    ready = conditions.find(conditions.of(one.obj), "Ready")
    message = ready.get("message") if ready is not None and ready.get("status") != "True" else ""
    return unhealthy(message or f"it has not completed revision {number}")
