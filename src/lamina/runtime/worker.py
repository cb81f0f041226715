"""
The reconcile loop; there is one.

Gather, ask, plan, execute. It has not heard of what any plan is for. What
becomes of a failure is decided in one place:

    Conflict, AlreadyExists,     a new plan, soon, after a real look at
    NotFound on one action       whatever was in the way
    a webhook that is busy,      another try, when it asked for one, or
    a look that is not over      shortly; nobody is at fault
    a spec without a meaning     said on the object, and no further try
                                 until something in its view changes
    nobody answers, 403, 422,    said on the object, and another try,
    429, 5xx                     later each time
    anything else                our bug: logged with its traceback, and
                                 another try, later each time
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from time import monotonic
from typing import Generic, Protocol, TypeVar

from msgspec import structs

from lamina.clock import Clock
from lamina.core.controller import Controller, Watch, decide
from lamina.core.plan import Plan, is_outdated
from lamina.core.questions import Answer, Answers, Follow, Listed, Question
from lamina.core.world import Change
from lamina.errors import (
    Conflict,
    HookError,
    LaminaError,
    NotLeading,
    NotSeenYet,
    PlanFailed,
    SpecError,
)
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.runtime.asker import Asker
from lamina.runtime.executor import Executor, Refused, Written
from lamina.runtime.informer import Informer
from lamina.runtime.interests import Interests
from lamina.runtime.memory import Shelf
from lamina.runtime.meter import Meter
from lamina.runtime.queue import Closed, Queue
from lamina.runtime.shares import Shares
from lamina.runtime.sight import Sight
from lamina.runtime.subscriptions import Hear

View = TypeVar("View")

_ROUNDS = 32
_REMEMBERED = 1024
_FIRST_LOOK = 5.0
_OVERTAKEN = timedelta(seconds=1)
_BUSY_SOONEST, _BUSY_LATEST = timedelta(seconds=1), timedelta(minutes=5)


class Follower(Protocol):
    """Who has a kind followed on a worker's behalf."""

    def __call__(self, follow: Follow) -> Informer: ...


class Lead(Protocol):
    """Who knows whether an owner is this replica's to work for."""

    def holds(self, uid: str) -> bool: ...


class Worker(Generic[View]):
    """Runs one controller, one key at a time and several keys at once."""

    def __init__(
        self,
        controller: Controller[View],
        *,
        sight: Sight,
        asker: Asker,
        executor: Executor,
        clock: Clock,
        log: Logger,
        follow: Follower | None = None,
        lead: Lead | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter or Meter()
        self.controller, self.sight = controller, sight
        self.queue: Queue[Ref] = Queue(clock, meter=self.meter, crowd=lambda ref: ref.cluster)
        self.interests = Interests()
        self._asking: list[set[Follow]] = []
        self._asker, self._executor, self._clock = asker, executor, clock
        self._follow, self._lead = follow, lead
        self._log = log.bind(controller=controller.name)
        self._shares = Shares(max(1, controller.at_once)) if sight.is_wide else None
        self._written: dict[Ref, Sequence[Written]] = {}
        self._doubted: dict[Ref, Sequence[Ref]] = {}
        self._reports: dict[Ref, datetime] = {}
        """From when on a report that can wait may be made again."""

    def listener(self, watch: Watch) -> Hear:
        """Return whom to tell about the changes that one watch of the controller sees."""

        def hear(change: Change) -> None:
            for ref in watch.concerns(self.sight.world, change):
                self.queue.add_later(ref, watch.delay)

        return hear

    def overhear(self, change: Change) -> None:
        """Take note of a change to something that a key asked to follow."""
        for ref in self.interests.concerned(change):
            self.queue.add(ref)

    async def run(self) -> None:
        """Work until the queue is closed; several of these may run side by side."""
        while True:
            try:
                ref = await self.queue.take()
            except Closed:
                return
            if self._shares is not None and not self._shares.take(ref):
                self.queue.done(ref)
                continue
            began, bindings = monotonic(), self.sight.bindings
            try:
                result = await self._attempt(ref)
                self.meter.worked(result, monotonic() - began)
            finally:
                if not self.sight.are_still((ref.cluster,), bindings):
                    self._forget(ref)
                self.queue.done(ref)
                if self._shares is not None and (waiting := self._shares.give_back(ref)) is not None:
                    self.queue.add(waiting)
            # A server in the same process may answer without ever making us wait;
            # whoever else wants to be served has a turn here.
            await asyncio.sleep(0)

    def forget(self, cluster: str) -> None:
        """Know nothing more of what was done and wanted on a cluster: if there is one of that name again, it is new."""
        known: tuple[Iterable[Ref], ...] = (self.interests.keys, self._written, self._doubted, self._reports)
        for ref in {ref for refs in known for ref in refs if ref.cluster == cluster}:
            self._forget(ref)
        self.meter.lost(cluster)
        for key, written in self._written.items():
            self._written[key] = [write for write in written if write.ref.cluster != cluster]
        for key, doubted in self._doubted.items():
            self._doubted[key] = [ref for ref in doubted if ref.cluster != cluster]

    def _forget(self, ref: Ref) -> None:
        self.interests.set(ref, ())
        self.meter.stands(ref, {})
        for known in (self._written, self._doubted, self._reports):
            known.pop(ref, None)

    async def take_leave(self) -> None:
        """Do what is done once a controller has stopped for good."""
        plan = self.controller.farewell(self._clock.now())
        try:
            await self._executor.run(plan, allowed=lambda: self._leads_all)
        except LaminaError as unheard:
            self._log.debug("farewell not heard", because=str(unheard))

    @property
    def _leads_all(self) -> bool:
        return self._lead is None or self._lead.holds(self.controller.name)

    async def reconcile(self, ref: Ref) -> timedelta | None:
        """Take one step, and return when to look again."""
        await self._catch_up(ref)
        # What is found out and done from now on is about the clusters that have their names now.
        then, asker = self.sight.bindings, self._asker.as_of_now()
        view = self.controller.gather(self.sight.world, ref)
        if view is None:
            self.meter.stands(ref, {})
            self.interests.set(ref, ())
            return None
        plan = await self._plan(ref, view, asker)
        self.meter.stands(ref, plan.progress)
        if plan.appointment is not None:
            # It stands whatever becomes of the plan.
            self.queue.appoint(ref, plan.appointment)
        await self._carry_out(ref, plan, then)
        return plan.look_again

    @property
    def follows(self) -> Iterator[Follow]:
        """Yield what keys asked to follow, in their last pass or in the one they are in."""
        yield from self.interests
        yield from chain.from_iterable(self._asking)

    async def _plan(self, ref: Ref, view: View, asker: Asker) -> Plan:
        """Put the controller's questions, round by round, until it has no more and there is a plan."""
        answers, followed = Answers(), set[Follow]()
        self._asking.append(followed)
        try:
            for _ in range(_ROUNDS):
                decided = decide(self.controller, view, answers, self._clock.now())
                if isinstance(decided, Plan):
                    return decided
                answers = answers | await self._ask(decided, followed, asker)
        finally:
            # Interested from the first pass on, failed or not: what it waits for may be what comes.
            self.interests.set(ref, followed)
            self._asking = [one for one in self._asking if one is not followed]
        raise AssertionError(f"{self.controller.name} never stops asking about {ref}")

    async def _ask(
        self, asked: Sequence[Question], followed: set[Follow], asker: Asker
    ) -> Mapping[Question, Answer]:
        follows = [question for question in asked if isinstance(question, Follow)]
        followed.update(follows)
        answers: dict[Question, Answer] = {follow: await self._seen(follow) for follow in follows}
        others = [question for question in asked if not isinstance(question, Follow)]
        return {**answers, **(await asker.ask(others) if others else {})}

    async def _seen(self, follow: Follow) -> Answer:
        assert self._follow is not None, "whoever runs this worker lets nobody follow anything"
        informer = self._follow(follow)
        try:
            async with asyncio.timeout(_FIRST_LOOK):
                await informer.settled.wait()
        except TimeoutError:
            raise NotSeenYet(f"{follow.kind.plural} have not been seen in full yet") from None
        if informer.has_ended:
            raise NotSeenYet(f"{follow.kind.plural} are not looked at any more")
        return Listed(tuple(_matching(informer.shelf, follow)))

    async def _catch_up(self, ref: Ref) -> None:
        await self.sight.settled(ref.cluster)
        # Forgotten once it can be seen: whoever could not be asked is asked again.
        if written := self._written.get(ref):
            await self.sight.caught_up(written)
        self._written.pop(ref, None)
        if doubted := self._doubted.get(ref):
            await self.sight.look(doubted)
        self._doubted.pop(ref, None)

    def _unhurried(self, ref: Ref, plan: Plan) -> Plan:
        """Leave out a report that comes too soon after the last one; the key comes round when it is time for it."""
        patience, now = _patience(plan), self._clock.now()
        due = self._reports.get(ref, now)
        # A clock that was set back makes nobody wait for longer.
        if not patience or now >= due or due - now > patience:
            return plan
        self.queue.add_later(ref, due - now)
        return structs.replace(plan, stages=tuple(stage for stage in plan.stages if not stage.patience))

    def _reported(self, ref: Ref, plan: Plan, refused: Sequence[Refused]) -> None:
        """Note when the next report may come, unless this one was refused: that is tried again like anything else."""
        patience = _patience(plan)
        if not patience:
            return
        self._reports.pop(ref, None)
        reports = [action for stage in plan.stages if stage.patience for action in stage.actions]
        if not any(one.action in reports for one in refused):
            self._reports[ref] = self._clock.now() + patience
        while len(self._reports) > _REMEMBERED:
            del self._reports[next(iter(self._reports))]

    async def _carry_out(self, ref: Ref, plan: Plan, then: Mapping[str, object]) -> None:
        plan = self._unhurried(ref, plan)
        if not plan.stages:
            if plan.failure is not None:
                raise plan.failure
            return
        outcome = await self._executor.run(plan, allowed=self._leave(ref, plan, then))
        self._remember(
            ref, [one for one in outcome.written if self.sight.are_still((one.ref.cluster,), then)]
        )
        self._reported(ref, plan, outcome.refused)
        if outcome.refused:
            self._doubted[ref] = [one.action.ref for one in outcome.refused if _is_outdated(one)]
            more = (plan.failure,) if plan.failure is not None else ()
            raise PlanFailed(
                [*(one.error for one in outcome.refused), *more],
                [*(one.action.ref for one in outcome.refused), *(None for _ in more)],
                [*(_is_nobodys_fault(one) for one in outcome.refused), *(False for _ in more)],
            )
        self._log.info("step taken", object=str(ref), because=plan.because)
        if plan.failure is not None:
            raise plan.failure

    def _leave(self, ref: Ref, plan: Plan, then: Mapping[str, object]) -> Callable[[], bool]:
        """Return who says whether a plan is to be carried out still, and on the clusters it was made for."""
        clusters = {ref.cluster, *(action.ref.cluster for stage in plan.stages for action in stage.actions)}
        return lambda: self._leads(ref) and self.sight.are_still(clusters, then)

    def _leads(self, ref: Ref) -> bool:
        """Say whether this replica is to work on a key now."""
        if self._lead is None:
            return True
        owner = self.sight.world.get(ref)
        return self._lead.holds(meta.uid(owner) if owner is not None else str(ref))

    async def _attempt(self, ref: Ref) -> str:
        """Take one step, see to whatever comes of it, and return what that is called where it is counted."""
        if not self._leads(ref) or self.sight.is_lost(ref.cluster):
            # Whoever gains its shard, or its cluster, looks at all of it.
            self.queue.forgive(ref)
            return "success"
        if self.controller.period is not None and self.sight.world.get(ref) is not None:
            self.queue.add_later(ref, self.controller.period)
        try:
            again = await self.reconcile(ref)
        except PlanFailed as failed:
            serious = failed.serious
            if serious is not None:
                await self._complain(ref, serious)
            else:
                self._log.debug("plan outdated", object=str(ref), because=str(failed))
            # Many who write one object overtake each other. Some of them get through each time,
            # so nobody has to wait as long as where something is broken.
            overtaken = all(isinstance(one, Conflict) for one in failed.failures) and serious is None
            self.queue.retry(ref, latest=_OVERTAKEN if overtaken else None, spread=serious is not None)
            return "error" if serious is not None else "requeue"
        except NotSeenYet as early:
            self._log.debug("not seen yet", object=str(ref), because=str(early))
            self.queue.retry(ref)
            return "requeue"
        except SpecError as senseless:
            await self._complain(ref, senseless)
            self.queue.forgive(ref)
            return "terminal"
        except HookError as failed:
            await self._bear_with(ref, failed)
            return "error" if failed.after is None else "requeue_after"
        except LaminaError as error:
            await self._complain(ref, error)
            self.queue.retry(ref, spread=True)
        except Exception:
            self._log.exception("reconciling failed by a mistake of ours", object=str(ref))
            self.queue.retry(ref, spread=True)
            return "panic"
        else:
            self.queue.forgive(ref)
            if again is None:
                return "success"
            self.queue.add_later(ref, again)
            return "requeue_after"
        return "error"

    async def _bear_with(self, ref: Ref, failed: HookError) -> None:
        if failed.after is None:
            await self._complain(ref, failed)
            self.queue.retry(ref, spread=True)
            return
        self._log.debug("asked to wait", object=str(ref), because=str(failed))
        if failed.after > 0:
            self.queue.add_later(ref, timedelta(seconds=failed.after))
        else:
            # It did not say how long, and must not be pestered.
            self.queue.retry(ref, soonest=_BUSY_SOONEST, latest=_BUSY_LATEST)

    async def _complain(self, ref: Ref, error: LaminaError) -> None:
        self._log.warning("step failed", object=str(ref), because=str(error))
        try:
            plan = self.controller.complain(self.sight.world, ref, error, self._clock.now())
            leave = self._leave(ref, plan, self.sight.bindings)
            outcome = await self._executor.run(plan, allowed=leave)
        except LaminaError as unheard:
            self._log.debug("complaint not heard", object=str(ref), because=str(unheard))
            return
        known = [write for write in self._written.get(ref, ()) if not self.sight.has_seen((write,))]
        self._remember(ref, [*known, *outcome.written])

    def _remember(self, ref: Ref, written: Sequence[Written]) -> None:
        if written:
            self._written.pop(ref, None)
            self._written[ref] = written
        # Keys that were never taken again: once what they wrote can be seen, there is nothing to wait for.
        while len(self._written) > _REMEMBERED and self.sight.has_seen(next(iter(self._written.values()))):
            del self._written[next(iter(self._written))]


def _matching(shelf: Shelf, follow: Follow) -> Iterator[Obj]:
    """Yield what is remembered that matches: those that are named by their names, others by looking at all."""
    namespaces = follow.namespaces if follow.kind.namespaced else ("",)
    there: Iterable[Obj | None]
    if follow.names is not None and namespaces is not None:
        names = dict.fromkeys(follow.names)
        there = (shelf.get(place, name) for place in dict.fromkeys(namespaces) for name in names)
    else:
        places: Sequence[str | None] = namespaces if namespaces is not None else (None,)
        there = (obj for place in places for obj in shelf.every(place))
    yield from (obj for obj in there if obj is not None and follow.matches(obj))


def _patience(plan: Plan) -> timedelta:
    return max((stage.patience for stage in plan.stages), default=timedelta(0))


def _is_outdated(refused: Refused) -> bool:
    return is_outdated(refused.action, refused.error)


def _is_nobodys_fault(refused: Refused) -> bool:
    return _is_outdated(refused) or isinstance(refused.error, NotLeading | NotSeenYet)
