"""
One reconcile, without I/O.

A reconcile catches up with the caches, gathers a view, asks what the controller
queries, plans, performs the plan stage by stage, and requeues the key. It is a
generator: each effect that it yields is something that only a driver can do, and
the driver sends the reply back or throws the error. The worker of the runtime
drives it with a cluster, the simulator with clusters in memory, `explain` drives
the planning alone. What follows from a failure is decided here:

    Conflict, AlreadyExists,     requeued with backoff, at most a second for
    NotFound on one action       the first conflicts, and five minutes for a
                                 write that keeps conflicting; the object in
                                 question is read live first
    a replica that leads no      requeued with backoff
    more, a cache that is not
    synced
    a webhook that is busy       requeued after the time it asks for, or with
                                 a backoff from a second to five minutes
    an invalid spec              reported on the object; terminal until
                                 something in its view changes
    unreachable, 403, 422,       reported on the object; requeued with
    429, 5xx, a failed webhook   backoff, spread over those that fail together
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from msgspec import structs

from lamina.core.model.conflict_backoff import ConflictBackoff
from lamina.core.model.controller import Controller, decide
from lamina.core.model.effects import (
    Ask,
    Attempt,
    CatchUp,
    Complaint,
    Effect,
    Outcome,
    Perform,
    Performed,
    RefusedAction,
    Result,
    Written,
)
from lamina.core.model.plan import Action, Apply, Emit, Plan
from lamina.core.model.queries import Answer, Follow, Query
from lamina.core.model.query_rounds import decided
from lamina.core.model.world import World
from lamina.errors import (
    ApiError,
    CacheNotSynced,
    HookError,
    LaminaError,
    PlanFailed,
    SpecError,
)
from lamina.objects.types import Ref

View = TypeVar("View")
Value = TypeVar("Value")
Wanted = TypeVar("Wanted")

_REMEMBERED = 1024
_BUSY_BASE_DELAY, _BUSY_MAX_DELAY = timedelta(seconds=1), timedelta(minutes=5)
_NONE = timedelta(0)


class Requeuer(Protocol):
    """The part of a workqueue that a reconcile uses."""

    def add_after(self, key: Ref, delay: timedelta) -> None: ...

    def appoint(self, key: Ref, delay: timedelta) -> None: ...

    def retry(
        self,
        key: Ref,
        *,
        base_delay: timedelta | None = None,
        max_delay: timedelta | None = None,
        spread: bool = False,
    ) -> timedelta: ...

    def reset_backoff(self, key: Ref) -> None: ...


class FollowIndex(Protocol):
    """What keys follow beyond the watches of their controller."""

    @property
    def keys(self) -> Iterable[Ref]: ...

    def extend(self, ref: Ref, follows: Iterable[Follow]) -> None: ...

    def set(self, ref: Ref, follows: Iterable[Follow]) -> None: ...


def planning(
    controller: Controller[View],
    view: View,
    now: Callable[[], datetime],
    asking: Callable[[Sequence[Query]], None] = lambda queries: None,
) -> Generator[Ask, Mapping[Query, Answer], Plan]:
    """
    Return the plan that a controller makes of a view, and yield what it has to know first, round by round.

    `asking` is called with the queries of each round before they are answered.
    """
    return decided(lambda answers: decide(controller, view, answers, now()), controller.name, asking)


def performing(plan: Plan) -> Generator[Perform, Sequence[Performed], Outcome]:
    """
    Return the outcome of a plan, and yield its stages.

    All actions of a stage are performed, whatever fails. The next stage starts
    only if none was refused, unless it is marked `run_after_failure`. Nothing is
    retried here: a refused write usually means that the plan was made from a
    stale view, and the cure for that is a new plan.
    """
    done: list[Action] = []
    written: list[Written] = []
    refused: list[RefusedAction] = []
    for stage in plan.stages:
        if refused and not stage.run_after_failure:
            continue
        results = yield Perform(plan, stage.actions)
        for action, result in zip(stage.actions, results, strict=True):
            if isinstance(result, LaminaError):
                if not _is_optional(action, result):
                    refused.append(RefusedAction(action, result))
            elif result:
                done.append(action)
                written += result
    return Outcome(tuple(done), tuple(written), tuple(refused))


def _is_optional(action: Action, error: LaminaError) -> bool:
    """Say whether a plan goes on although the server refused an action."""
    return isinstance(error, ApiError) and (
        isinstance(action, Emit) or (isinstance(action, Apply) and action.optional)
    )


def drive(steps: Generator[Wanted, Any, Value], perform: Callable[[Wanted], object]) -> Value:
    """Run a reconcile with a driver that never waits."""
    with closing(steps):
        try:
            effect = next(steps)
            while True:
                try:
                    reply = perform(effect)
                except LaminaError as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(reply)
        except StopIteration as ended:
            value: Value = ended.value
            return value


class Reconciler(Generic[View]):
    """
    Reconciles the keys of one controller, and remembers between reconciles what it wrote for each.

    `is_visible` says whether writes are in the caches already. With `strict`, an
    error that would be reported on the object is raised. One that replaces another
    shares its memory, to which reconciles that are still in progress add.
    """

    def __init__(
        self,
        controller: Controller[View],
        *,
        world: World,
        queue: Requeuer,
        follows: FollowIndex,
        now: Callable[[], datetime],
        is_visible: Callable[[Collection[Written]], bool] = lambda written: False,
        strict: bool = False,
        replaces: Reconciler[Any] | None = None,
    ) -> None:
        self.controller = controller
        self._world, self._queue, self._follows, self._now = world, queue, follows, now
        self._is_visible, self._strict = is_visible, strict
        self._written: dict[Ref, dict[Ref, Written]] = {}
        self._outdated: dict[Ref, Collection[Ref]] = {}
        self._next_report: dict[Ref, datetime] = {}
        """When a stage that has a minimal interval may run again."""
        self._conflicts = ConflictBackoff()
        if replaces is not None:
            self._written, self._outdated = replaces._written, replaces._outdated
            self._next_report = replaces._next_report

    def attempt(self, ref: Ref) -> Generator[Effect, Any, Attempt]:
        """Reconcile a key once, requeue it as the outcome demands, and return what it came to."""
        if self.controller.period is not None and self._world.get(ref) is not None:
            self._queue.add_after(ref, self.controller.period)
        this = _Progress()
        try:
            yield from self._reconcile(ref, this)
        except LaminaError as error:
            conflicts = self._conflicts.count(ref, error)
            result, complaint = yield from self._after_failure(ref, error)
            return this.ended(result, error, complaint, conflicts)
        self._conflicts.count(ref, None)
        self._queue.reset_backoff(ref)
        again = this.plan.requeue_after if this.plan is not None else None
        if again is None:
            return this.ended(Result.SUCCESS)
        self._queue.add_after(ref, again)
        return this.ended(Result.REQUEUE_AFTER)

    def forget(self, ref: Ref) -> None:
        """Drop everything that is remembered of a key."""
        self._follows.set(ref, ())
        self._conflicts.forget(ref)
        for known in (self._written, self._outdated, self._next_report):
            known.pop(ref, None)

    def forget_cluster(self, cluster: str) -> None:
        """Drop everything that is remembered of a cluster: another one may take its name."""
        known: tuple[Iterable[Ref], ...] = (
            self._follows.keys,
            self._written,
            self._outdated,
            self._next_report,
            self._conflicts.keys,
        )
        for ref in {ref for refs in known for ref in refs if ref.cluster == cluster}:
            self.forget(ref)
        for writes in self._written.values():
            for ref in [ref for ref in writes if ref.cluster == cluster]:
                del writes[ref]
        for key, outdated in self._outdated.items():
            self._outdated[key] = [ref for ref in outdated if ref.cluster != cluster]

    def _reconcile(self, ref: Ref, this: _Progress) -> Generator[Effect, Any, None]:
        written, outdated = self._written.get(ref, {}), self._outdated.get(ref, ())
        yield CatchUp(ref.cluster, tuple(written.values()), outdated)
        # Dropped only once the caches have caught up: a cluster that could not be reached is asked again.
        self._written.pop(ref, None)
        self._outdated.pop(ref, None)
        view = self.controller.gather(self._world, ref)
        if view is None:
            self._follows.set(ref, ())
            return
        this.has_view = True
        this.plan = plan = yield from self._plan(ref, view)
        if plan.appointment is not None:
            # It stands, whatever the outcome of the plan.
            self._queue.appoint(ref, plan.appointment)
        this.plan = plan = self._without_early_reports(ref, plan)
        this.outcome = outcome = yield from performing(plan)
        self._remember(ref, outcome.written)
        self._note_reports(ref, plan, outcome)
        if outcome.refused:
            self._outdated[ref] = [one.action.ref for one in outcome.refused if one.is_outdated]
            raise _plan_failed(plan, outcome)
        if plan.failure is not None:
            raise plan.failure

    def _plan(self, ref: Ref, view: View) -> Generator[Ask, Mapping[Query, Answer], Plan]:
        followed: set[Follow] = set()

        def follow(queries: Sequence[Query]) -> None:
            follows = [query for query in queries if isinstance(query, Follow)]
            followed.update(follows)
            self._follows.extend(ref, follows)

        try:
            return (yield from planning(self.controller, view, self._now, asking=follow))
        finally:
            # Also after a failure: what the key waits for may be a change to what it follows.
            self._follows.set(ref, followed)

    def _after_failure(
        self, ref: Ref, error: LaminaError
    ) -> Generator[Effect, Any, tuple[Result, Complaint | None]]:
        """Report an error and requeue the key, as far as the error demands either."""
        queue, complaint = self._queue, None
        match error:
            case PlanFailed(serious=None):
                queue.retry(ref, max_delay=self._conflicts.max_delay(ref))
                return Result.REQUEUE, None
            case CacheNotSynced():
                queue.retry(ref)
                return Result.REQUEUE, None
            case HookError(after=float() | int() as after):
                if after > 0:
                    queue.add_after(ref, timedelta(seconds=after))
                else:
                    queue.retry(ref, base_delay=_BUSY_BASE_DELAY, max_delay=_BUSY_MAX_DELAY)
                return Result.REQUEUE_AFTER, None
            case SpecError():
                complaint = yield from self._complain(ref, error)
                queue.reset_backoff(ref)
                return Result.TERMINAL, complaint
            case _:
                serious = error.serious if isinstance(error, PlanFailed) else error
                assert serious is not None, "a plan that failed for transient reasons is handled above"
                complaint = yield from self._complain(ref, serious)
                queue.retry(ref, spread=True)
                return Result.ERROR, complaint

    def _complain(self, ref: Ref, error: LaminaError) -> Generator[Effect, Any, Complaint]:
        """Report an error on the object, as its controller does it."""
        if self._strict:
            raise error
        try:
            plan = self.controller.complain(self._world, ref, error, self._now())
            outcome = yield from performing(plan)
        except LaminaError as unreported:
            return Complaint(error, unreported=unreported)
        self._remember(ref, outcome.written)
        return Complaint(error, outcome)

    def _remember(self, ref: Ref, written: Iterable[Written]) -> None:
        if not written:
            return
        self._written[ref] = {**self._written.pop(ref, {}), **{one.ref: one for one in written}}
        # Keys that are not reconciled again: once their writes are visible there is nothing to wait for.
        while len(self._written) > _REMEMBERED:
            oldest = next(iter(self._written))
            if not self._is_visible(self._written[oldest].values()):
                break
            del self._written[oldest]

    def _without_early_reports(self, ref: Ref, plan: Plan) -> Plan:
        """Leave out a report that its minimal interval does not allow yet, and requeue the key for it."""
        interval, now = _min_interval(plan), self._now()
        due = self._next_report.get(ref, now)
        # After the clock was set back, no report waits longer than its interval.
        if not interval or now >= due or due - now > interval:
            return plan
        self._queue.add_after(ref, due - now)
        return structs.replace(plan, stages=tuple(stage for stage in plan.stages if not stage.min_interval))

    def _note_reports(self, ref: Ref, plan: Plan, outcome: Outcome) -> None:
        """Note when the next report is allowed; one that was refused is retried like any other write."""
        interval = _min_interval(plan)
        if not interval:
            return
        self._next_report.pop(ref, None)
        reports = [action for stage in plan.stages if stage.min_interval for action in stage.actions]
        if not any(one.action in reports for one in outcome.refused):
            self._next_report[ref] = self._now() + interval
        while len(self._next_report) > _REMEMBERED:
            del self._next_report[next(iter(self._next_report))]


class _Progress:
    """How far a reconcile has come."""

    __slots__ = ("has_view", "outcome", "plan")

    def __init__(self) -> None:
        self.has_view = False
        self.plan: Plan | None = None
        self.outcome = Outcome()

    def ended(
        self,
        result: Result,
        failure: LaminaError | None = None,
        complaint: Complaint | None = None,
        conflicts: int = 0,
    ) -> Attempt:
        return Attempt(
            result=result,
            has_view=self.has_view,
            plan=self.plan,
            outcome=self.outcome,
            failure=failure,
            complaint=complaint,
            conflicts=conflicts,
        )


def _plan_failed(plan: Plan, outcome: Outcome) -> PlanFailed:
    more = (plan.failure,) if plan.failure is not None else ()
    return PlanFailed(
        [*(one.error for one in outcome.refused), *more],
        [*(one.action.ref for one in outcome.refused), *(None for _ in more)],
        [*(one.is_transient for one in outcome.refused), *(False for _ in more)],
        [*(one.verb for one in outcome.refused), *("" for _ in more)],
    )


def _min_interval(plan: Plan) -> timedelta:
    return max((stage.min_interval for stage in plan.stages), default=_NONE)
