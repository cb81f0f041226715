"""One reconcile without I/O: what it asks of its driver, and what follows from each failure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.core.model.controller import Controller
from lamina.core.model.effects import Ask, Attempt, CatchUp, Effect, Perform, Result, Written
from lamina.core.model.plan import NOTHING, Action, Apply, Create, Emit, Plan, Stage, change
from lamina.core.model.queries import Absent, Answers, Follow, Found, Query, Read
from lamina.core.model.reconcile import Reconciler, drive, performing, planning
from lamina.core.model.world import World
from lamina.errors import (
    AlreadyExists,
    CacheNotSynced,
    Conflict,
    Forbidden,
    HookError,
    Invalid,
    LaminaError,
    NotFound,
    NotLeading,
    PlanFailed,
    SpecError,
    Unreachable,
)
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, EVENT, SECRET, make

A = Ref("v1", "ConfigMap", "default", "a")
START = datetime(2026, 1, 1, tzinfo=UTC)
READ = Read(Ref("v1", "Secret", "default", "s"))


@dataclass
class Queue:
    """A queue that notes what a reconcile asks of it."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def add_after(self, key: Ref, delay: timedelta) -> None:
        self.calls.append(("add_after", delay.total_seconds()))

    def appoint(self, key: Ref, delay: timedelta) -> None:
        self.calls.append(("appoint", delay.total_seconds()))

    def retry(
        self,
        key: Ref,
        *,
        base_delay: timedelta | None = None,
        max_delay: timedelta | None = None,
        spread: bool = False,
    ) -> timedelta:
        bounds = [bound.total_seconds() if bound is not None else None for bound in (base_delay, max_delay)]
        self.calls.append(("retry", *bounds, spread))
        return timedelta(0)

    def reset_backoff(self, key: Ref) -> None:
        self.calls.append(("reset_backoff",))


@dataclass
class Followed:
    """What a key follows, and every state of that in between."""

    of: dict[Ref, set[Follow]] = field(default_factory=dict)
    states: list[int] = field(default_factory=list)

    @property
    def keys(self) -> Iterable[Ref]:
        return self.of.keys()

    def extend(self, ref: Ref, follows: Iterable[Follow]) -> None:
        self.of.setdefault(ref, set()).update(follows)
        self.states.append(len(self.of[ref]))

    def set(self, ref: Ref, follows: Iterable[Follow]) -> None:
        self.of[ref] = set(follows)
        self.states.append(len(self.of[ref]))


class Bench:
    """A reconciler of one ConfigMap, with a driver whose replies a test gives."""

    def __init__(
        self,
        plan: Callable[[Obj, Answers, datetime], Plan] = lambda view, answers, now: NOTHING,
        *,
        queries: Callable[[Obj, Answers], tuple[Query, ...]] = lambda view, answers: (),
        complain: Callable[[World, Ref, LaminaError, datetime], Plan] = lambda *_: NOTHING,
        there: bool = True,
        period: timedelta | None = None,
        strict: bool = False,
        visible: bool = False,
    ) -> None:
        self.cluster = SimulatedCluster()
        if there:
            self.cluster.create(make(CONFIG_MAP, "a"))
        self.queue, self.follows, self.now = Queue(), Followed(), START
        self.effects: list[Effect] = []
        self.replies: dict[type, Callable[[Any], Any]] = {
            CatchUp: lambda effect: None,
            Ask: lambda effect: {query: Absent() for query in effect.queries},
            Perform: lambda effect: [self.write(action) for action in effect.actions],
        }
        self.refused: dict[str, LaminaError] = {}
        controller: Controller[Obj] = Controller(
            name="toy",
            watches=(),
            gather=lambda world, ref: self.cluster.objects.get(ref),
            queries=queries,
            plan=plan,
            complain=complain,
            period=period,
        )
        self.controller = controller
        self.reconciler = Reconciler(
            controller,
            world=self,  # type: ignore[arg-type]
            queue=self.queue,
            follows=self.follows,
            now=lambda: self.now,
            is_visible=lambda written: visible,
            strict=strict,
        )

    def replacing(self, other: "Bench") -> Reconciler[Obj]:
        return Reconciler(
            self.controller,
            world=self,  # type: ignore[arg-type]
            queue=self.queue,
            follows=self.follows,
            now=lambda: self.now,
            replaces=other.reconciler,
        )

    def get(self, ref: Ref) -> Obj | None:
        return self.cluster.objects.get(ref)

    def write(self, action: Action) -> Sequence[Written] | LaminaError:
        name = action.ref.name
        if name in self.refused:
            return self.refused[name]
        return (Written(action.ref, "uid", 7),)

    def reply(self, effect: Effect) -> Any:
        self.effects.append(effect)
        return self.replies[type(effect)](effect)

    def attempt(self, ref: Ref = A) -> Attempt:
        self.effects.clear()
        return drive(self.reconciler.attempt(ref), self.reply)

    @property
    def performed(self) -> list[str]:
        return [action.ref.name for one in self.effects if isinstance(one, Perform) for action in one.actions]

    @property
    def caught_up(self) -> CatchUp:
        (found,) = [one for one in self.effects if isinstance(one, CatchUp)]
        return found


def makes(*names: str) -> Stage:
    return Stage("make", tuple(Create(obj=make(SECRET, name)) for name in names))


def always(plan: Plan) -> Callable[[Obj, Answers, datetime], Plan]:
    return lambda view, answers, now: plan


def raising(error: LaminaError) -> Callable[[Obj, Answers, datetime], Plan]:
    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        raise error

    return plan


def reporting(*seen: LaminaError) -> Callable[[World, Ref, LaminaError, datetime], Plan]:
    """Report an error by an object that is named for its class."""

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        return Plan(stages=(makes(f"report-{type(error).__name__.lower()}"),))

    return complain


# The course of a reconcile


def test_it_catches_up_asks_and_performs_in_this_order() -> None:
    bench = Bench(
        lambda view, answers, now: Plan(stages=(makes("one"), makes("two")), because="there is work"),
        queries=lambda view, answers: () if READ in answers else (READ,),
    )

    attempt = bench.attempt()

    assert [type(one) for one in bench.effects] == [CatchUp, Ask, Perform, Perform]
    assert bench.performed == ["one", "two"]
    assert attempt.result is Result.SUCCESS
    assert attempt.plan is not None and attempt.plan.because == "there is work"
    assert [action.ref.name for action in attempt.outcome.done] == ["one", "two"]
    assert bench.queue.calls == [("reset_backoff",)]


def test_a_key_without_a_view_is_left_alone() -> None:
    bench = Bench(raising(AssertionError("nothing to plan")), there=False)  # type: ignore[arg-type]

    attempt = bench.attempt()

    assert (attempt.result, attempt.has_view, attempt.plan) == (Result.SUCCESS, False, None)
    assert bench.follows.of[A] == set()


def test_a_plan_may_ask_for_more_before_it_is_performed() -> None:
    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        return Plan(queries=(READ,)) if READ not in answers else Plan(stages=(makes("one"),))

    bench = Bench(plan)
    bench.attempt()

    assert [type(one) for one in bench.effects] == [CatchUp, Ask, Perform]


def test_each_round_of_queries_knows_the_answers_of_those_before() -> None:
    reads = [Read(Ref("v1", "Secret", "default", str(number))) for number in range(3)]

    def queries(view: Obj, answers: Answers) -> tuple[Query, ...]:
        return next(((read,) for read in reads if read not in answers), ())

    bench = Bench(queries=queries)
    bench.attempt()

    assert [one.queries for one in bench.effects if isinstance(one, Ask)] == [(read,) for read in reads]


def test_a_controller_that_never_stops_asking_is_a_defect() -> None:
    bench = Bench(queries=lambda view, answers: (READ,))

    with pytest.raises(AssertionError, match="toy asks more than 32 rounds"):
        bench.attempt()


def test_it_requeues_the_key_when_the_plan_says_so() -> None:
    bench = Bench(always(Plan(requeue_after=timedelta(seconds=30))))

    assert bench.attempt().result is Result.REQUEUE_AFTER
    assert bench.queue.calls == [("reset_backoff",), ("add_after", 30)]


def test_an_appointment_is_made_whatever_the_outcome_of_the_plan() -> None:
    bench = Bench(always(Plan(appointment=timedelta(seconds=100), stages=(makes("one"),))))
    bench.refused["one"] = Invalid("wrong")

    assert bench.attempt().result is Result.ERROR
    assert bench.queue.calls[0] == ("appoint", 100)


@pytest.mark.parametrize("there", [True, False])
def test_a_period_brings_back_every_key_that_exists(there: bool) -> None:
    bench = Bench(raising(Invalid("wrong")), period=timedelta(seconds=60), there=there)
    bench.attempt()

    assert (("add_after", 60) in bench.queue.calls) is there


# Stages


def test_a_stage_is_performed_whole_and_the_next_only_after_success() -> None:
    plan = Plan(
        stages=(makes("one", "two", "three"), makes("four"), Stage("report", makes("five").actions, True))
    )
    bench = Bench(always(plan))
    bench.refused["two"] = Invalid("wrong")

    attempt = bench.attempt()

    assert bench.performed == ["one", "two", "three", "five"]
    assert [one.action.ref.name for one in attempt.outcome.refused] == ["two"]


def test_an_optional_apply_and_an_event_do_not_hold_up_a_plan() -> None:
    optional = Stage(
        "maybe", (Apply(obj=make(SECRET, "one"), optional=True), Emit(event=make(EVENT, "told")))
    )
    bench = Bench(always(Plan(stages=(optional, makes("two")))))
    bench.refused |= {"one": Forbidden("no"), "told": Forbidden("no")}

    attempt = bench.attempt()

    assert attempt.result is Result.SUCCESS
    assert attempt.outcome.refused == ()
    assert bench.performed == ["one", "told", "two"]


def test_an_optional_apply_is_retried_where_the_server_is_not_reached() -> None:
    bench = Bench(always(Plan(stages=(Stage("maybe", (Apply(obj=make(SECRET, "one"), optional=True),)),))))
    bench.refused["one"] = Unreachable("no route")

    assert bench.attempt().result is Result.ERROR


def test_a_plan_is_performed_alone_for_an_edit_of_a_command() -> None:
    outcome = drive(
        performing(Plan(stages=(makes("one"),))),
        lambda stage: [(Written(one.ref, "uid", 3),) for one in stage.actions],
    )

    assert [one.ref.name for one in outcome.written] == ["one"]


def test_a_plan_is_made_alone_for_an_explanation() -> None:
    bench = Bench(
        lambda view, answers, now: Plan(because=f"{type(answers.get(READ)).__name__} at {now:%H:%M}"),
        queries=lambda view, answers: () if READ in answers else (READ,),
    )
    view = bench.cluster.get(A)

    def answer(ask: Ask) -> Mapping[Query, Found]:
        return {query: Found(view) for query in ask.queries}

    assert drive(planning(bench.controller, view, lambda: START), answer).because == "Found at 00:00"


# Failures


@pytest.mark.parametrize(
    ("error", "result", "calls"),
    [
        (SpecError("spec.x: meaningless"), Result.TERMINAL, [("reset_backoff",)]),
        (CacheNotSynced("early"), Result.REQUEUE, [("retry", None, None, False)]),
        (HookError("busy", after=17), Result.REQUEUE_AFTER, [("add_after", 17)]),
        (HookError("busy", after=0), Result.REQUEUE_AFTER, [("retry", 1, 300, False)]),
        (HookError("broken"), Result.ERROR, [("retry", None, None, True)]),
        (Forbidden("no"), Result.ERROR, [("retry", None, None, True)]),
        (Unreachable("no route"), Result.ERROR, [("retry", None, None, True)]),
    ],
)
def test_what_follows_from_an_error(error: LaminaError, result: Result, calls: list[Any]) -> None:
    bench = Bench(raising(error), complain=reporting())

    attempt = bench.attempt()

    assert (attempt.result, attempt.failure) == (result, error)
    assert bench.queue.calls == calls
    is_reported = result in (Result.TERMINAL, Result.ERROR)
    assert (attempt.complaint is not None) is is_reported
    assert bool(bench.performed) is is_reported


@pytest.mark.parametrize(
    ("error", "result", "max_delay", "is_read_live"),
    [
        (Conflict("changed"), Result.REQUEUE, 1, True),
        (AlreadyExists("taken"), Result.REQUEUE, None, True),
        (NotLeading("another replica"), Result.REQUEUE, None, False),
        (CacheNotSynced("cancelled"), Result.REQUEUE, None, False),
        (NotFound("no namespace"), Result.ERROR, None, False),
        (Invalid("wrong"), Result.ERROR, None, False),
        (Unreachable("no route"), Result.ERROR, None, False),
    ],
)
def test_what_follows_from_a_refused_action(
    error: LaminaError, result: Result, max_delay: float | None, is_read_live: bool
) -> None:
    bench = Bench(always(Plan(stages=(makes("one"),))), complain=reporting())
    bench.refused["one"] = error

    attempt = bench.attempt()

    assert attempt.result is result
    assert bench.queue.calls == [("retry", None, max_delay, result is Result.ERROR)]
    assert (attempt.complaint is not None) is (result is Result.ERROR)

    bench.attempt()
    assert list(bench.caught_up.outdated) == ([make_ref("one")] if is_read_live else [])


def make_ref(name: str) -> Ref:
    return Ref("v1", "Secret", "default", name)


def test_a_conflict_beside_a_real_refusal_is_not_reported() -> None:
    bench = Bench(always(Plan(stages=(makes("stale", "wrong"),))), complain=reporting())
    bench.refused |= {"stale": Conflict("changed"), "wrong": Invalid("wrong")}

    attempt = bench.attempt()

    assert attempt.complaint is not None
    assert str(attempt.complaint.error) == "create secret default/wrong: wrong"
    assert "wrong" in str(attempt.complaint.error) and "changed" not in str(attempt.complaint.error)
    assert isinstance(attempt.failure, PlanFailed) and len(attempt.failure.failures) == 2


def test_the_failure_of_a_plan_is_reported_after_it_is_performed() -> None:
    bench = Bench(always(Plan(stages=(makes("one"),), failure=Forbidden("half"))), complain=reporting())

    attempt = bench.attempt()

    assert attempt.result is Result.ERROR
    assert bench.performed == ["one", "report-forbidden"]


def test_an_error_that_cannot_be_reported_is_noted() -> None:
    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        raise Unreachable("no route")

    attempt = Bench(raising(Forbidden("no")), complain=complain).attempt()

    assert attempt.complaint is not None
    assert str(attempt.complaint.unreported) == "no route"
    assert attempt.result is Result.ERROR


def test_a_strict_reconcile_raises_what_it_would_report() -> None:
    with pytest.raises(Forbidden):
        Bench(raising(Forbidden("no")), strict=True).attempt()


def test_an_error_of_the_driver_is_one_of_the_reconcile() -> None:
    bench = Bench(queries=lambda view, answers: (READ,), complain=reporting())

    def refuse(effect: Ask) -> Any:
        raise Forbidden("no")

    bench.replies[Ask] = refuse

    assert bench.attempt().result is Result.ERROR
    assert bench.performed == ["report-forbidden"]


# What is remembered between reconciles


def test_the_next_reconcile_waits_for_what_this_one_wrote() -> None:
    bench = Bench(always(Plan(stages=(makes("one"),))))
    bench.attempt()
    assert not bench.caught_up.written

    bench.attempt()

    assert list(bench.caught_up.written) == [Written(make_ref("one"), "uid", 7)]


def test_what_was_reported_is_waited_for_as_well() -> None:
    bench = Bench(always(Plan(stages=(makes("one"),), failure=Forbidden("half"))), complain=reporting())
    bench.attempt()
    bench.attempt()

    assert [one.ref.name for one in bench.caught_up.written] == ["one", "report-forbidden"]


def test_caches_that_have_not_caught_up_are_waited_for_again() -> None:
    bench = Bench(always(Plan(stages=(makes("one", "stale"),))))
    bench.refused["stale"] = Conflict("changed")
    bench.attempt()
    expected: CatchUp | None = None

    for _ in range(3):

        def fail(effect: CatchUp) -> None:
            raise CacheNotSynced("not yet")

        bench.replies[CatchUp] = fail
        assert bench.attempt().result is Result.REQUEUE
        expected = expected or bench.caught_up
        assert bench.caught_up == expected

    assert [one.ref.name for one in expected.written] == ["one"] if expected else False
    assert list(expected.outdated) == [make_ref("stale")] if expected else False


def test_writes_that_are_visible_already_are_dropped_beyond_a_number() -> None:
    bench = Bench(visible=True)
    unseen = Bench(visible=False)
    for number in range(2000):
        for one in (bench, unseen):
            one.reconciler._remember(A._replace(name=str(number)), [Written(A, "uid", number)])

    assert len(bench.reconciler._written) == 1024
    assert len(unseen.reconciler._written) == 2000


def test_nothing_is_remembered_of_a_cluster_that_is_forgotten() -> None:
    bench = Bench(always(Plan(stages=(makes("one"),))))
    there = A._replace(cluster="east")
    bench.reconciler._remember(there, [Written(there, "uid", 1)])
    bench.reconciler._remember(A, [Written(there, "uid", 1), Written(A, "uid", 2)])

    bench.reconciler.forget_cluster("east")
    bench.attempt()

    assert [one.ref for one in bench.caught_up.written] == [A]
    bench.reconciler.forget(A)
    bench.attempt()
    assert not bench.caught_up.written


# Reports with a minimal interval


def test_a_report_is_made_at_most_once_in_its_interval() -> None:
    report = Stage("report", makes("report").actions, min_interval=timedelta(seconds=10))
    bench = Bench(always(Plan(stages=(makes("one"), report))))

    bench.attempt()
    assert bench.performed == ["one", "report"]
    bench.now += timedelta(seconds=4)
    bench.attempt()
    assert bench.performed == ["one"]
    assert ("add_after", 6) in bench.queue.calls, "the key is requeued for the report"
    bench.now += timedelta(seconds=6)
    bench.attempt()
    assert bench.performed == ["one", "report"]


def test_a_report_that_was_refused_does_not_wait() -> None:
    report = Stage("report", makes("report").actions, min_interval=timedelta(seconds=10))
    bench = Bench(always(Plan(stages=(report,))))
    bench.refused["report"] = Conflict("changed")
    bench.attempt()
    del bench.refused["report"]

    bench.attempt()

    assert bench.performed == ["report"]


def test_a_clock_that_is_set_back_holds_up_no_report() -> None:
    report = Stage("report", makes("report").actions, min_interval=timedelta(seconds=10))
    bench = Bench(always(Plan(stages=(report,))))
    bench.attempt()
    bench.now -= timedelta(hours=1)

    bench.attempt()

    assert bench.performed == ["report"]


# Follows


def follow(name: str) -> Follow:
    return Follow(kind=SECRET, names=(name,))


def test_a_key_follows_what_its_last_reconcile_asked_for() -> None:
    asked = [(follow("one"),), (follow("two"),), ()]

    def queries(view: Obj, answers: Answers) -> tuple[Query, ...]:
        return tuple(one for one in asked[0] if one not in answers)

    bench = Bench(queries=queries)
    for expected in ({follow("one")}, {follow("two")}, set()):
        bench.attempt()
        assert bench.follows.of[A] == expected
        asked.pop(0)


def test_a_key_follows_a_kind_before_it_is_listed() -> None:
    """A change between the list and the end of the reconcile would be lost otherwise."""
    bench = Bench(queries=lambda view, answers: tuple({follow("one")} - set(answers.known)))
    seen: list[set[Follow]] = []

    def listed(effect: Ask) -> Any:
        seen.append(set(bench.follows.of[A]))
        return {query: Absent() for query in effect.queries}

    bench.replies[Ask] = listed
    bench.attempt()

    assert seen == [{follow("one")}]


def test_a_key_follows_what_it_asked_for_although_the_reconcile_failed() -> None:
    bench = Bench(queries=lambda view, answers: (follow("one"),))

    def fail(effect: Ask) -> Any:
        raise CacheNotSynced("not yet")

    bench.replies[Ask] = fail
    bench.attempt()

    assert bench.follows.of[A] == {follow("one")}


def test_changes_name_the_version_they_were_decided_on() -> None:
    bench = Bench()
    view = bench.cluster.get(A)

    assert change(view, {"data": {}}).version == meta.resource_version(view)


def test_one_that_replaces_another_waits_for_what_that_one_wrote_to_the_end() -> None:
    old, new = Bench(always(Plan(stages=(makes("one"),)))), Bench(always(NOTHING))
    new.reconciler = new.replacing(old)
    old.attempt()

    new.attempt()

    assert [written.ref.name for written in new.caught_up.written] == ["one"]
    new.attempt()
    assert new.caught_up.written == ()
