"""
The next step of some phases, in order: a phase is written when all phases before it pass.

All objects of a phase are checked before one of them is written, and one violation keeps
all of them from being written. A phase passes when every object is as it is desired and its
probes are healthy. An object that a newer revision controls is not waited for: what a
superseded revision still controls in later phases is reconciled all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Action, Stage
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.ownership.handover import Handover
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.core.phases.object_step import ObjectStep, decide, described, gains, observe
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.preflight import violations
from lamina.objects.types import Obj

RETRY = timedelta(seconds=30)
"""When an object that was refused is looked at again: what is in the way may not be watched."""


class FailureReason(StrEnum):
    """Why a phase does not pass, as the reason of a condition."""

    PROBE = "ProbeFailure"
    PREFLIGHT = "PreflightError"
    COLLISION = "CollisionDetected"


class Failure(Struct, frozen=True):
    """Why a phase does not pass: the reason and the message of a condition."""

    reason: FailureReason
    message: str

    @property
    def is_refusal(self) -> bool:
        """Say whether something is in the way that need not be watched, so that it is looked at again later."""
        return self.reason is not FailureReason.PROBE


class PhaseStep(Struct, frozen=True, kw_only=True):
    """The next step of one phase."""

    name: str
    failure: Failure | None = None
    gates: bool = False
    """Whether later phases have to wait."""
    actions: tuple[Action, ...] = ()
    queries: tuple[Query, ...] = ()
    moves_control: bool = False
    """Whether one of the actions creates an object or takes it over."""
    has_drifted: bool = False
    """Whether a controlled object has other content than is desired, which its probes say nothing about."""
    controlled: tuple[ObjectKey, ...] = ()
    left: tuple[ObjectKey, ...] = ()
    """The objects that are not controlled, in this order."""
    steps: tuple[ObjectStep, ...] = ()
    is_unreported: bool = False
    """Whether what reconciles the phase has no status yet, which may be because no controller does."""
    is_outdated: bool = False
    """Whether live reads show that the owner controls more than the cache has."""

    @property
    def is_refused(self) -> bool:
        return self.failure is not None and self.failure.is_refusal

    @property
    def is_unsettled(self) -> bool:
        """Say whether a report has to wait for the next pass, which sees what has become of the objects."""
        return (
            self.is_outdated
            or self.moves_control
            or (self.has_drifted and bool(self.actions) and self.failure is None)
        )


def phase_step(
    owner: PhaseOwner,
    name: str,
    wanted: Sequence[Manifest],
    lives: Mapping[ObjectKey, Obj],
    answers: Answers,
    *,
    is_reached: bool,
) -> PhaseStep:
    """Return the next step of one phase; where it is not reached, nothing is checked or written."""
    steps = tuple(observe(owner, one, lives.get(one.key)) for one in wanted)
    if owner.is_paused:
        reads = _confirming_reads(owner, steps)
        if asked := tuple(one for one in reads if one not in answers):
            return replace(_stopped(name, steps, FailureReason.PROBE, ""), queries=asked)
        if any(isinstance(one, Found) and owner.controls(one.obj) for one in map(answers.get, reads)):
            outdated = f'Phase "{name}": its objects are not in the cache yet as they are'
            return replace(_stopped(name, steps, FailureReason.PROBE, outdated), is_outdated=True)
    if is_reached:
        wrong = [f"{one.key}: {what}" for one in wanted for what in violations(owner, one)]
        if wrong:
            return _stopped(name, steps, FailureReason.PREFLIGHT, _listed(name, wrong))
        steps = tuple(decide(owner, one, answers) for one in steps)
        queries = tuple(query for one in steps for query in one.queries)
        if queries:
            return replace(_stopped(name, steps, FailureReason.PROBE, ""), queries=queries)
        refused = [f"{one.manifest.key}: {one.violation}" for one in steps if one.violation]
        if refused:
            return _stopped(name, steps, FailureReason.PREFLIGHT, _listed(name, refused))
    return _decided(owner, name, steps, is_reached=is_reached)


def writes(step: PhaseStep) -> Iterator[Stage]:
    """Yield the writes of a phase: its own objects first, and then those of each part; the others have no order."""
    name = f"write phase {step.name}"
    if not step.actions or not step.steps:
        yield Stage(name, step.actions)
        return
    for _, part in groupby(step.steps, key=lambda one: one.manifest.part):
        yield Stage(name, tuple(one.action for one in part if one.action is not None))


def _confirming_reads(owner: PhaseOwner, steps: Iterable[ObjectStep]) -> tuple[Read, ...]:
    """
    Return the live reads of the objects that the cache does not show as controlled by a paused owner.

    A revision is archived for what it does not report as controlled once it is paused, and a
    cache may lack what it controls. What a newer revision has is never the owner's again.
    """
    return tuple(
        Read(one.manifest.ref(owner.cluster))
        for one in steps
        if not one.is_controlled and not one.is_handed_over and one.manifest.kind and one.manifest.key.name
    )


def _decided(owner: PhaseOwner, name: str, steps: tuple[ObjectStep, ...], *, is_reached: bool) -> PhaseStep:
    collided = [f"{one.manifest.key}: {one.collision}" for one in steps if one.collision]
    failing = [one for one in steps if not one.result.is_healthy]
    failure = None
    if collided and is_reached:
        failure = Failure(FailureReason.COLLISION, _listed(name, collided))
    elif failing:
        failure = Failure(FailureReason.PROBE, f'Phase "{name}" failed: {described(failing)}')
    writes = is_reached and not owner.is_paused
    return PhaseStep(
        name=name,
        failure=failure,
        gates=bool(collided) or any(_gates(owner, one) for one in steps),
        actions=tuple(one.action for one in steps if one.action is not None) if writes else (),
        moves_control=writes and any(one.moves_control for one in steps),
        has_drifted=any(one.is_controlled and one.changes_content for one in steps),
        controlled=_controlled(steps),
        left=_left(steps),
        steps=steps,
    )


def _gates(owner: PhaseOwner, step: ObjectStep) -> bool:
    if step.handover in (Handover.CREATE, Handover.TAKE) and not gains(owner, step):
        # A superseded revision does not wait for what it does not gain.
        return False
    if owner.is_paused:
        return not step.is_handed_over and not step.result.is_healthy
    return step.gates


def _stopped(name: str, steps: tuple[ObjectStep, ...], reason: FailureReason, message: str) -> PhaseStep:
    return PhaseStep(
        name=name,
        failure=Failure(reason, message),
        gates=True,
        controlled=_controlled(steps),
        left=_left(steps),
        steps=steps,
    )


def _controlled(steps: Iterable[ObjectStep]) -> tuple[ObjectKey, ...]:
    return tuple(one.manifest.key for one in steps if one.is_controlled)


def _left(steps: Iterable[ObjectStep]) -> tuple[ObjectKey, ...]:
    return tuple(one.manifest.key for one in steps if not one.is_controlled)


def _listed(name: str, problems: Iterable[str]) -> str:
    return ", ".join(f'Phase "{name}", {one}' for one in problems)
