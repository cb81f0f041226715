"""Starts perturbed runs from a checkpoint: after a crash, with a stale view, or with missed events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from lamina.objects import meta
from lamina.objects.types import GroupKind
from lamina.simulation import Process, SimulatedCluster
from lamina.simulation.process.informers import Event
from lamina.testing.scenario import Checkpoint, Perturbation, Run, Scenario

_LAGS = (1, 6)
"""How many checkpoints a stale view is behind: a little, and far."""


def perturbed_runs(
    scenario: Scenario,
    checkpoints: Sequence[Checkpoint],
    number: int,
    perturbations: Sequence[Perturbation],
) -> Iterator[tuple[Perturbation, Run]]:
    """Yield the runs that start at a checkpoint, one for each perturbation and variant of it."""
    checkpoint = checkpoints[number]
    if Perturbation.CRASH in perturbations and number:
        yield Perturbation.CRASH, _run(scenario, checkpoint, Perturbation.CRASH)
    if Perturbation.STALE_VIEW in perturbations:
        for stale in _stale_checkpoints(checkpoints, number):
            yield Perturbation.STALE_VIEW, _with_stale_view(scenario, checkpoint, checkpoints[stale])
    if Perturbation.MISSED_EVENTS in perturbations:
        kinds: list[GroupKind] = []
        yield Perturbation.MISSED_EVENTS, _with_missed_events(scenario, checkpoint, number, kinds)
        if len(kinds) > 1:
            yield (
                Perturbation.MISSED_EVENTS,
                _with_missed_events(scenario, checkpoint, number, [], reverse=True),
            )


def _run(scenario: Scenario, checkpoint: Checkpoint, perturbation: Perturbation) -> Run:
    return Run(
        scenario,
        checkpoint.cluster.copy(),
        checkpoint.place,
        checkpoint.until,
        perturbation=perturbation,
    )


def _stale_checkpoints(checkpoints: Sequence[Checkpoint], number: int) -> Sequence[int]:
    """
    Return the checkpoints that a stale view shows: a little behind, far behind, and after the last two steps.

    Right after a step the controllers had something to do, and doing it now may be wrong.
    """
    steps = [place for place in range(number) if checkpoints[place].is_step]
    behind = [number - lag for lag in _LAGS]
    return sorted({place for place in (*behind, *steps[-2:]) if place >= 0})


def _with_stale_view(scenario: Scenario, checkpoint: Checkpoint, stale: Checkpoint) -> Run:
    """Return a run whose process lists an older checkpoint and gets the newer events later."""
    cluster = checkpoint.cluster.copy()
    run = Run(
        scenario,
        cluster,
        checkpoint.place,
        checkpoint.until,
        list_objects=stale.cluster.listed,
        perturbation=Perturbation.STALE_VIEW,
        view=f"the cluster as it was {stale.when}, for {scenario.perturbed_for.total_seconds():g} s",
    )
    informers = run.under_test.informers
    informers.paused = True
    for event in _events_between(stale.cluster, cluster):
        informers.receive(event)
    run.loop.at(cluster.now + scenario.perturbed_for, lambda: _catch_up(run.under_test))
    return run


def _events_between(old: SimulatedCluster, new: SimulatedCluster) -> list[Event]:
    """Return the watch events that lead from one state to another, in order."""
    changed = [
        Event(ref, obj, int(meta.resource_version(obj)))
        for ref, obj in new.objects.items()
        if old.objects.get(ref) != obj
    ]
    deleted = [Event(ref, None, new.version) for ref in old.objects if ref not in new.objects]
    return sorted([*changed, *deleted], key=lambda event: event.version)


def _catch_up(process: Process) -> None:
    process.informers.paused, process.informers.list_objects = False, process.cluster.listed
    for kind in process.informers.pending_kinds:
        process.informers.deliver(kind)


def _with_missed_events(
    scenario: Scenario,
    checkpoint: Checkpoint,
    rotation: int,
    kinds: list[GroupKind],
    *,
    reverse: bool = False,
) -> Run:
    """
    Return a run whose process gets no events for some time, then the latest state of each object, kind by kind.

    The run fills `kinds` with the kinds that it had missed, in the order of their delivery.
    """
    run = _run(scenario, checkpoint, Perturbation.MISSED_EVENTS)
    run.view = "no events yet"
    cluster, process = run.cluster, run.under_test
    process.informers.paused = True

    def deliver() -> None:
        order = kinds[:] = _rotated(sorted(process.informers.pending_kinds), rotation, reverse=reverse)
        listed = ", then ".join(kind.kind for kind in order)
        duration = f"{scenario.perturbed_for.total_seconds():g} s"
        run.view = f"no events for {duration}, then the latest state of each {listed}"
        for place, kind in enumerate(order):
            # Apart in time, so that controllers reconcile between two kinds.
            when = cluster.now + timedelta(milliseconds=10 * place)
            run.loop.at(when, lambda kind=kind: process.informers.deliver(kind, latest_only=True))  # type: ignore[misc]
        run.loop.at(cluster.now + timedelta(milliseconds=10 * len(order)), lambda: _catch_up(process))

    run.loop.at(cluster.now + scenario.perturbed_for, deliver)
    return run


def _rotated(kinds: Sequence[GroupKind], rotation: int, *, reverse: bool) -> Sequence[GroupKind]:
    """Return the kinds, starting with another one for each rotation."""
    start = rotation % len(kinds) if kinds else 0
    rotated = [*kinds[start:], *kinds[:start]]
    return rotated[::-1] if reverse else rotated
