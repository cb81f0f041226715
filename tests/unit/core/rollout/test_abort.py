"""A rollout whose failure budget is exceeded is aborted: confirmed first, recorded next, and then rolled back."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.live_check import Confirmation
from lamina.core.model.plan import Create, Emit, Patch, Stage, change, delete, set_status
from lamina.core.model.queries import Read
from lamina.core.rollout.abort import Breach, Decision, Rollout, decide_abort, rollout_stages
from lamina.core.rollout.revision import Revision
from lamina.objects.types import Ref
from tests.unit.core.rollout.revisions import owner, revision, stored
from tests.unit.core.rollout.targets import NOW

EARLIER = NOW - timedelta(hours=1)
OLD, NEW = revision(1), revision(2)
READ = Read(Ref("v1", "Pod", "team", "a"))
OTHER_READ = Read(Ref("v1", "Pod", "team", "b"))
CONFIRMED, REFUTED = Confirmation[Any](), Confirmation[Any](too_few=True)
STALE = Confirmation[Any](outdated=frozenset({"a"}))
PENDING = Confirmation[Any](pending=(READ,))


def breach(confirmation: Confirmation[Any], message: str = "too many failed") -> Breach:
    return Breach(message, lambda: confirmation)


def rolling(
    wanted: Revision = NEW, stable: Revision | None = OLD, aborted_at: datetime | None = None
) -> Rollout:
    return Rollout(wanted=wanted, stable=stable, aborted_at=aborted_at)


def unasked() -> Confirmation[Any]:
    raise AssertionError("nothing has to be confirmed")


def test_without_a_breach_a_rollout_goes_on() -> None:
    decision = decide_abort(rolling(), [], NOW)

    assert decision == Decision()
    assert not decision.is_aborted


@pytest.mark.parametrize(
    ("confirmation", "decision"),
    [
        (CONFIRMED, Decision(aborted_at=NOW, breach="too many failed")),
        (STALE,     Decision(breach="too many failed", is_stale=True)),
        (REFUTED,   Decision(breach="too many failed", is_stale=True)),
        (PENDING,   Decision(breach="too many failed", pending=(READ,))),
    ],
)  # fmt: skip
def test_a_breach_is_confirmed_before_the_rollout_is_aborted(
    confirmation: Confirmation[Any], decision: Decision
) -> None:
    assert decide_abort(rolling(), [breach(confirmation)], NOW) == decision


@pytest.mark.parametrize("breaches", [[], [Breach("later", unasked)]])
def test_a_recorded_abort_stands_whatever_the_targets_do_now(breaches: list[Breach]) -> None:
    decision = decide_abort(rolling(aborted_at=EARLIER), breaches, NOW)

    assert decision == Decision(aborted_at=EARLIER, is_recorded=True)


def test_a_recorded_abort_stands_even_where_the_stable_revision_is_lost() -> None:
    assert decide_abort(rolling(stable=None, aborted_at=EARLIER), [], NOW).is_aborted


@pytest.mark.parametrize(
    ("wanted", "stable", "can"),
    [
        (NEW, OLD, True),
        (NEW, None, False),
        (NEW, NEW, False),
        (NEW, revision(1, 2, name="same content"), False),
        (revision(2, digest="d"), revision(1, digest="d"), False),
        (revision(2, digest="d"), revision(1, digest="e"), True),
    ],
)
def test_a_rollout_can_roll_back_to_other_content_only(
    wanted: Revision, stable: Revision | None, can: bool
) -> None:
    rollout = rolling(wanted, stable)

    assert rollout.can_roll_back is can
    decision = decide_abort(rollout, [Breach("b", (lambda: CONFIRMED) if can else unasked)], NOW)
    assert decision == Decision(aborted_at=NOW if can else None, breach="b")


def test_one_confirmed_breach_is_enough() -> None:
    breaches = [
        breach(STALE, "first"),
        breach(PENDING, "second"),
        breach(CONFIRMED, "third"),
        Breach("fourth", unasked),
    ]

    assert decide_abort(rolling(), breaches, NOW) == Decision(aborted_at=NOW, breach="third")


def test_reads_of_all_breaches_are_asked_together_and_once() -> None:
    both = Confirmation[Any](pending=(OTHER_READ, READ))

    decision = decide_abort(rolling(), [breach(PENDING), breach(STALE), breach(both)], NOW)

    assert decision.pending == (READ, OTHER_READ)
    assert not decision.is_stale
    assert not decision.is_aborted


CONFIRMATIONS = st.lists(st.sampled_from([CONFIRMED, STALE, REFUTED, PENDING]))
ROLLOUTS = st.builds(
    Rollout,
    wanted=st.just(NEW),
    stable=st.sampled_from([None, OLD, NEW]),
    aborted_at=st.sampled_from([None, EARLIER]),
)


@given(ROLLOUTS, CONFIRMATIONS)
def test_a_decision_is_one_thing_at_a_time(rollout: Rollout, confirmations: list[Confirmation[Any]]) -> None:
    decision = decide_abort(rollout, list(map(breach, confirmations)), NOW)

    assert decision.is_aborted + bool(decision.pending) + decision.is_stale <= 1
    assert decision.is_recorded is (rollout.aborted_at is not None)
    if decision.is_aborted and not decision.is_recorded:
        assert CONFIRMED in confirmations
        assert rollout.can_roll_back
    if rollout.aborted_at is None and CONFIRMED in confirmations and rollout.can_roll_back:
        assert decision.is_aborted


# ── stages ──

RECORD = Create(obj=stored("app-x"))
STATUS = set_status(owner(), {"phase": "new"})
EVENT = Emit(event=stored("event"))
MOVE, REMOVE = change(stored("target"), {"spec": 1}), delete(stored("surplus"))
PRUNE = delete(stored("app-old"))
assert STATUS is not None


def stages(
    *,
    status: Patch | None = STATUS,
    status_last: bool = False,
    min_interval: timedelta = timedelta(0),
    without: str = "",
) -> tuple[Stage, ...]:
    return rollout_stages(
        records=() if without == "records" else (RECORD,),
        status=status,
        events=() if without == "events" else (EVENT,),
        moves=(("write targets", () if without == "moves" else (MOVE,)), ("delete targets", (REMOVE,))),
        prune=() if without == "prune" else (PRUNE,),
        status_last=status_last,
        min_interval=min_interval,
    )


def names(made: tuple[Stage, ...]) -> list[str]:
    return [one.name for one in made]


def test_revisions_and_status_are_recorded_before_any_target_moves() -> None:
    made = stages()

    assert names(made) == [
        "record revisions",
        "update status",
        "emit events",
        "write targets",
        "delete targets",
        "prune revisions",
    ]
    assert [one for stage in made for one in stage.actions] == [RECORD, STATUS, EVENT, MOVE, REMOVE, PRUNE]
    assert not any(one.run_after_failure for one in made)


def test_a_status_that_decides_nothing_is_written_last_even_if_moves_fail() -> None:
    made = stages(status_last=True)

    assert names(made) == [
        "record revisions",
        "write targets",
        "delete targets",
        "update status",
        "emit events",
        "prune revisions",
    ]
    assert [one.name for one in made if one.run_after_failure] == ["update status", "emit events"]


@pytest.mark.parametrize("status_last", [True, False])
def test_without_a_new_status_there_are_no_events(status_last: bool) -> None:
    made = stages(status=None, status_last=status_last)

    assert names(made) == ["record revisions", "write targets", "delete targets", "prune revisions"]


def test_only_the_status_is_delayed() -> None:
    made = stages(min_interval=timedelta(seconds=2))

    assert {one.name: one.min_interval.total_seconds() for one in made if one.min_interval} == {
        "update status": 2
    }


@pytest.mark.parametrize(
    ("without", "name"),
    [
        ("records", "record revisions"),
        ("events", "emit events"),
        ("moves", "write targets"),
        ("prune", "prune revisions"),
    ],
)
def test_a_stage_without_actions_is_left_out(without: str, name: str) -> None:
    assert name not in names(stages(without=without))


# ── a story ──


class Owner:
    """An owner of five targets that crashes after any write, and reads its record anew in each pass."""

    def __init__(self, confirm: Callable[[], Confirmation[Any]]) -> None:
        self.aborted_at: datetime | None = None
        self.targets = dict.fromkeys("abcde", OLD.name)
        self.confirm = confirm

    def run(self, *, failed: bool, writes: int) -> None:
        """Take one pass that may make so many writes: the record first, then a target each."""
        rollout = rolling(aborted_at=self.aborted_at)
        decision = decide_abort(rollout, [Breach("b", self.confirm)] if failed else [], NOW)
        if decision.pending or decision.is_stale:
            return
        goal = OLD if decision.is_aborted else NEW
        todo = [] if decision.aborted_at == self.aborted_at else ["record"]
        todo += [key for key, has in self.targets.items() if has != goal.name]
        for one in todo[:writes]:
            if one == "record":
                self.aborted_at = decision.aborted_at
            else:
                self.targets[one] = goal.name


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.booleans()), max_size=20))
def test_no_target_moves_forward_after_one_was_rolled_back(passes: list[tuple[bool, int, bool]]) -> None:
    fresh = [True]
    rollout = Owner(lambda: CONFIRMED if fresh[0] else STALE)
    for failed, writes, fresh[0] in passes:
        before, was_aborted = dict(rollout.targets), rollout.aborted_at is not None
        rollout.run(failed=failed, writes=writes)
        back = [key for key, has in rollout.targets.items() if has == OLD.name != before[key]]
        forward = [key for key, has in rollout.targets.items() if has == NEW.name != before[key]]
        assert not (was_aborted and forward)
        assert rollout.aborted_at is not None or not back
        if rollout.aborted_at is not None and not was_aborted:
            assert failed and fresh[0]
