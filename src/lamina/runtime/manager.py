"""
Which controllers run, and what they see.

Both are functions of the world: what should be followed, of the controllers and
the kinds there are; which controllers there should be, of what their sources
see. Whenever either may have changed it is worked out anew and compared with
what is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.controller import AnyController, Source, Watch, only
from lamina.core.definitions import DEFINITION, names_only
from lamina.core.questions import Follow
from lamina.core.world import Change, everything
from lamina.logs import Logger
from lamina.logs import log as default_log
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Ref
from lamina.rates import Buckets
from lamina.runtime.asker import Asker, Caller
from lamina.runtime.catalogue import DISCOVERS, Catalogue
from lamina.runtime.executor import Executor
from lamina.runtime.informer import Informer, Subscription
from lamina.runtime.informers import Hear, Informers
from lamina.runtime.meter import Meter
from lamina.runtime.sight import Sight
from lamina.runtime.telling import Teller
from lamina.runtime.worker import Lead, Worker

_BY_NAME = 8


@dataclass(slots=True)
class _Post:
    """One controller at work."""

    worker: Worker[object]
    listeners: tuple[Hear, ...]
    follows: dict[Subscription, None] = field(default_factory=dict)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def controller(self) -> AnyController:
        return self.worker.controller

    def forget_unasked(self) -> None:
        """Follow no more what no key asks for any more."""
        asked = {what for follow in self.worker.follows for what in _ways(follow)}
        self.follows = {what: None for what in self.follows if what in asked}


class Manager:
    """Runs controllers against one cluster."""

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
    ) -> None:
        self._meters, self._events = meters, events
        self._client, self._fixed, self._clock, self._sources = client, controllers, clock, sources
        self._caller, self._lead = caller, lead
        self._log: Logger = log if log is not None else default_log
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._posts: dict[str, _Post] = {}
        self._stirred = asyncio.Event()
        self._teller = Teller(self._is_busy, self._log)
        self._catalogue = Catalogue(client, self._log, period=discovers)
        self._group: asyncio.TaskGroup
        self._informers: Informers
        self._sights: list[Sight] = []

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
        return not all(post.worker.queue.is_idle for post in self._posts.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Return which controllers run."""
        return tuple(self._posts)

    def due(self, ref: Ref) -> datetime | None:
        """Return when some controller looks at an object next, if nothing is heard before."""
        moments = [post.worker.queue.due(ref) for post in self._posts.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def look_at_everything(self) -> None:
        """Have every controller look at all there is, as if it had just come: it may be ours now."""
        if self._ready.is_set():
            for post in self._posts.values():
                post.worker.introduced = False
            self._arrange()

    @property
    def followed(self) -> frozenset[Kind]:
        """Return the kinds that are followed because some key asked for them."""
        return frozenset(what.kind for post in self._posts.values() for what in post.follows)

    async def finish(self, patience: float) -> None:
        """Give out no more work, and wait a while for what has been begun."""
        for post in self._posts.values():
            post.worker.queue.close()
        tasks = [task for post in self._posts.values() for task in post.tasks]
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                if tasks:
                    await asyncio.wait(tasks)
                await self._teller.finished()

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            await self._run()
        except BaseException as failure:
            self._failure = failure
            self._ready.set()
            raise

    async def _run(self) -> None:
        await self._catalogue.refresh()
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._informers = Informers(self._client, group, self._log)
            self._sights = [Sight(self._client, self._informers.gone) for _ in self._sources]
            self._arrange()
            group.create_task(self._teller.run())
            group.create_task(self._catalogue.follow(self._look_anew))
            await self._informers.settled()
            # The sources have seen what there is; now there may be controllers that look for more.
            self._arrange()
            await self._informers.settled()
            self._ready.set()
            while self._sources:
                await self._stirred.wait()
                # What happens together is looked at together.
                await asyncio.sleep(0)
                self._stirred.clear()
                self._arrange()

    def _look_anew(self) -> None:
        """Take note that other kinds are served than before."""
        for post in self._posts.values():
            if post.controller.minds_kinds:
                post.worker.introduced = False
        self._arrange()

    def _arrange(self) -> None:
        """Have exactly the controllers run that there should be, and everything followed that they watch."""
        kinds = self._catalogue.kinds
        for sight in self._sights:
            # Which controllers there should be may depend on which kinds there are.
            sight.know(kinds)
        self._employ()
        wanted: dict[Subscription, list[Hear]] = {}
        for subscription in _definitions(kinds):
            wanted.setdefault(subscription, []).append(self._catalogue.hear)
        looks: list[tuple[Sight, dict[GroupKind, Subscription]]] = []
        for source, sight in zip(self._sources, self._sights, strict=True):
            sees = _subscribe(kinds, source.watches, [self._stir] * len(source.watches), wanted)
            looks.append((sight, sees))
        for post in self._posts.values():
            sees = _subscribe(kinds, post.controller.watches, post.listeners, wanted)
            looks.append((post.worker.sight, sees))
            post.forget_unasked()
            for what in post.follows:
                wanted.setdefault(what, []).append(post.worker.overhear)
        following = self._informers.arrange(wanted)
        for sight, sees in looks:
            sight.arrange(kinds, {kind: following[what] for kind, what in sees.items()})
        self._introduce(following)

    def _employ(self) -> None:
        """Compare the controllers there should be with those there are."""
        should: dict[str, AnyController] = {one.name: one for one in self._fixed}
        for source, sight in zip(self._sources, self._sights, strict=True):
            if sight.is_settled:
                should |= {one.name: one for one in source.controllers(sight.world)}
            else:
                # Not seen in full yet: whoever runs on its account goes on.
                should |= {name: post.controller for name, post in self._posts.items() if name not in should}
        leaving: dict[str, list[asyncio.Task[None]]] = {}
        for name, post in list(self._posts.items()):
            if name not in should or should[name].edition != post.controller.edition:
                post.worker.queue.close()
                post.worker.meter.end()
                leaving[name] = post.tasks
                del self._posts[name]
                self._log.debug("controller stopped", controller=name)
                if name not in should:
                    self._group.create_task(_take_leave(post))
        for name, controller in should.items():
            if name not in self._posts:
                self._posts[name] = self._post(controller, after=leaving.get(name, ()))

    def _post(self, controller: AnyController, after: Sequence[asyncio.Task[None]]) -> _Post:
        meter = self._meters(controller.name)
        worker: Worker[object] = Worker(
            controller,
            sight=Sight(self._client, self._informers.gone),
            asker=Asker(self._client, self._caller),
            executor=Executor(
                self._client,
                manager=controller.manager,
                meter=meter,
                events=self._events,
                teller=self._teller,
            ),
            clock=self._clock,
            log=self._log,
            follow=partial(self._follow, controller.name),
            lead=self._lead,
            meter=meter,
        )
        queue = worker.queue
        meter.begin(
            depth=lambda: queue.depth, oldest=lambda: queue.busy_since, hands=max(1, controller.at_once)
        )
        post = _Post(worker, tuple(map(worker.listener, controller.watches)))
        post.tasks = [
            self._group.create_task(_work(worker, after)) for _ in range(max(1, controller.at_once))
        ]
        return post

    def _introduce(self, following: dict[Subscription, Informer]) -> None:
        """Tell controllers that have just come of everything their informers know already."""
        kinds = self._catalogue.kinds
        for post in self._posts.values():
            if post.worker.introduced:
                continue
            post.worker.introduced = True
            for watch, hear in zip(post.controller.watches, post.listeners, strict=True):
                for kind in _watched(kinds, watch):
                    informer = following[_subscription(kind, watch)]
                    for obj in informer.shelf.every():
                        hear(Change(kind, None, obj))

    def _follow(self, name: str, follow: Follow) -> Informer:
        """Have what a key asked for followed, on behalf of the controller of that name."""
        post = self._posts.get(name)
        whole, *narrow = _ways(follow)
        one_by_one = sum(what.kind == follow.kind for what in post.follows) if post is not None else 0
        # A few by name are cheaper than all; many are not.
        several = one_by_one >= _BY_NAME and not any(map(self._informers.is_following, narrow))
        what = whole if not narrow or several or self._informers.is_following(whole) else narrow[0]
        if post is not None and what not in post.follows:
            post.follows[what] = None
            self._arrange()
        return self._informers.following(what)

    def _stir(self, change: Change) -> None:
        self._stirred.set()


def _ways(follow: Follow) -> Iterator[Subscription]:
    """Yield the ways to follow what a key asks for: all of its kind, and, if it is one, by its name."""
    whole = Subscription(follow.kind, everything, False, "")
    yield whole
    if follow.names is not None and len(follow.names) == 1:
        yield whole._replace(named=follow.names[0])


async def _take_leave(post: _Post) -> None:
    """Have a controller that is not wanted any more say so, once it has finished what it had begun."""
    await asyncio.wait(post.tasks)
    await post.worker.take_leave()


async def _work(worker: Worker[object], after: Iterable[asyncio.Task[None]]) -> None:
    """Work once those whose place this worker takes have finished what they had begun."""
    pending = [task for task in after if not task.done()]
    if pending:
        await asyncio.wait(pending)
    await worker.run()


@lru_cache(maxsize=1024)
def _watched(kinds: Kinds, watch: Watch) -> tuple[Kind, ...]:
    """Return the kinds that a watch is about; managers of clusters that are alike ask for the same, often."""
    among = kinds.versions() if watch.api_version else kinds
    return tuple(
        kind
        for kind in among
        if (not watch.api_version or kind.api_version == watch.api_version)
        and kind.can("list", "watch")
        and watch.selects(kind)
    )


def _subscription(kind: Kind, watch: Watch) -> Subscription:
    return Subscription(kind, watch.keep, watch.metadata_only, watch.named)


def _subscribe(
    kinds: Kinds, watches: Sequence[Watch], listeners: Sequence[Hear], wanted: dict[Subscription, list[Hear]]
) -> dict[GroupKind, Subscription]:
    """Add what these watches want followed, and return through what each kind is seen."""
    sees: dict[GroupKind, Subscription] = {}
    for watch, hear in zip(watches, listeners, strict=True):
        for kind in _watched(kinds, watch):
            what = _subscription(kind, watch)
            wanted.setdefault(what, []).append(hear)
            sees.setdefault(kind.group_kind, what)
    return sees


def _definitions(kinds: Kinds) -> Sequence[Subscription]:
    """Return what the catalogue itself has to follow."""
    selects = only(*DEFINITION)
    return [Subscription(kind, names_only, False, "") for kind in kinds if selects(kind)]
