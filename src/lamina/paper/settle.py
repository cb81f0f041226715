"""Controllers carried out on paper until nothing changes, for whoever wants to know what that leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from lamina.core.controller import AnyController, Source, decide
from lamina.core.plan import NOTHING, Action, Plan
from lamina.core.questions import Answers, asked_of
from lamina.objects.types import Ref
from lamina.paper.cluster import Paper
from lamina.paper.desk import Desk
from lamina.paper.passes import Crashed, Key
from lamina.paper.turns import first
from lamina.runtime.bindings import bound

_PATIENCE = 3000
_ROUNDS = 32

Item = TypeVar("Item")


class Dice(Protocol):
    """Who says whose turn it is, where that does not matter."""

    def choice(self, seq: Sequence[Item]) -> Item: ...


def settle(
    paper: Paper,
    *controllers: AnyController,
    sources: Sequence[Source] = (),
    others: Mapping[str, Paper] | None = None,
    random: Dice | None = None,
    crash_after: int | None = None,
    patience: int = _PATIENCE,
) -> None:
    """
    Run controllers until nobody has anything left to do, without any time passing.

    They start with nothing remembered, as after a crash. With `random`, keys
    are taken in any order. With `crash_after`, the process dies after that many
    writes, and what it had not done yet is not done. What goes wrong is raised,
    unless it is that somebody else was quicker.
    """
    desk = Desk(paper, controllers, sources, others=others, hurried=True, gone=paper.gone)
    writes = 0

    def count(key: Key, action: Action) -> None:
        nonlocal writes
        if writes == crash_after:
            raise Crashed
        writes += 1

    desk.before_write = count
    try:
        for _ in range(patience):
            if not desk.step(random.choice if random is not None else first):
                return
        raise AssertionError(f"nobody comes to rest: {desk.turns.waiting[:5]}")
    finally:
        desk.leave()


def planned(
    paper: Paper,
    controller: AnyController,
    ref: Ref,
    *,
    unseen: Sequence[Ref] = (),
    others: Mapping[str, Paper] | None = None,
) -> Plan:
    """Return the plan a controller would make for a key now; an empty one if it has nothing to decide."""
    view = controller.gather(paper.world(controller, unseen=unseen, others=others), ref)
    if view is None:
        return NOTHING
    answers = Answers()
    for _ in range(_ROUNDS):
        decided = decide(controller, view, answers, paper.now)
        if isinstance(decided, Plan):
            return decided
        answers = answers | {
            question: bound(asked_of(question), paper, others or {}).answer(question) for question in decided
        }
    raise AssertionError("it never stops asking")
