"""The schedule of keys: order, delays, appointments and backoff, with time as an argument."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from lamina.core.model.workqueue_schedule import RetryRate, Schedule

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def drained(schedule: Schedule[str], now: datetime = START) -> list[str]:
    """Take every ready key and mark it as done."""
    keys = []
    while schedule.depth:
        keys.append(schedule.take(now))
        schedule.done(keys[-1])
    return keys


def reconciled(schedule: Schedule[str], until: int, step: int = 1) -> dict[int, list[str]]:
    """Return which keys are reconciled at which second, up to and with the last."""
    found = {}
    for second in range(0, until + 1, step):
        schedule.promote(at(second))
        if keys := drained(schedule, at(second)):
            found[second] = keys
    return found


def test_keys_are_taken_in_the_order_in_which_they_were_added_and_once() -> None:
    schedule = Schedule[str]()

    added = [schedule.add(key) for key in "abacb"]

    assert added == [True, True, False, True, False]
    assert drained(schedule) == ["a", "b", "c"]


def test_any_ready_key_may_be_chosen() -> None:
    schedule = Schedule[str]()
    for key in "abc":
        schedule.add(key)

    assert schedule.take(START, lambda keys: keys[-1]) == "c"
    assert schedule.ready == ("a", "b")


def test_a_key_that_is_added_while_it_is_in_progress_is_ready_again_when_it_is_done() -> None:
    schedule = Schedule[str]()
    schedule.add("a")
    key = schedule.take(START)

    assert schedule.add("a")
    assert not schedule.add("a")
    assert schedule.depth == 0 and not schedule.is_idle

    assert schedule.done(key)
    assert drained(schedule) == ["a"]
    assert schedule.is_idle


def test_a_key_that_is_not_added_meanwhile_is_not_ready_again() -> None:
    schedule = Schedule[str]()
    schedule.add("a")

    assert not schedule.done(schedule.take(START))
    assert schedule.is_idle


@pytest.mark.parametrize(
    ("delays", "due"),
    [
        ((9, 3, 6), 3),
        ((3, 9), 3),
        ((9,), 9),
    ],
)
def test_the_earliest_of_several_delays_stands(delays: tuple[int, ...], due: int) -> None:
    schedule = Schedule[str]()
    for delay in delays:
        assert not schedule.add_after("a", START, span(delay))

    assert schedule.next_due == schedule.due("a") == at(due)
    assert reconciled(schedule, 20) == {due: ["a"]}


@pytest.mark.parametrize("delay", [0, -1])
def test_a_key_without_a_delay_is_ready_at_once(delay: int) -> None:
    schedule = Schedule[str]()

    assert schedule.add_after("a", START, span(delay))
    assert schedule.ready == ("a",)
    assert not schedule.add_after("a", START, span(delay)), "it is ready already"


def test_a_reconcile_takes_the_place_of_a_delayed_one() -> None:
    schedule = Schedule[str]()
    schedule.add_after("a", START, span(5))
    schedule.add("a")

    assert reconciled(schedule, 20) == {0: ["a"]}
    assert schedule.next_due is None


def test_an_appointment_stands_although_the_key_is_reconciled_before_it() -> None:
    schedule = Schedule[str]()
    schedule.appoint("a", START, span(100))
    schedule.promote(at(50))
    schedule.add("a")
    schedule.done(schedule.take(START))
    schedule.appoint("a", at(50), span(1000))

    assert reconciled(schedule, 300) == {100: ["a"]}
    assert schedule.next_due is None, "the later appointment was not made, as the earlier one stood"


def test_an_appointment_that_falls_due_during_a_reconcile_leads_to_another_one() -> None:
    schedule = Schedule[str]()
    schedule.appoint("a", START, span(100))
    schedule.add("a")
    schedule.promote(at(99))
    key = schedule.take(START)

    assert schedule.promote(at(100)) == ["a"]
    assert schedule.done(key)
    assert schedule.ready == ("a",)


def test_an_appointment_for_now_is_kept_now() -> None:
    schedule = Schedule[str]()

    assert schedule.appoint("a", START, span(0))
    assert schedule.ready == ("a",)


def test_an_appointment_that_was_kept_late_does_not_take_the_place_of_the_next() -> None:
    """
    The key is added when the appointment falls due, and is taken before the timer runs.

    The appointment was merged with the one that this reconcile makes: that one fell due at
    once, and its own time passed without a reconcile.
    """
    schedule = Schedule[str]()
    schedule.appoint("a", START, span(100))
    schedule.add("a")
    key = schedule.take(at(100))
    schedule.appoint("a", at(100), span(100))
    schedule.done(key)

    assert schedule.promote(at(100)) == []
    assert schedule.due("a") == at(200)


STEPS = tuples(
    sampled_from(("add", "add_after", "appoint", "retry", "reset_backoff", "take", "done", "pass", "late")),
    integers(min_value=0, max_value=40),
)


@given(lists(STEPS, max_size=40))
def test_the_earliest_appointment_is_kept_in_time_whatever_happens_before(
    steps: list[tuple[str, int]],
) -> None:
    schedule = Schedule[str](base_delay=span(1), max_delay=span(30))
    now, in_progress, appointed = START, False, None
    """When the earliest appointment is that was made since one was kept."""

    def take() -> None:
        nonlocal appointed
        schedule.take(now)
        if appointed is not None and appointed <= now:
            appointed = None

    def finish() -> None:
        nonlocal in_progress
        if in_progress:
            schedule.done("a")
            in_progress = False
        while schedule.depth:
            take()
            schedule.done("a")

    for step, seconds in [*steps, ("done", 0), ("pass", 1000)]:
        match step:
            case "add":
                schedule.add("a")
            case "add_after":
                schedule.add_after("a", now, span(seconds))
            case "appoint":
                appointed = min(now + span(seconds), appointed or now + span(seconds))
                schedule.appoint("a", now, span(seconds))
            case "retry":
                schedule.retry("a", now)
            case "reset_backoff":
                schedule.reset_backoff("a")
            case "take" if schedule.depth and not in_progress:
                take()
                in_progress = True
            case "done" if in_progress:
                schedule.done("a")
                in_progress = False
            case "late":
                now += span(seconds)
            case "pass":
                end = now + span(seconds)
                finish()
                while (moment := schedule.next_due) is not None and moment <= end:
                    now = max(now, moment)
                    schedule.promote(now)
                    finish()
                now = end
                assert appointed is None or appointed > now


@given(
    appointments=lists(integers(1, 30), min_size=1, max_size=6),
    added=lists(integers(0, 30), max_size=6),
)
def test_no_appointment_is_missed_whatever_is_reconciled_before(
    appointments: list[int], added: list[int]
) -> None:
    schedule = Schedule[str]()
    for second in appointments:
        schedule.appoint("a", START, span(second))
    seen = []
    for second in range(31):
        schedule.promote(at(second))
        if second in added:
            schedule.add("a")
        if drained(schedule, at(second)):
            seen.append(second)

    assert seen == sorted({min(appointments), *added})


@given(lists(tuples(sampled_from("abc"), integers(0, 8)), max_size=12))
def test_no_delay_is_lost_and_none_is_cut_short(delays: list[tuple[str, int]]) -> None:
    schedule = Schedule[str]()
    for key, seconds in delays:
        schedule.add_after(key, START, span(seconds))

    first: dict[str, int] = {}
    for second, keys in reconciled(schedule, 8).items():
        for key in keys:
            first.setdefault(key, second)

    assert first == {key: min(s for k, s in delays if k == key) for key, _ in delays}


def test_each_failure_doubles_the_backoff_up_to_a_limit_until_it_is_reset() -> None:
    schedule = Schedule[str](base_delay=span(1), max_delay=span(10))

    delays = [schedule.retry("a", START).total_seconds() for _ in range(6)]

    assert delays == [1, 2, 4, 8, 10, 10]
    assert schedule.retry("b", START) == span(1), "failures are counted per key"
    schedule.reset_backoff("a")
    assert schedule.retry("a", START) == span(1)


def test_one_failure_may_have_a_backoff_of_its_own() -> None:
    schedule = Schedule[str]()

    delays = [
        schedule.retry("a", START, base_delay=span(3), max_delay=span(20)).total_seconds() for _ in range(4)
    ]

    assert delays == [3, 6, 12, 20]
    assert schedule.due("a") == at(3)


def test_keys_that_fail_together_are_retried_one_after_another() -> None:
    schedule = Schedule[str](base_delay=span(1), max_delay=span(10))

    delays = [schedule.retry(str(number), START, spread=True) for number in range(200)]

    assert delays[:100] == [span(1)] * 100
    assert delays[-1] == span(10)
    assert delays == sorted(delays)
    assert schedule.retry("a conflict", START) == span(1)


def test_failures_of_one_group_do_not_delay_another() -> None:
    schedule = Schedule[tuple[str, int]](group=lambda key: key[0])
    for number in range(1000):
        schedule.retry(("silent", number), START, spread=True)

    assert schedule.retry(("silent", 1000), START, spread=True) > span(60)
    assert schedule.retry(("other", 0), START, spread=True) < span(1)


def test_a_retry_rate_recovers_as_time_passes() -> None:
    rate = RetryRate(interval=span(1), burst=2)

    assert [rate.reserve("", START) for _ in range(4)] == [span(0), span(0), span(1), span(2)]
    assert rate.reserve("", at(4)) == span(0)
    assert rate.reserve("", at(100)) == span(0)


def test_with_immediate_delays_only_retries_and_batching_are_skipped() -> None:
    schedule = Schedule[str](immediate=True)
    schedule.retry("failed", START)
    schedule.add_batched("batched", START, span(5))
    schedule.add_after("delayed", START, span(5))

    assert schedule.ready == ("failed", "batched")
    assert schedule.due("delayed") == at(5)


def test_what_is_known_of_a_key_can_be_dropped() -> None:
    schedule = Schedule[str](base_delay=span(1))
    for key in ("a", "b"):
        schedule.add(key)
        schedule.add_after(key, START, span(3))
        schedule.appoint(key, START, span(4))
        schedule.retry(key, START)

    schedule.forget(lambda key: key == "a")

    assert reconciled(schedule, 10) == {0: ["b"], 4: ["b"]}
    assert schedule.retry("a", START) == span(1)
    assert schedule.retry("b", START) == span(2)


def test_a_schedule_that_is_shut_down_keeps_no_delayed_key() -> None:
    schedule = Schedule[str]()
    schedule.add_after("a", START, span(3))

    schedule.cancel_delayed()

    assert schedule.next_due is None
    assert schedule.promote(at(100)) == []
