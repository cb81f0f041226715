"""Runs controllers on a simulated cluster until nothing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from lamina.core.model.controller import AnyController, Source
from lamina.core.model.effects import Ask
from lamina.core.model.plan import NOTHING, Action, Plan
from lamina.core.model.queries import Answer, Query, answering_cluster
from lamina.core.model.reconcile import drive, planning
from lamina.core.model.workqueue_schedule import first
from lamina.objects.types import Ref
from lamina.runtime.cluster.lookup import resolve
from lamina.simulation.cluster.apiserver import SimulatedCluster
from lamina.simulation.process.process import Process
from lamina.simulation.process.record import Crashed, Key

_MAX_STEPS = 3000

Item = TypeVar("Item")


class Chooser(Protocol):
    """Picks a key at random, as `random.Random` does."""

    def choice(self, seq: Sequence[Item]) -> Item: ...


def settle(
    cluster: SimulatedCluster,
    *controllers: AnyController,
    sources: Sequence[Source] = (),
    others: Mapping[str, SimulatedCluster] | None = None,
    random: Chooser | None = None,
    crash_after: int | None = None,
    max_steps: int = _MAX_STEPS,
) -> None:
    """
    Run controllers until no key is ready, without advancing the clock.

    They start with empty caches, as after a crash. With `random`, keys are taken
    in random order. With `crash_after`, the process dies after that many writes.
    Errors are raised, except conflicts that a new plan resolves.
    """
    process = Process(
        cluster, controllers, sources, others=others, immediate=True, deleted_uids=cluster.deleted_uids
    )
    writes = 0

    def count(key: Key, action: Action) -> None:
        nonlocal writes
        if writes == crash_after:
            raise Crashed
        writes += 1

    process.before_write = count
    try:
        for _ in range(max_steps):
            if not process.step(random.choice if random is not None else first):
                return
        raise AssertionError(f"the controllers do not settle: {process.schedule.ready[:5]}")
    finally:
        process.stop()


def planned(
    cluster: SimulatedCluster,
    controller: AnyController,
    ref: Ref,
    *,
    unseen: Sequence[Ref] = (),
    others: Mapping[str, SimulatedCluster] | None = None,
) -> Plan:
    """Return the plan a controller would make for a key now; an empty one if it has nothing to decide."""
    view = controller.gather(cluster.world(controller, unseen=unseen, others=others), ref)
    if view is None:
        return NOTHING
    clusters = others or {}

    def answer(ask: Ask) -> Mapping[Query, Answer]:
        return {
            query: resolve(answering_cluster(query), cluster, clusters).answer(query) for query in ask.queries
        }

    return drive(planning(controller, view, lambda: cluster.now), answer)
