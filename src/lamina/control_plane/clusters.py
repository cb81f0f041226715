"""
The clusters of one server besides its first: started, stopped, added and removed.

Each cluster has a record in the log, outside the data of every cluster. A removal
first marks the record as ending, then deletes the data, and the record last, so
that a server that crashes in between completes the removal at its next start.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import orjson

from lamina.control_plane.cluster import EmbeddedCluster
from lamina.errors import LaminaError, Unavailable
from lamina.logs import log as logger
from lamina.objects.types import Made
from lamina.server.api.authn import Authenticator
from lamina.server.http.cluster_router import FIRST_CLUSTER, ClusterRoute, ClusterRouter
from lamina.server.identity import ADMIN
from lamina.server.storage.cluster_store import ClusterStore
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.store import Expect, Key

T = TypeVar("T")

_RECORDS: Final = "/clusters"
_INITIAL_BACKOFF, _MAX_BACKOFF = 0.5, 60.0
"""Backoff of the retries of `join` and `leave`, in seconds."""
HUB_TIMEOUT = 10.0
"""Timeout of the first `join` or `leave` of a cluster, in seconds; the request to add or remove it waits for that."""


class ClusterFactory(Protocol):
    """Constructs a cluster, which is not started yet."""

    def __call__(self, name: str, store: ClusterStore, authenticator: Authenticator) -> EmbeddedCluster: ...


class Hub(Protocol):
    """
    Registers clusters, before they start, and removes them, after their end.

    Both methods raise on failure and are retried. Until `leave` has succeeded, the name
    cannot be used again: a new cluster would get the objects of the former one.
    """

    async def join(self, name: str) -> None: ...

    async def leave(self, name: str) -> None: ...


class _Member(NamedTuple):
    """One running cluster."""

    cluster: EmbeddedCluster
    view: ClusterStore
    token: str


class Clusters:
    """
    All clusters of a server.

    `make` constructs a cluster; `changed` is called after one is added or removed.
    `token` is the server administrator's, valid for every cluster. `hub` returns the
    hub that clusters join, if the first cluster is one; otherwise `former` returns the
    hub that the first cluster may have been at an earlier start, which removed clusters
    leave.
    """

    def __init__(
        self,
        log: LogStore,
        first: EmbeddedCluster,
        token: str,
        make: ClusterFactory,
        changed: Callable[[], None],
        hub: Callable[[], Hub | None] = lambda: None,
        former: Callable[[], Hub | None] = lambda: None,
        hub_timeout: float = HUB_TIMEOUT,
    ) -> None:
        self.url = ""
        self._log, self._first, self._token = log, first, token
        self._make, self._changed, self._hub, self._former = make, changed, hub, former
        self._hub_timeout = hub_timeout
        self._members: dict[str, _Member] = {}
        self._lock = asyncio.Lock()
        self._stopping = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._not_joined: set[str] = set()
        """Clusters whose `join` has failed and is retried."""
        self._retrying: asyncio.Task[None] | None = None
        self.router = ClusterRouter(ClusterRoute(first.api, first.authenticator), self)

    def __iter__(self) -> Iterator[EmbeddedCluster]:
        """Yield every running cluster, the first cluster first."""
        yield self._first
        yield from (member.cluster for member in self._members.values())

    @property
    def tokens(self) -> dict[str, str]:
        """Return the administrator's token of each cluster besides the first, by the cluster's name."""
        return {name: member.token for name, member in sorted(self._members.items())}

    def address(self, name: str) -> str:
        """Return the URL of a cluster."""
        return self.url if name == FIRST_CLUSTER else f"{self.url}/clusters/{name}"

    async def start(self, names: Sequence[str]) -> None:
        """Serve the recorded clusters and those of these names; complete removals that were interrupted."""
        async with self._lock:
            for record in self._records().values():
                if record.ending:
                    await self._delete(record)
                elif record.name in self._members:
                    # Added by a request while the first cluster started, when there was no hub to join.
                    await self._join(record.name)
                else:
                    await self._start(record, EmbeddedCluster.serve)
            ending = self._records()
            for name in names:
                if name in ending and name not in self._members:
                    logger.error(
                        "cluster not started: the removal of a cluster of its name is not complete",
                        cluster=name,
                    )
                elif name not in self._members:
                    await self._start(await self._create_record(name), EmbeddedCluster.serve)
        self.router.is_complete = True

    async def start_controllers(self) -> None:
        """Run the controllers of the clusters that are served."""
        async with self._lock:
            for member in self._members.values():
                if not member.cluster.is_ready:
                    await member.cluster.start_controllers()

    async def stop(self) -> None:
        """Stop all clusters besides the first; their records stay, so that the next start serves them again."""
        self._stopping = True
        self.router.is_complete = False
        if self._retrying is not None:
            self._retrying.cancel()
        async with self._lock:
            members, self._members = self._members, {}
            for name, member in members.items():
                self.router.close(name)
                await member.cluster.stop()

    # ── requests of the router ──

    def list_clusters(self) -> Sequence[Made]:
        return [
            {"name": cluster.name or FIRST_CLUSTER, "server": self.address(cluster.name or FIRST_CLUSTER)}
            for cluster in self
        ]

    def describe(self, name: str) -> Made | None:
        member = self._members.get(name)
        if member is not None:
            return {"name": name, "server": self.address(name), "token": member.token}
        return {"name": name, "server": self.url, "token": self._token} if name == FIRST_CLUSTER else None

    async def add(self, name: str) -> bool:
        return await self._shielded(self._add(name))

    async def remove(self, name: str) -> None:
        await self._shielded(self._remove(name))

    # ── one cluster ──

    async def _shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Complete the work even if the request that waits for it is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _add(self, name: str) -> bool:
        async with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if name in self._members:
                return False
            record = self._records().get(name)
            if record is not None and record.ending:
                # Complete the removal of the former cluster of this name first.
                if not await self._delete(record):
                    raise Unavailable(f"the former cluster {name!r} is still ending: try again")
                record = None
            await self._start(record or await self._create_record(name))
        self._changed()
        return True

    async def _remove(self, name: str) -> None:
        async with self._lock:
            if name not in self._members:
                return
            record = self._records()[name]
            await self._write(record._replace(ending=True))
            member = self._members.pop(name)
            self._not_joined.discard(name)
            self.router.close(name)
            await member.cluster.stop()
            for watcher in list(member.cluster.api.context.watches):
                watcher.end()
            await member.view.close()
            await self._delete(record)
        self._changed()

    async def _start(
        self,
        record: _Record,
        start: Callable[[EmbeddedCluster], Awaitable[object]] = EmbeddedCluster.__aenter__,
    ) -> None:
        name = record.name
        view = ClusterStore(self._log, record.prefix)
        token = hmac.new(self._token.encode(), f"{name}/{record.uid}".encode(), "sha256").hexdigest()
        authenticator = Authenticator({self._token: ADMIN, token: ADMIN})
        await self._join(name)
        cluster = self._make(name, view, authenticator)
        self.router.open(name, ClusterRoute(cluster.api, authenticator))
        try:
            await start(cluster)
        except BaseException:
            self.router.close(name)
            raise
        self._members[name] = _Member(cluster, view, token)

    async def _join(self, name: str) -> None:
        """Register a cluster with the hub; a failure is retried and does not keep the cluster from starting."""
        hub = self._hub()
        if hub is None or await self._notified(hub.join, name):
            self._not_joined.discard(name)
        else:
            self._not_joined.add(name)

    async def _notified(self, notify: Callable[[str], Awaitable[None]], name: str) -> bool:
        """Call `join` or `leave` of a hub, schedule a retry on failure, and say whether it succeeded."""
        if self._stopping:
            # The next start does it.
            return False
        try:
            async with asyncio.timeout(self._hub_timeout):
                await notify(name)
        except (LaminaError, TimeoutError) as error:
            because = str(error) or "no response in time"
            logger.warning("hub not updated, retrying", cluster=name, because=because)
            if not self._stopping and (self._retrying is None or self._retrying.done()):
                self._retrying = asyncio.create_task(self._retry())
            return False
        return True

    async def _create_record(self, name: str) -> _Record:
        """Record a cluster with a new UID, which distinguishes it from former clusters of its name."""
        record = _Record(name, self._first.api.context.new_uid())
        await self._write(record, expect=Expect.ABSENT)
        return record

    async def _delete(self, record: _Record) -> bool:
        """Delete the data of a cluster whose view is closed, then its record; say whether that succeeded."""
        hub = self._hub() or self._former()
        if hub is not None and not await self._notified(hub.leave, record.name):
            return False
        # The log is ordered: once this write is committed, so are all that were accepted before the view closed.
        await self._write(record._replace(ending=True))
        await ClusterStore(self._log, record.prefix).clear()
        await self._log.append(_key(record.name), _encoded(record), deleted=True)
        return True

    async def _retry(self) -> None:
        """Retry with exponential backoff until all clusters have joined and all removals are complete."""
        backoff = _INITIAL_BACKOFF
        while self._not_joined or any(record.ending for record in self._records().values()):
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, _MAX_BACKOFF)
            for name in sorted({*self._not_joined, *self._records()}):
                # The lock is released between clusters, so that requests do not wait for all of them.
                async with self._lock:
                    if not await self._retry_one(name):
                        break

    async def _retry_one(self, name: str) -> bool:
        """Retry the join or the removal of one cluster, and say whether nothing is left to do for it."""
        if name in self._not_joined:
            await self._join(name)
            return name not in self._not_joined
        record = self._records().get(name)
        return record is None or not record.ending or await self._delete(record)

    def _records(self) -> dict[str, _Record]:
        """Return the record of each cluster by its name."""
        found = {}
        for row in self._log.list(_RECORDS).rows:
            decoded = orjson.loads(row.value)
            found[row.key.name] = _Record(row.key.name, decoded["metadata"]["uid"], decoded["ending"])
        return found

    async def _write(self, record: _Record, expect: Expect = Expect.ANY) -> None:
        await self._log.append(_key(record.name), _encoded(record), expect=expect)


class _Record(NamedTuple):
    """The record of a cluster in the log."""

    name: str
    uid: str
    ending: bool = False

    @property
    def prefix(self) -> str:
        """Return the prefix of its keys in the log, which no former cluster of its name has had."""
        return f"{self.name}.{self.uid[:8]}"


def _key(name: str) -> Key:
    return Key(_RECORDS, "", name)


def _encoded(record: _Record) -> Made:
    return {"metadata": {"name": record.name, "uid": record.uid}, "ending": record.ending}
