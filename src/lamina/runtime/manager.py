"""
Which controllers run, and what they see.

Both are functions of the world: what should be followed, of the controllers and
the kinds there are; which controllers there should be, of what their sources
see. Whenever either may have changed it is worked out anew and compared with
what is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.controller import AnyController, Source
from lamina.core.questions import Follow
from lamina.core.world import Change
from lamina.errors import NotSeenYet
from lamina.logs import Logger
from lamina.logs import log as default_log
from lamina.objects.kinds import Kind
from lamina.objects.types import Ref
from lamina.rates import Buckets
from lamina.runtime.asker import Asker, Caller
from lamina.runtime.catalogue import DISCOVERS
from lamina.runtime.executor import Executor
from lamina.runtime.horizon import Horizon
from lamina.runtime.informer import Informer
from lamina.runtime.lookout import Lookout
from lamina.runtime.meter import Meter
from lamina.runtime.queue import Queue
from lamina.runtime.seat import Room, Seat
from lamina.runtime.subscriptions import check
from lamina.runtime.telling import Teller
from lamina.runtime.worker import Lead, Worker


class Manager:
    """
    Runs controllers against one cluster, and against others that they look at from there.

    `others` are those by name: the names that controllers have for them, or any
    where a controller looks everywhere. They may be bound and unbound at any time.
    """

    def __init__(
        self,
        client: Client,
        controllers: Sequence[AnyController],
        clock: Clock,
        log: Logger | None = None,
        sources: Sequence[Source] = (),
        caller: Caller | None = None,
        lead: Lead | None = None,
        meters: Callable[[str], Meter] = lambda name: Meter(),
        *,
        events: Buckets | None = None,
        discovers: float = DISCOVERS,
        others: Mapping[str, Client] | None = None,
    ) -> None:
        self._meters, self._events = meters, events
        self._client, self._fixed, self._clock, self._sources = client, controllers, clock, sources
        self._caller, self._lead = caller, lead
        self._log: Logger = log if log is not None else default_log
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._seats: dict[str, Seat] = {}
        self._at_work: set[Queue[Ref]] = set()
        self._leaving: list[asyncio.Task[None]] = []
        self._ends = False
        self._stirred = asyncio.Event()
        self._teller = Teller(self._is_busy, self._log)
        self._horizon = Horizon(client, others, self._log, discovers)
        self._group: asyncio.TaskGroup | None = None
        self._rooms: list[Room] = []

    async def ready(self) -> None:
        """Wait until every controller has seen what there is; raises what kept them from it."""
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def is_idle(self) -> bool:
        """Say whether every controller has nothing to do but wait."""
        return (
            self._ready.is_set()
            and not self._stirred.is_set()
            and not self._is_busy()
            and self._teller.is_idle
        )

    def _is_busy(self) -> bool:
        # Asked all the time, of every cluster, while time is wound: it must not take a look at everybody.
        return bool(self._at_work)

    @property
    def names(self) -> tuple[str, ...]:
        """Return which controllers run."""
        return tuple(self._seats)

    def due(self, ref: Ref) -> datetime | None:
        """Return when some controller looks at an object next, if nothing is heard before."""
        moments = [seat.worker.queue.due(ref) for seat in self._seats.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def look_at_everything(self) -> None:
        """Have every controller look at all there is, as if it had just come: it may be ours now."""
        if self._horizon.is_open:
            for seat in self._seats.values():
                seat.told.clear()
            self._arrange()

    def bind(self, cluster: str, client: Client) -> None:
        """Have controllers look at another cluster, too; if there was one of that name, at this in its place."""
        self.unbind(cluster)
        self._horizon.bind(cluster, client)
        self._look_round()

    def unbind(self, cluster: str) -> None:
        """Have nobody look at a cluster any more. What is there stays as it is."""
        self._horizon.unbind(cluster)
        for seat in self._seats.values():
            seat.told.discard(cluster)
            seat.worker.forget(cluster)
        self._look_round()

    @property
    def looks_elsewhere(self) -> bool:
        """Say whether there are clusters beside the one at home."""
        return bool(self._horizon.others)

    @property
    def followed(self) -> frozenset[Kind]:
        """Return the kinds that are followed because some key asked for them."""
        return frozenset(what.kind for seat in self._seats.values() for _, what in seat.follows)

    async def finish(self, patience: float) -> None:
        """Give out no more work, and wait a while for what has been begun."""
        self._ends = True
        for seat in self._seats.values():
            seat.worker.queue.close()
        tasks = [*self._leaving, *(task for seat in self._seats.values() for task in seat.tasks)]
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                if tasks:
                    await asyncio.wait(tasks)
                await self._teller.finished()

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            await self._run()
        except asyncio.CancelledError as cancelled:
            if not self._ready.is_set():
                self._failure = cancelled
            # On its way here it met everybody, and need not remember them.
            raise cancelled.with_traceback(None) from None
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            self._ready.set()
            self._disband()

    def _disband(self) -> None:
        """Know nobody any more: whoever ran here knew each other, and would stay until somebody looks for garbage."""
        self._group = None
        self._horizon.end()
        for seat in self._seats.values():
            seat.end()
        self._seats, self._rooms, self._leaving = {}, [], []
        self._at_work.clear()
        self._teller.is_busy = lambda: False

    async def _run(self) -> None:
        await self._horizon.discover()
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._horizon.open(group, changed=self._look_anew, seen=self._include)
            self._rooms = [
                Room(source, self._horizon.sight(source.watches), self._stir) for source in self._sources
            ]
            self._arrange()
            group.create_task(self._teller.run())
            try:
                await self._horizon.settled_at_home()
                group.create_task(self._get_ready())
                # Other clusters may keep silent: what takes none of them does not wait for them.
                self._stir()
                while True:
                    await self._stirred.wait()
                    # What happens together is looked at together.
                    await asyncio.sleep(0)
                    self._stirred.clear()
                    self._arrange()
            finally:
                self._horizon.close()

    async def _get_ready(self) -> None:
        await self._horizon.settled()
        if self._rooms:
            # The sources have seen what there is; now there may be controllers that look for more.
            self._arrange()
            await self._horizon.settled()
        self._ready.set()

    # ── what is seen ──

    def _look_anew(self, lookout: Lookout) -> None:
        """Take note that a cluster serves other kinds than before."""
        for seat in self._seats.values():
            if seat.controller.minds_kinds:
                seat.told.discard(lookout.cluster)
        if lookout.cluster:
            self._look_at(lookout)
            self._stir()
        else:
            self._arrange()

    def _include(self, lookout: Lookout) -> None:
        """Take note that all there is on another cluster has been seen: from now on it counts."""
        late = self._ready.is_set()
        missed = [
            seat
            for seat in self._seats.values()
            if seat.sight.is_about(lookout.cluster) and (late or seat.sight.is_wide)
        ]
        for seat in missed:
            # What was to be done before was done without it, or could not be done.
            seat.told -= {"", lookout.cluster}
        if missed or self._rooms:
            self._look_at(lookout)
            self._stir()

    def _look_round(self) -> None:
        """Take note that there are other clusters than before."""
        if not self._horizon.is_open:
            return
        for seat in self._seats.values():
            seat.hire(len(self._horizon.others))
            if seat.sight.is_wide:
                seat.told.discard("")
        self._look_at(None)
        self._stir()

    def _arrange(self) -> None:
        """Have exactly the controllers run that there should be, and everything followed that they watch."""
        home = next(iter(self._horizon))
        for room in self._rooms:
            # Which controllers there should be may depend on which kinds there are.
            room.sight.know(home.kinds)
        self._employ()
        self._look_at(None)

    def _look_at(self, lookout: Lookout | None) -> None:
        """Have followed what is watched on one cluster, or on all, and tell controllers what they do not know yet."""
        seats = tuple(self._seats.values())
        for seat in seats:
            seat.forget_unasked()
        self._horizon.arrange((*self._rooms, *seats), lookout)
        for lookout in self._horizon:
            for seat in seats:
                if lookout.cluster not in seat.told and lookout.is_known:
                    seat.introduce(lookout)

    def _follow(self, controller: AnyController, follow: Follow) -> Informer:
        """Have what a key asked for followed, on behalf of a controller that has a seat here."""
        seat = self._seats.get(controller.name)
        if seat is None or seat.controller is not controller:
            raise NotSeenYet(f"{controller.name} is not to follow anything any more")
        lookout, what = self._horizon.way(follow, seat.follows)
        if (follow.cluster, what) not in seat.follows:
            seat.follows[follow.cluster, what] = None
            self._look_at(lookout)
        return lookout.informers.following(what)

    def _stir(self, change: Change | None = None) -> None:
        """Have the sources asked again which controllers there should be, if there are any."""
        if self._rooms:
            self._stirred.set()

    # ── who runs ──

    def _employ(self) -> None:
        """Compare the controllers there should be with those there are; at the end nobody is employed any more."""
        group = self._group
        if self._ends or group is None:
            return
        should: dict[str, AnyController] = {one.name: one for one in self._fixed}
        for room in self._rooms:
            if room.sight.is_settled:
                should |= {one.name: one for one in room.source.controllers(room.sight.world)}
            else:
                # Not seen in full yet: whoever runs on its account goes on.
                should |= {name: seat.controller for name, seat in self._seats.items() if name not in should}
        leaving: dict[str, list[asyncio.Task[None]]] = {}
        for name, seat in list(self._seats.items()):
            if name not in should or should[name].edition != seat.controller.edition:
                seat.worker.queue.close()
                seat.worker.meter.end()
                leaving[name] = seat.tasks
                self._leaving = [task for task in self._leaving if not task.done()] + seat.tasks
                del self._seats[name]
                self._log.debug("controller stopped", controller=name)
                if name not in should:
                    group.create_task(seat.take_leave())
        for name, controller in should.items():
            if name not in self._seats:
                self._seats[name] = self._seat(controller, group, after=leaving.get(name, ()))

    def _seat(
        self, controller: AnyController, group: asyncio.TaskGroup, after: Sequence[asyncio.Task[None]]
    ) -> Seat:
        check(controller.name, next(iter(self._horizon)).kinds, controller.watches)
        meter = self._meters(controller.name)
        worker: Worker[object] = Worker(
            controller,
            sight=self._horizon.sight(controller.watches),
            asker=Asker(self._client, self._caller, others=self._horizon.others),
            executor=Executor(
                self._client,
                others=self._horizon.others,
                manager=controller.manager,
                meter=meter,
                events=self._events,
                teller=self._teller,
            ),
            clock=self._clock,
            log=self._log,
            follow=partial(self._follow, controller),
            lead=self._lead,
            meter=meter,
        )
        queue = worker.queue
        queue.at_work, queue.rested = self._at_work, self._teller.rested
        meter.begin(
            depth=lambda: queue.depth, oldest=lambda: queue.busy_since, hands=max(1, controller.at_once)
        )
        seat = Seat(worker, group, after)
        seat.hire(len(self._horizon.others))
        return seat
