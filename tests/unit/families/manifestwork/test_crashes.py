"""
A hub that dies after any of its writes, on paper.

Each story is told once without a death, and what the hub looked like is kept
after each write in it. From every such moment the story is told to its end again,
by a process that has just started and remembers nothing. The end is the same,
nothing was sent twice, and whoever has turned round is never sent the broken
revision again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.plan import Action
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.paper import Crashed, settle
from lamina.paper.kinds import CONTROLLER_REVISION
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    HUB,
    OK1,
    OK2,
    OK3,
    SLOW,
    WORK,
    Fleet,
    everybody,
    progressive,
    sent,
)

Step = Callable[["Mortal"], None]


@dataclass
class Mortal(Fleet):
    """A hub whose process dies once, after so many writes, and is looked over the shoulder all the time."""

    dies_after: int | None = None
    wrote: Callable[[], None] = lambda: None

    def perform(self, action: Action, manager: str = "lamina") -> None:
        if self.dies_after is not None and len(self.journal) >= self.dies_after:
            self.dies_after = None
            raise Crashed
        self._look(action)
        super().perform(action, manager)
        self.wrote()

    def _look(self, action: Action) -> None:
        """Check what must hold before anything is sent: that it is going out is written down."""
        for _, rev in sent([action]):
            kept = {held for _, held in self.revisions()}
            assert rev in kept, "nothing goes out that is not kept"
            tag = meta.labels(action.obj)["work.open-cluster-management.io/controller-hash"]  # type: ignore[union-attr]
            assert tag == (self.current if self.aborted else self.update), (
                "what goes out is what the status says"
            )

    def go_on(self) -> None:
        while True:
            try:
                settle(self, HUB)
            except Crashed:
                continue
            return

    def to_the_end(self) -> None:
        for _ in range(60):
            before = self.version
            self.go_on()
            self.report()
            if self.version == before:
                return
        raise AssertionError(f"it never ends: {self.status()}")


def wants(content: Obj) -> Step:
    return lambda fleet: fleet.want(content)


def works(fleet: Mortal) -> None:
    fleet.go_on()


def answers(fleet: Mortal) -> None:
    fleet.report()


def ends(fleet: Mortal) -> None:
    fleet.to_the_end()


def waits(fleet: Mortal) -> None:
    fleet.pass_time(6)


def one_is_away(fleet: Mortal) -> None:
    fleet.away = {"c2"}


def it_is_back(fleet: Mortal) -> None:
    fleet.away = set()


def loses_the_way_back(fleet: Mortal) -> None:
    """Somebody deletes the revision that everybody was well on."""
    for one in fleet.listed(CONTROLLER_REVISION):
        if meta.labels(one)["work.open-cluster-management.io/controller-hash"] == fleet.current:
            fleet.delete(meta.ref(one))


def one_joins(fleet: Mortal) -> None:
    fleet.place("place", {0: ["c0", "c1", "c2", "c3", "c4"]})


def one_leaves(fleet: Mortal) -> None:
    fleet.place("place", {0: ["c1", "c3", "c4"]})


def is_deleted(fleet: Mortal) -> None:
    fleet.delete(APP)


STORIES: Mapping[str, Sequence[Step]] = {
    "a plain rollout": (wants(OK2), ends),
    "an abort": (wants(BAD), works, answers, works, waits, ends),
    "an abort of what takes too long": (wants(SLOW), works, answers, works, waits, ends),
    "an abort because an agent is away": (one_is_away, wants(OK2), works, answers, works, waits, works, it_is_back, ends),
    "an abort after some succeeded": (wants(OK2), works, answers, works, one_is_away, wants(SLOW), works, answers, works, waits, ends),
    "an abort, and the way back lost before it": (wants(BAD), works, answers, works, loses_the_way_back, works, waits, ends),
    "an abort, and then what everybody has": (wants(BAD), works, answers, waits, ends, wants(OK1), ends),
    "an abort, and then something better": (wants(BAD), works, answers, waits, ends, wants(OK3), ends),
    "an abort, and somebody joins": (wants(BAD), works, answers, waits, ends, one_joins, ends),
    "an abort, and somebody leaves before it": (wants(BAD), works, answers, works, one_leaves, works, waits, ends),
    "undone by hand in the middle": (wants(OK2), works, answers, works, wants(OK1), ends),
    "undone after the end": (wants(OK2), ends, wants(OK1), ends),
    "a third template in the middle": (wants(OK2), works, answers, works, wants(OK3), ends),
    "a third template in the middle, which is bad": (wants(OK2), works, answers, works, wants(BAD), works, answers, works, waits, ends),
    "deleted in the middle": (wants(OK2), works, is_deleted, works),
}  # fmt: skip


def settled(strategy: Obj) -> Mortal:
    """Return a fleet of four that has nothing to do."""
    fleet = Mortal()
    fleet.start(OK1, 4, strategy, revisionHistoryLimit=3)
    fleet.to_the_end()
    fleet.journal.clear()
    return fleet


def moments(fleet: Mortal, steps: Sequence[Step]) -> list[tuple[int, Mortal]]:
    """Tell a story, and return what the hub looked like after each write, and in which step that was."""
    kept: list[tuple[int, Mortal]] = []
    for place, step in enumerate(steps):
        fleet.wrote = lambda place=place: kept.append((place, _copy(fleet)))  # type: ignore[misc]
        step(fleet)
    fleet.wrote = lambda: None
    return kept


def _copy(fleet: Mortal) -> Mortal:
    copied = fleet.as_it_is()
    copied.away, copied.wrote = set(fleet.away), lambda: None
    return copied


ALL_AT_ONCE = everybody(progressDeadline="5s", failureStrategy="AbortAll")
TOLD = [(name, progressive()) for name in STORIES] + [
    (name, ALL_AT_ONCE)
    for name in ("an abort", "an abort because an agent is away", "undone by hand in the middle")
]


@pytest.mark.parametrize(("name", "strategy"), TOLD, ids=[f"{name}, {how['type']}" for name, how in TOLD])
def test_a_death_after_any_write_leads_to_the_same_end_and_nothing_is_sent_twice(
    name: str, strategy: Obj
) -> None:
    steps = STORIES[name]
    undisturbed = settled(strategy)
    kept = moments(undisturbed, steps)
    assert kept
    _check_rest(undisturbed)
    for place, again in kept:
        after = len(again.journal)
        for step in steps[place:] if steps[place] in (works, ends) else steps[place + 1 :]:
            step(again)
        _check_rest(again)
        assert again.revs() == undisturbed.revs()
        assert Counter(sent(again.journal)) == Counter(sent(undisturbed.journal)), f"after {after} writes"
        assert {held for _, held in again.revisions()} == {held for _, held in undisturbed.revisions()}
        if APP in again.objects:
            assert again.row() == undisturbed.row(), f"after {after} writes"
            assert bool(again.aborted) == bool(undisturbed.aborted)
            assert (again.current, again.update) == (undisturbed.current, undisturbed.update)


def _check_rest(fleet: Mortal) -> None:
    if APP not in fleet.objects:
        assert fleet.revs() == {}
        return
    assert fleet.plan().actions == ()
    numbers = [number for number, _ in fleet.revisions()]
    assert len(set(numbers)) == len(numbers)


CONTENTS = {"one": OK1, "two": OK2, "three": OK3, "bad": BAD, "slow": SLOW}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.sampled_from(sorted(CONTENTS))),
        st.tuples(st.just("work"), st.integers(0, 9)),
        st.tuples(st.just("report"), st.sampled_from(("", "c1", "c2", "c3"))),
        st.tuples(st.just("wait"), st.sampled_from((1, 3, 6))),
        st.tuples(st.just("place"), st.integers(1, 4)),
        st.tuples(st.just("lose"), st.integers(0, 3)),
        st.tuples(st.just("relabel"), st.integers(0, 3)),
    ),
    min_size=1,
    max_size=14,
)


@given(steps=STEPS, aborts=st.booleans(), everyone=st.booleans())
@settings(max_examples=40, deadline=None)
def test_whatever_is_done_to_it_it_comes_to_rest_and_the_promises_hold(
    steps: list[tuple[str, Any]], aborts: bool, everyone: bool
) -> None:
    """The same view gives the same plan; a settled world gives an empty one; the spec is never written."""
    word = "AbortAll" if aborts else ""
    strategy = (
        everybody(progressDeadline="5s", failureStrategy=word)
        if everyone
        else progressive(failureStrategy=word)
    )
    fleet = settled(strategy)
    for what, how in steps:
        spec = fleet.get(APP)["spec"]
        _done(fleet, what, how)
        assert what in ("want",) or fleet.get(APP)["spec"] == spec
        assert fleet.plan() == fleet.plan()
        if fleet.aborted:
            assert fleet.current
            assert fleet.current != fleet.update
    fleet.dies_after = None
    for _ in range(6):
        fleet.to_the_end()
        fleet.pass_time(6)
    fleet.to_the_end()

    assert fleet.plan().actions == ()
    works = fleet.listed(WORK)
    places = [(meta.namespace(one), meta.labels(one)["work.open-cluster-management.io/placementname"]) for one in works]  # fmt: skip
    assert len(set(places)) == len(places)
    if fleet.aborted:
        assert set(fleet.hashes().values()) <= {fleet.current}
    elif fleet.said("PlacementRolledOut") == ("True", "Complete"):
        assert set(fleet.hashes().values()) == {fleet.update} == {fleet.current}


def _done(fleet: Mortal, what: str, how: Any) -> None:
    match what:
        case "want":
            fleet.want(CONTENTS[how])
        case "report":
            fleet.report(*[how] if how else [])
        case "wait":
            fleet.pass_time(how)
        case "place":
            fleet.place("place", {0: [f"c{number}" for number in range(1, how + 1)]})
        case "lose":
            for one in fleet.listed(CONTROLLER_REVISION)[how : how + 1]:
                fleet.delete(meta.ref(one))
        case "relabel":
            for one in fleet.works()[how : how + 1]:
                ref: Ref = meta.ref(one)
                fleet.patch(
                    ref, {"metadata": {"labels": {"work.open-cluster-management.io/controller-hash": "x"}}}
                )
        case _:
            fleet.dies_after = len(fleet.journal) + how
            fleet.go_on()
