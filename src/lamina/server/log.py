"""
The log in memory: what is committed, what is accepted, who waits.

Both stores are this class; they differ in what it takes to commit a batch.

- `append` accepts a row at once: it judges, numbers, encodes and queues it.
- One batch is on its way to the disk at a time. Whatever is accepted meanwhile
  is the next one.
- When a batch is committed its rows are published (index, history, followers)
  and only then do its writers hear of it, so whoever was told about a write
  can read it.
- Followers who left an offer are told after the writers, a few in each turn of
  the loop: however many there are, requests are answered in between. Where they
  are many they are not told again at once: what has come in the meantime is one
  piece for each of them then, and costs little more than one change.
- When a commit fails, the batch and everything queued behind it fail, because
  what is queued was judged against rows that do not exist. The numbers are spent.

All of it runs on the event loop; nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from lamina.errors import AlreadyExists, Conflict, Gone, NotFound, StoreError, TooLarge
from lamina.objects.types import Made
from lamina.server.bucket import Bucket, Window
from lamina.server.encoding import encode_stored
from lamina.server.follower import Reader
from lamina.server.shelf import Shelf
from lamina.server.store import Event, Expect, Key, Listing, Row

ROW_LIMIT = 1024 * 1024 * 3 // 2
"""The largest value of a row in bytes, as in etcd."""

_SNAPSHOTS = 8
_TOLD_AT_ONCE = 16
"""How many followers are told in one turn of the loop; telling one takes about as long as answering a read."""
_REST = 0.004
"""Seconds from telling a crowd to telling it again: less than a client across a network would notice."""


def encode(obj: Made, version: int) -> bytes:
    """Return the value of a row, its version stamped into `obj`."""
    obj["metadata"]["resourceVersion"] = str(version)
    return encode_stored(obj)


class Log(ABC):
    """A `Store` but for making rows durable."""

    def __init__(self, *, window: Window | None = None, row_limit: int = ROW_LIMIT) -> None:
        self._window = window or Window()
        self._row_limit = row_limit
        self._version = self._given_out = 1
        self._compacted = 0
        self._current: dict[Key, Row] = {}
        self._buckets: dict[str, Bucket] = {}
        self._snapshots: OrderedDict[tuple[str, int], Shelf] = OrderedDict()
        self._accepted: dict[Key, Row] = {}
        self._queued: list[tuple[Row, asyncio.Future[Row]]] = []
        self._in_flight: list[tuple[Row, asyncio.Future[Row]]] = []
        # Who waits for a version to be committed, and whether a failed commit
        # is the end of the wait.
        self._awaited: list[tuple[int, asyncio.Future[bool], bool]] = []
        self._to_tell: deque[Reader] = deque()
        self._telling = False
        # How many are still to be told in this round, and when a crowd may be told next.
        self._round, self._rested = 0, 0.0
        self._drained: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        self._retired: set[str] = set()

    # What the two stores do differently

    @abstractmethod
    def _commit(self, rows: Sequence[Row]) -> None:
        """Start making rows durable, and have `_committed` called on the loop at the end, good or bad."""

    @abstractmethod
    def _forget(self, before: int, versions: Sequence[int]) -> None:
        """Start removing superfluous rows from where they are kept, and remember the compaction."""

    @abstractmethod
    async def _release(self) -> None:
        """Let go of what was opened. Everything accepted has been committed or refused."""

    @abstractmethod
    async def backup(self, target: Path) -> None: ...

    # Reading

    @property
    def version(self) -> int:
        return self._version

    @property
    def compacted(self) -> int:
        return self._compacted

    @property
    def closed(self) -> bool:
        """Return whether the store has closed: no event follows."""
        return self._closed

    def get(self, key: Key) -> Row | None:
        return self._current.get(key)

    def newest(self, key: Key) -> Row | None:
        row = self._accepted.get(key) or self._current.get(key)
        return None if row is None or row.deleted else row

    def list(
        self,
        bucket: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 0,
    ) -> Listing:
        version = self._version if at is None else at
        held = self._buckets.get(bucket)
        if version > self._version:
            raise ValueError(f"version {version} is yet to come: the newest is {self._version}")
        if held is None:
            self._refuse_compacted(version)
            return Listing((), version, 0)
        shelf = held.shelf if at is None else self._shelf(bucket, held, version)
        rows, remaining = shelf.page(namespace, after, limit)
        return Listing(rows, version, remaining)

    def count(self, bucket: str) -> int:
        held = self._buckets.get(bucket)
        return len(held.shelf) if held else 0

    def changed(self, bucket: str) -> int:
        held = self._buckets.get(bucket)
        return held.history.end if held else 0

    def buckets(self, cluster: str = "") -> Sequence[str]:
        """Return the buckets of one cluster that hold objects, in order, by their names in the cluster."""
        prefix = f"{cluster}/" if cluster else ""
        return sorted(
            inner
            for name, bucket in self._buckets.items()
            if len(bucket.shelf) and name.startswith(prefix) and "/" not in (inner := name[len(prefix) :])
        )

    def since(self, version: int, bucket: str, namespace: str | None = None) -> Sequence[Event]:
        held = self._buckets.get(bucket)
        if held is None:
            self._refuse_compacted(version)
            return ()
        events = held.history.after(version)
        if namespace is None:
            return events
        return [event for event in events if event.row.key.namespace == namespace]

    def follow(self, version: int, bucket: str, namespace: str | None = None) -> Reader:
        return Reader(self, self._bucket(bucket), namespace, version)

    async def wait_for(self, version: int, timeout: float) -> bool:
        if version <= self._version:
            return True
        if self._closed or timeout <= 0:
            return False
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bool] = loop.create_future()
        entry = (version, came, False)
        self._awaited.append(entry)
        timer = loop.call_later(timeout, _answer, came, False)
        try:
            return await came
        finally:
            timer.cancel()
            if entry in self._awaited:
                self._awaited.remove(entry)

    async def settled(self, row: Row) -> None:
        await self._until(row.version)

    async def caught_up(self) -> None:
        with suppress(StoreError):
            await self._until(self._given_out)

    async def _until(self, version: int) -> None:
        if version <= self._version:
            return
        entry = (version, asyncio.get_running_loop().create_future(), True)
        self._awaited.append(entry)
        try:
            await entry[1]
        finally:
            if entry in self._awaited:
                self._awaited.remove(entry)

    # Writing

    async def append(
        self, key: Key, obj: Made, *, expect: Expect | int = Expect.ANY, deleted: bool = False
    ) -> Row:
        if self._closing is not None:
            raise StoreError("the log is closed")
        newest = self.newest(key)
        _judge(key, newest, expect, deleted)
        version = self._given_out + 1
        value = encode(obj, version)
        if newest is None:
            "".join(key).encode()  # a name that is no text fails here, alone, and not with its whole batch
        if len(value) > self._row_limit:
            raise TooLarge(f"the object is too large: {len(value)} bytes, and the limit is {self._row_limit}")
        self._given_out = version
        # The key of the row before is reused: one copy of the names, however often an object changes.
        key = newest.key if newest else Key(sys.intern(key.bucket), sys.intern(key.namespace), key.name)
        row = self._accepted[key] = Row(key, version, value, deleted)
        loop = asyncio.get_running_loop()
        written: asyncio.Future[Row] = loop.create_future()
        if not self._queued and not self._in_flight:
            # At the end of this turn of the loop, so that whoever else writes in it comes along.
            loop.call_soon(self._start)
        self._queued.append((row, written))
        return await written

    def compact(self, before: int) -> None:
        before = min(before, self._version)
        if before <= self._compacted or self._closed:
            return
        self._compacted = before
        stale: list[int] = []
        for bucket in self._buckets.values():
            stale += bucket.history.compact(before)
        for name, version in [*self._snapshots]:
            if version < before:
                del self._snapshots[name, version]
        self._forget(before, stale)
        self._let_go()

    def retire(self, cluster: str) -> None:
        """Take note that a cluster is no more, nor ever will be: once its history is forgotten, it is all gone."""
        self._retired.update(name for name in self._buckets if name.startswith(f"{cluster}/"))

    def _let_go(self) -> None:
        """Keep no bucket of a cluster that is no more, once nothing is left in it, not even history."""
        for name in list(self._retired):
            bucket = self._buckets[name]
            if not len(bucket.shelf) and not bucket.history.events:
                del self._buckets[name]
                self._retired.discard(name)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._shut())
        # Whoever waits may give up; the closing goes on.
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        if self._queued or self._in_flight:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        self._closed = True
        for reader in self._to_tell:
            reader.wake()
        for bucket in self._buckets.values():
            waiting, bucket.waiting = bucket.waiting, {}
            for readers in waiting.values():
                for reader in readers:
                    reader.rouse(bucket.history.end)
                    reader.wake()
        for _, future, _ in self._awaited:
            _answer(future, False)
        await self._release()

    # The way of a batch

    def _start(self) -> None:
        if self._queued and not self._in_flight:
            self._in_flight, self._queued = self._queued, []
            self._commit([row for row, _ in self._in_flight])

    def _committed(self, error: StoreError | None) -> None:
        """Publish the batch in flight, or with an error give it up and all that is queued behind it."""
        batch, self._in_flight = self._in_flight, []
        if error is None:
            self._publish([row for row, _ in batch])
            for row, written in batch:
                if not written.done():
                    written.set_result(row)
        else:
            batch += self._queued
            self._queued = []
            self._accepted.clear()
            for _, written in batch:
                _refuse(written, error)
            for _, future, fails in self._awaited:
                if fails:
                    _refuse(future, error)
        if self._to_tell and not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)
        self._start()
        if self._drained is not None and not self._in_flight and not self._drained.done():
            self._drained.set_result(None)

    def call_on(self, reader: Reader) -> None:
        """Have a reader offer what has come for it, once the writers have been told."""
        self._to_tell.append(reader)

    def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._round:
            self._round = len(self._to_tell)
            if self._round > _TOLD_AT_ONCE:
                now = loop.time()
                if now < self._rested:
                    self._round = 0
                    loop.call_at(self._rested, self._tell)
                    return
                self._rested = now + _REST
        some = min(self._round, _TOLD_AT_ONCE)
        self._round -= some
        for _ in range(some):
            self._to_tell.popleft().offer()
        self._telling = bool(self._to_tell)
        if self._telling:
            loop.call_soon(self._tell)

    def _publish(self, rows: Sequence[Row]) -> None:
        current, accepted = self._current, self._accepted
        for row in rows:
            key = row.key
            previous = current.pop(key, None) if row.deleted else current.get(key)
            if not row.deleted:
                current[key] = row
            if accepted.get(key) is row:
                del accepted[key]
            # Before the bucket wakes anybody, so that a follower finds itself up to date.
            self._version = row.version
            self._bucket(key.bucket).publish(row, previous)
        for version, future, _ in self._awaited:
            if version <= self._version:
                _answer(future, True)

    # What is in memory

    def _load(self, rows: Iterable[Row], *, version: int, compacted: int) -> None:
        """Take over rows from an earlier life, oldest first: those since the compaction are history too."""
        self._version = self._given_out = version
        self._compacted = compacted
        held: dict[str, dict[Key, Row]] = {}
        for row in rows:
            key = row.key
            bucket = self._bucket(key.bucket)
            mine = held.setdefault(key.bucket, {})
            bucket.history.add(Event(row, mine.pop(key, None)))
            if not row.deleted:
                mine[key] = row
        for name, mine in held.items():
            self._current.update(mine)
            self._buckets[name].shelf = Shelf(mine.values())
        # What an unfinished compaction left behind was history for a moment.
        stale = [
            version for bucket in self._buckets.values() for version in bucket.history.compact(compacted)
        ]
        if stale:
            self._forget(compacted, stale)

    def _kept(self) -> tuple[Sequence[Row], int]:
        """Return every row in memory, oldest first, and the version since which they are all there."""
        rows = {row.version: row for row in self._current.values()}
        for bucket in self._buckets.values():
            for row, previous in bucket.history.events:
                rows[row.version] = row
                if previous is not None:
                    rows[previous.version] = previous
        floor = max((bucket.history.floor for bucket in self._buckets.values()), default=0)
        return [rows[version] for version in sorted(rows)], max(floor, self._compacted)

    def _bucket(self, name: str) -> Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(self._window, self._compacted)
        return bucket

    def _shelf(self, name: str, bucket: Bucket, version: int) -> Shelf:
        known = self._snapshots.get((name, version))
        if known is not None and version >= bucket.history.floor:
            self._snapshots.move_to_end((name, version))
            return known
        shelf = bucket.at(version)
        if shelf is not bucket.shelf:
            self._snapshots[name, version] = shelf
            if len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return shelf

    def _refuse_compacted(self, version: int) -> None:
        if version < self._compacted:
            raise Gone(f"too old resource version: {version} ({self._compacted})")


def _judge(key: Key, newest: Row | None, expect: Expect | int, deleted: bool) -> None:
    if newest is None:
        if deleted or isinstance(expect, int):
            raise NotFound(f"there is no {key.namespace}/{key.name} in {key.bucket}")
    elif expect is Expect.ABSENT:
        raise AlreadyExists(f"there is a {key.namespace}/{key.name} in {key.bucket} already")
    elif expect is not Expect.ANY and expect != newest.version:
        raise Conflict(f"version {expect} was expected, and the newest is {newest.version}")


def _answer(future: asyncio.Future[bool], answer: bool) -> None:
    if not future.done():
        future.set_result(answer)


def _refuse(future: asyncio.Future[Row] | asyncio.Future[bool], error: StoreError) -> None:
    if not future.done():
        future.set_exception(StoreError(str(error), error.hint))
