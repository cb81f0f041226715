"""
Simulated rollouts whose process crashes, gets a stale view, or misses events, at moments spread over each story.

`make torture` tries every moment of each. Besides, whatever is done to a fleet, in any
order, and however often its hub crashes: it settles, and the invariants hold.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.model.plan import Action
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import Crashed, settle
from lamina.simulation.cluster.kinds import CONTROLLER_REVISION
from lamina.testing.crash_explorer import Scenario, explore
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
    all_at_once,
    progressive,
    sent,
)
from tests.unit.families.manifestwork.stories import scenarios

EVERY, FEW = 13, 2


@pytest.mark.parametrize("scenario", tuple(scenarios()), ids=lambda one: one.name)
def test_a_rollout_bears_deaths_stale_views_and_unseen_states(scenario: Scenario) -> None:
    # Without a history, a wrong revision is pruned soon, and only at a few moments.
    every = FEW if "without a history" in scenario.name else EVERY

    figures = explore(scenario, every=every)

    assert figures.runs >= 3 * (figures.checkpoints // every)


@dataclass
class Crashing(Fleet):
    """A hub whose process crashes once, after so many writes, and whose every write is checked."""

    crashes_after: int | None = None

    def perform(self, action: Action, manager: str = "lamina") -> None:
        if self.crashes_after is not None and len(self.journal) >= self.crashes_after:
            self.crashes_after = None
            raise Crashed
        self._look(action)
        super().perform(action, manager)

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
        try:
            settle(self, HUB)
        except Crashed:
            # The process crashes once; this is the one that is started after it.
            settle(self, HUB)

    def to_the_end(self) -> None:
        for _ in range(60):
            before = self.version
            self.go_on()
            self.report()
            if self.version == before:
                return
        raise AssertionError(f"it never ends: {self.status()}")


def settled(strategy: Obj) -> Crashing:
    """Return a fleet of four that has nothing to do."""
    fleet = Crashing()
    fleet.start(OK1, 4, strategy, revisionHistoryLimit=3)
    fleet.to_the_end()
    fleet.journal.clear()
    return fleet


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


@given(steps=STEPS, aborts=st.booleans(), together=st.booleans())
@settings(max_examples=40, deadline=None)
def test_whatever_is_done_to_it_it_comes_to_rest_and_the_promises_hold(
    steps: list[tuple[str, Any]], aborts: bool, together: bool
) -> None:
    """The same view gives the same plan; a settled world gives an empty one; the spec is never written."""
    word = "AbortAll" if aborts else ""
    strategy = (
        all_at_once(progressDeadline="5s", failureStrategy=word)
        if together
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
    fleet.crashes_after = None
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


def _done(fleet: Crashing, what: str, how: Any) -> None:
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
            fleet.crashes_after = len(fleet.journal) + how
            fleet.go_on()
