"""
The clusters of one server, beside its first: which there are, and their lives.

A cluster is remembered by a record in the log, outside every cluster. One that
is ending says so in its record before anything of it goes, so that a server
that dies half-way finishes at its next start.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import orjson

from lamina.embedded import EmbeddedCluster
from lamina.errors import LaminaError, Unavailable
from lamina.logs import log as logger
from lamina.objects.types import Made
from lamina.server.gate import FIRST, Entry, Gate
from lamina.server.identity import Authenticator
from lamina.server.log import Log
from lamina.server.request import ADMIN
from lamina.server.store import Expect, Key
from lamina.server.view import View

T = TypeVar("T")

_RECORDS: Final = "/clusters"
_PAUSE, _LONGEST = 0.5, 60.0
"""After how many seconds a hub that was not told of something is told again: at first, and at most."""
_PATIENCE = 10.0
"""For how many seconds a hub may take to hear of a cluster, while whoever adds or removes it waits."""


class Make(Protocol):
    """Makes a cluster; it has yet to be started."""

    def __call__(self, name: str, store: View, authenticator: Authenticator) -> EmbeddedCluster: ...


class Hub(Protocol):
    """
    Who is told of clusters that come and go: one that is about to run, and one that is gone for good.

    Both raise where it could not be told, and are called again then. Until it has heard of an end, it has things
    of that cluster that its next of kin must not get.
    """

    async def join(self, name: str) -> None: ...

    async def leave(self, name: str) -> None: ...


class _Member(NamedTuple):
    """One cluster that runs."""

    cluster: EmbeddedCluster
    view: View
    token: str


class Clusters:
    """
    Every cluster of a server.

    `make` decides what a cluster is made of; `changed` is called when there are
    others than before. `token` is the server administrator's own, good everywhere.
    `hub` returns who is told of them, once the first runs, if anybody is; where nobody
    is, `former` returns who is told of one that ends, since somebody may have been before.
    """

    def __init__(
        self,
        log: Log,
        first: EmbeddedCluster,
        token: str,
        make: Make,
        changed: Callable[[], None],
        hub: Callable[[], Hub | None] = lambda: None,
        former: Callable[[], Hub | None] = lambda: None,
    ) -> None:
        self.url = ""
        self._log, self._first, self._token = log, first, token
        self._make, self._changed, self._hub, self._former = make, changed, hub, former
        self._members: dict[str, _Member] = {}
        self._turn = asyncio.Lock()
        self._stopping = False
        self._at_work: set[asyncio.Task[Any]] = set()
        self._unheard: set[str] = set()
        """Those of which the hub has yet to hear that they are there."""
        self._telling: asyncio.Task[None] | None = None
        self.gate = Gate(Entry(first.api, first.authenticator), self)

    def __iter__(self) -> Iterator[EmbeddedCluster]:
        """Yield every cluster that runs, the first one first."""
        yield self._first
        yield from (member.cluster for member in self._members.values())

    @property
    def tokens(self) -> dict[str, str]:
        """Return the token of each cluster's administrator, by the cluster's name; the first is not among them."""
        return {name: member.token for name, member in sorted(self._members.items())}

    def address(self, name: str) -> str:
        """Return where a cluster is served."""
        return self.url if name == FIRST else f"{self.url}/clusters/{name}"

    async def start(self, wanted: Sequence[str]) -> None:
        """Have the clusters served that are wanted, and those that were there before."""
        async with self._turn:
            for record in self._records().values():
                if record.ending:
                    await self._forget(record)
                elif record.name in self._members:
                    # One that was asked for while the first cluster started runs already, and could not join it.
                    await self._join(record.name)
                else:
                    await self._begin(record, EmbeddedCluster.serve)
            ending = self._records()
            for name in wanted:
                if name in ending and name not in self._members:
                    logger.error("a cluster of this name is still ending", cluster=name)
                elif name not in self._members:
                    await self._begin(await self._note(name), EmbeddedCluster.serve)
        self.gate.is_complete = True

    async def live(self) -> None:
        """Have everybody act on those that are served."""
        async with self._turn:
            for member in self._members.values():
                if not member.cluster.is_ready:
                    await member.cluster.live()

    async def stop(self) -> None:
        """End what runs on them; they are there again at the next start."""
        self._stopping = True
        self.gate.is_complete = False
        if self._telling is not None:
            self._telling.cancel()
        async with self._turn:
            members, self._members = self._members, {}
            for name, member in members.items():
                self.gate.close(name)
                await member.cluster.stop()

    # ── what the gate asks ──

    def listed(self) -> Sequence[Made]:
        return [
            {"name": cluster.name or FIRST, "server": self.address(cluster.name or FIRST)} for cluster in self
        ]

    def told(self, name: str) -> Made | None:
        member = self._members.get(name)
        if member is not None:
            return {"name": name, "server": self.address(name), "token": member.token}
        return {"name": name, "server": self.url, "token": self._token} if name == FIRST else None

    async def add(self, name: str) -> bool:
        return await self._to_the_end(self._add(name))

    async def remove(self, name: str) -> None:
        await self._to_the_end(self._remove(name))

    # ── one of them ──

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something whole, whether or not whoever asked for it waits that long."""
        task = asyncio.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        return await asyncio.shield(task)

    async def _add(self, name: str) -> bool:
        async with self._turn:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if name in self._members:
                return False
            record = self._records().get(name)
            if record is not None and record.ending:
                # Its end did not get that far.
                if not await self._forget(record):
                    raise Unavailable(f"the cluster that had the name {name!r} is still ending: try again")
                record = None
            await self._begin(record or await self._note(name))
        self._changed()
        return True

    async def _remove(self, name: str) -> None:
        async with self._turn:
            if name not in self._members:
                return
            record = self._records()[name]
            await self._write(record._replace(ending=True))
            member = self._members.pop(name)
            self._unheard.discard(name)
            self.gate.close(name)
            await member.cluster.stop()
            for watcher in list(member.cluster.api.plane.watchers):
                watcher.end()
            await member.view.close()
            await self._forget(record)
        self._changed()

    async def _begin(
        self,
        record: _Record,
        start: Callable[[EmbeddedCluster], Awaitable[object]] = EmbeddedCluster.__aenter__,
    ) -> None:
        name = record.name
        view = View(self._log, record.place)
        token = hmac.new(self._token.encode(), f"{name}/{record.uid}".encode(), "sha256").hexdigest()
        authenticator = Authenticator({self._token: ADMIN, token: ADMIN})
        await self._join(name)
        cluster = self._make(name, view, authenticator)
        self.gate.open(name, Entry(cluster.api, authenticator))
        try:
            await start(cluster)
        except BaseException:
            self.gate.close(name)
            raise
        self._members[name] = _Member(cluster, view, token)

    async def _join(self, name: str) -> None:
        """Have the hub know a cluster; where it cannot be told, the cluster is there all the same."""
        hub = self._hub()
        if hub is None or await self._heard(hub.join, name):
            self._unheard.discard(name)
        else:
            self._unheard.add(name)

    async def _heard(self, tell: Callable[[str], Awaitable[None]], name: str) -> bool:
        """Tell a hub of a cluster that comes or goes, and say whether it heard; if not, it is told again."""
        if self._stopping:
            # At the next start it is told.
            return False
        try:
            async with asyncio.timeout(_PATIENCE):
                await tell(name)
        except (LaminaError, TimeoutError) as unheard:
            because = str(unheard) or "it did not answer in time"
            logger.warning("the hub was not told that a cluster came or went", cluster=name, because=because)
            if not self._stopping and (self._telling is None or self._telling.done()):
                self._telling = asyncio.create_task(self._tell_again())
            return False
        return True

    async def _note(self, name: str) -> _Record:
        """Remember a cluster from now on; who had its name before is somebody else."""
        record = _Record(name, self._first.api.plane.new_uid())
        await self._write(record, expect=Expect.ABSENT)
        return record

    async def _forget(self, record: _Record) -> bool:
        """Delete all there is of a cluster whose view is closed, its record last; say whether that is gone too."""
        hub = self._hub() or self._former()
        if hub is not None and not await self._heard(hub.leave, record.name):
            return False
        # Written after all that was accepted before the view closed, so that is committed by then.
        await self._write(record._replace(ending=True))
        await View(self._log, record.place).clear()
        await self._log.append(_key(record.name), _written(record), deleted=True)
        return True

    async def _tell_again(self) -> None:
        """Try again, ever less often, until the hub knows all there are, and all that are ending have ended."""
        pause = _PAUSE
        while self._unheard or any(record.ending for record in self._records().values()):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)
            for name in sorted({*self._unheard, *self._records()}):
                # Whoever adds or removes one meanwhile does not wait for all of these.
                async with self._turn:
                    if not await self._told(name):
                        break

    async def _told(self, name: str) -> bool:
        """Tell a hub of one cluster that it has not heard of, and say whether it hears."""
        if name in self._unheard:
            await self._join(name)
            return name not in self._unheard
        record = self._records().get(name)
        return record is None or not record.ending or await self._forget(record)

    def _records(self) -> dict[str, _Record]:
        """Return what is remembered of each cluster."""
        found = {}
        for row in self._log.list(_RECORDS).rows:
            read = orjson.loads(row.value)
            found[row.key.name] = _Record(row.key.name, read["metadata"]["uid"], read["ending"])
        return found

    async def _write(self, record: _Record, expect: Expect = Expect.ANY) -> None:
        await self._log.append(_key(record.name), _written(record), expect=expect)


class _Record(NamedTuple):
    """What is remembered of a cluster."""

    name: str
    uid: str
    ending: bool = False

    @property
    def place(self) -> str:
        """Where in the log it is: somewhere else than whoever had its name before."""
        return f"{self.name}.{self.uid[:8]}"


def _key(name: str) -> Key:
    return Key(_RECORDS, "", name)


def _written(record: _Record) -> Made:
    return {"metadata": {"name": record.name, "uid": record.uid}, "ending": record.ending}
