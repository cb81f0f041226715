"""
One process at its desk: controllers at work on a cluster on paper.

Gather, ask, plan, carry out, with the real functions of the controllers and
what becomes of failures decided as the one loop decides it. Nothing waits: a
key whose turn is later is taken when somebody has wound the clock that far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct, field

from lamina.core.controller import AnyController, Source, Watch, decide
from lamina.core.plan import Action, Plan, is_outdated
from lamina.core.questions import Answer, Answers, Follow, Listed, Question, asked_of
from lamina.core.world import Change, everything
from lamina.errors import (
    HookError,
    LaminaError,
    PlanFailed,
    SpecError,
)
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.paper.cluster import Paper
from lamina.paper.horizon import Horizon, Worlds
from lamina.paper.passes import Choose, Key, Pass
from lamina.paper.sight import Informer, Subject
from lamina.paper.turns import Turns, first
from lamina.runtime.interests import Interests
from lamina.runtime.memory import Gone, Memory
from lamina.runtime.subscriptions import named

_ROUNDS = 32
_BUSY_SOONEST, _BUSY_LATEST = timedelta(seconds=1), timedelta(minutes=5)


class _Seat(Struct):
    """One controller at work."""

    controller: AnyController
    worlds: Worlds
    names: frozenset[str]
    """The clusters that it knows by name."""
    interests: Interests = field(default_factory=Interests)
    introduced: bool = False


class _Room(Struct):
    """Where one source looks."""

    source: Source
    worlds: Worlds


class Desk:
    """
    Runs controllers, and those that come from sources, against one cluster on paper, and others by name.

    It begins with nothing remembered: leaving one desk and sitting down at
    another is a crash and a restart. With `hurried`, pauses between tries are
    over at once, and what goes wrong is raised. `knows` says which kinds are to
    be looked at, `seen` what there is of a kind when it first looks, and `gone`
    is what is known of those whose end was seen.
    """

    def __init__(
        self,
        paper: Paper,
        controllers: Iterable[AnyController] = (),
        sources: Iterable[Source] = (),
        *,
        others: Mapping[str, Paper] | None = None,
        hurried: bool = False,
        knows: Callable[[Kind], bool] = lambda kind: True,
        seen: Callable[[Kind], Iterable[Obj]] | None = None,
        gone: Gone | None = None,
    ) -> None:
        self.paper = paper
        self.turns: Turns[Key] = Turns(hurried=hurried)
        self.horizon = Horizon(
            paper,
            others or {},
            knows=knows,
            seen=seen or paper.listed,
            gone=gone or Gone(),
            changed=self._stir,
        )
        self.sight = self.horizon.home.sight
        self.passes: list[Pass] = []
        """What was done that changed something or went wrong; emptied by whoever reads it."""
        self.before_write: Callable[[Key, Action], None] = lambda key, action: None
        self.after_write: Callable[[Key, Action], None] = lambda key, action: None
        self._hurried = hurried
        self._fixed = {one.name: one for one in controllers}
        self._rooms = [_Room(one, self.horizon.worlds()) for one in sources]
        self._seats: dict[str, _Seat] = {}
        self._written: dict[Key, list[tuple[str, GroupKind, int]]] = {}
        """On which cluster, of what kind, up to which version."""
        self._doubted: dict[Key, list[Ref]] = {}
        self._stirred = True
        self._arrange()

    def leave(self) -> None:
        """Work no more, and hear of nothing any more."""
        self.horizon.leave()

    def bind(self, cluster: str, paper: Paper) -> None:
        """Have controllers look at another cluster, too."""
        self.horizon.bind(cluster, paper)
        self.look_at_everything()

    def unbind(self, cluster: str) -> None:
        """Have nobody look at a cluster any more."""
        self.horizon.unbind(cluster)
        self.look_at_everything()

    @property
    def controllers(self) -> tuple[AnyController, ...]:
        """Return who runs."""
        return tuple(seat.controller for seat in self._seats.values())

    @property
    def is_idle(self) -> bool:
        """Say whether there is nothing to do but wait."""
        return not self._stirred and not self.turns

    @property
    def due(self) -> datetime | None:
        """Return when there is something to do again, if nothing is heard before."""
        return self.turns.next

    def world(self, watches: Iterable[Watch]) -> Memory:
        """Return what these watches see from here."""
        worlds = self.horizon.worlds()
        self.horizon.look(worlds, [(watch, None) for watch in watches])
        return worlds.home

    def look_at_everything(self) -> None:
        """Have every controller look at all there is, as if it had just come."""
        for seat in self._seats.values():
            seat.introduced = False
        self._stirred = True

    def step(self, choose: Choose = first) -> bool:
        """Do one thing, if there is one to do, and say whether there was."""
        if self._stirred:
            self._arrange()
        if not self.turns:
            return False
        key = self.turns.take(choose)
        seat = self._seats.get(key.controller)
        if seat is not None and not self._is_lost(seat, key.ref.cluster):
            self._attempt(seat, key)
        return True

    def _is_lost(self, seat: _Seat, cluster: str) -> bool:
        """Say whether this is a cluster that was seen because it was there, and is there no more."""
        return not self.horizon.has(cluster) and cluster not in seat.names

    # ── what is heard ──

    def _arrange(self) -> None:
        """Have exactly the controllers run that there should be, and hear of everything that they watch."""
        self._stirred = False
        if self.horizon.refresh():
            for seat in self._seats.values():
                seat.introduced = seat.introduced and not seat.controller.minds_kinds
        for room in self._rooms:
            self.horizon.look(room.worlds, [(watch, self._stir) for watch in room.source.watches])
        self._employ()
        for seat in list(self._seats.values()):
            watches = seat.controller.watches
            self.horizon.look(seat.worlds, [(watch, partial(self._noted, seat, watch)) for watch in watches])
            for follow in set(seat.interests):
                self._overhear(seat, follow)
        for seat in self._seats.values():
            if not seat.introduced:
                seat.introduced = True
                self._introduce(seat)

    def _stir(self, change: Change | None = None) -> None:
        self._stirred = True

    def _employ(self) -> None:
        should = dict(self._fixed)
        for room in self._rooms:
            should |= {one.name: one for one in room.source.controllers(room.worlds.home)}
        for name, seat in list(self._seats.items()):
            if name not in should or should[name].edition != seat.controller.edition:
                del self._seats[name]
                self.turns.forget(lambda key, name=name: key.controller == name)  # type: ignore[misc]
                if name not in should:
                    self._take_leave(seat.controller)
        for name, controller in should.items():
            if name not in self._seats:
                self._seats[name] = _Seat(controller, self.horizon.worlds(), named(controller.watches))

    def _take_leave(self, controller: AnyController) -> None:
        plan = controller.farewell(self.paper.now)
        for action in plan.actions:
            self.horizon.on(action.ref.cluster).paper.perform(action, controller.manager)

    def _noted(self, seat: _Seat, watch: Watch, change: Change) -> None:
        name, now = seat.controller.name, self.paper.now
        for ref in watch.concerns(seat.worlds.home, change):
            self.turns.soon(Key(name, ref), now, watch.delay)

    def _overhear(self, seat: _Seat, follow: Follow) -> None:
        def hear(change: Change) -> None:
            for ref in seat.interests.concerned(change):
                self.turns.add(Key(seat.controller.name, ref))

        self._followed(follow).listeners.append(hear)

    def _followed(self, follow: Follow) -> Informer:
        sight = self.horizon.on(follow.cluster).sight
        return sight.follow(Subject(follow.kind, everything, ""))

    def _introduce(self, seat: _Seat) -> None:
        """Tell a controller that has just come of everything there is."""
        for watch in seat.controller.watches:
            for change in self.horizon.known(watch):
                self._noted(seat, watch, change)

    # ── what is done ──

    def _attempt(self, seat: _Seat, key: Key) -> None:
        """Take one step, and see to whatever comes of it."""
        now, turns = self.paper.now, self.turns
        if seat.controller.period is not None and seat.worlds.home.get(key.ref) is not None:
            turns.add_later(key, now, seat.controller.period)
        try:
            again = self._reconcile(seat, key)
        except PlanFailed as failed:
            if (serious := failed.serious) is not None:
                self._complain(seat, key, serious)
            turns.retry(key, now)
        except SpecError as senseless:
            self._complain(seat, key, senseless)
            turns.forgive(key)
        except HookError as failed:
            self._bear_with(seat, key, failed)
        except LaminaError as error:
            self._complain(seat, key, error)
            turns.retry(key, now)
        else:
            turns.forgive(key)
            if again is not None:
                turns.add_later(key, now, again)

    def _reconcile(self, seat: _Seat, key: Key) -> timedelta | None:
        for cluster in seat.names:
            self.horizon.on(cluster)
        self._catch_up(key)
        controller = seat.controller
        view = controller.gather(seat.worlds.home, key.ref)
        if view is None:
            seat.interests.set(key.ref, ())
            return None
        plan = self._plan(seat, key.ref, view)
        if plan.appointment is not None:
            self.turns.appoint(key, self.paper.now, plan.appointment)
        self._carry_out(controller, key, plan)
        return plan.look_again

    def _plan(self, seat: _Seat, ref: Ref, view: Any) -> Plan:
        answers, followed = Answers(), set[Follow]()
        try:
            for _ in range(_ROUNDS):
                decided = decide(seat.controller, view, answers, self.paper.now)
                if isinstance(decided, Plan):
                    return decided
                known = {question: self._answer(seat, question, followed) for question in decided}
                answers = answers | known
        finally:
            seat.interests.set(ref, followed)
        raise AssertionError(f"{seat.controller.name} never stops asking about {ref}")

    def _answer(self, seat: _Seat, question: Question, followed: set[Follow]) -> Answer:
        if isinstance(question, Follow) and question not in followed:
            about = question.kind, question.cluster
            if not any((one.kind, one.cluster) == about for one in (*seat.interests, *followed)):
                self._overhear(seat, question)
            followed.add(question)
        if isinstance(question, Follow):
            # As it is remembered, like everything that is followed, and not as it is.
            seen = self._followed(question).shelf.every()
            return Listed(tuple(one for one in seen if question.matches(one)))
        return self.horizon.on(asked_of(question)).paper.answer(question)

    def _catch_up(self, key: Key) -> None:
        """See what was written for a key before, and whatever was in the way of it as it really is."""
        for cluster, kind, version in self._written.pop(key, ()):
            self.horizon.on(cluster).sight.let_go(kind, until=version)
        for ref in self._doubted.pop(key, ()):
            place, there = self.horizon.on(ref.cluster), ref._replace(cluster="")
            place.sight.look(there, place.paper.at(there))

    def _carry_out(self, controller: AnyController, key: Key, plan: Plan) -> None:
        done, refused = self._run(controller, key, plan)
        errors = [error for _, error in refused]
        moved_on = [is_outdated(action, error) for action, error in refused]
        if done or errors or plan.failure is not None:
            failure = plan.failure or (PlanFailed(errors) if errors else None)
            told = Pass(
                at=self.paper.now,
                controller=controller.name,
                ref=key.ref,
                because=plan.because,
                done=done,
                failure=failure,
                is_outdated=bool(errors) and all(moved_on) and plan.failure is None,
            )
            self.passes.append(told)
        if errors:
            self._doubted[key] = [one.ref for one, error in refused if is_outdated(one, error)]
            more = (plan.failure,) if plan.failure is not None else ()
            raise PlanFailed(
                [*errors, *more],
                [*(one.ref for one, _ in refused), *(None for _ in more)],
                [*moved_on, *(False for _ in more)],
            )
        if plan.failure is not None:
            raise plan.failure

    def _run(
        self, controller: AnyController, key: Key, plan: Plan
    ) -> tuple[tuple[Action, ...], list[tuple[Action, LaminaError]]]:
        """Perform the actions of a plan, stage by stage; a later stage starts only if nothing failed before."""
        done: list[Action] = []
        refused: list[tuple[Action, LaminaError]] = []
        for stage in plan.stages:
            if refused and not stage.even_after_failure:
                continue
            for action in stage.actions:
                self.before_write(key, action)
                ref = action.ref
                try:
                    paper = self.horizon.on(ref.cluster).paper
                    before = paper.version
                    paper.perform(action, controller.manager)
                except LaminaError as error:
                    refused.append((action, error))
                    continue
                if paper.version != before:
                    done.append(action)
                    kind = GroupKind(ref.group, ref.kind)
                    self._written.setdefault(key, []).append((ref.cluster, kind, paper.version))
                self.after_write(key, action)
        return tuple(done), refused

    def _bear_with(self, seat: _Seat, key: Key, failed: HookError) -> None:
        now = self.paper.now
        if failed.after is None:
            self._complain(seat, key, failed)
            self.turns.retry(key, now)
        elif failed.after > 0:
            self.turns.add_later(key, now, timedelta(seconds=failed.after))
        else:
            self.turns.retry(key, now, _BUSY_SOONEST, _BUSY_LATEST)

    def _complain(self, seat: _Seat, key: Key, error: LaminaError) -> None:
        if self._hurried:
            raise error
        plan = seat.controller.complain(seat.worlds.home, key.ref, error, self.paper.now)
        done, _ = self._run(seat.controller, key, plan)
        said = Pass(
            at=self.paper.now,
            controller=seat.controller.name,
            ref=key.ref,
            because=str(error),
            done=done,
            failure=error,
        )
        self.passes.append(said)
