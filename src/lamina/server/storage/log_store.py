"""
The log in memory: committed rows, accepted rows, readers.

Both stores derive from this class; they differ in how a batch is committed.

- `append` accepts a row synchronously: it checks preconditions, assigns the version,
  encodes and queues it.
- One batch is being committed at a time. Rows that are accepted meanwhile are the next
  batch.
- When a batch is committed, its rows are published (rows, history, readers) before its
  writers return, so that a writer can read its own write.
- Readers with a `deliver` callback are served after the writers, a few per iteration of
  the event loop, so that requests are handled in between. With many readers there is a
  pause between rounds: events that arrive meanwhile are delivered as one batch, which
  costs little more than one event.
- `compact` drops the replaced rows before a version. `compaction_timer` calls it, and
  `bucket_history` holds these rows until then.
- When a commit fails, the batch and everything queued behind it fail, because queued rows
  were checked against rows that do not exist. Their versions are not reused.

Everything runs on the event loop, so there are no locks.
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
from lamina.server.storage.bucket_history import Bucket, Window
from lamina.server.storage.encoding import encode_stored
from lamina.server.storage.sorted_rows import SortedRows
from lamina.server.storage.store import Event, Expect, Key, Listing, Row
from lamina.server.storage.watch_cursor import WatchCursor

ROW_LIMIT = 1024 * 1024 * 3 // 2
"""The maximum size of a row's value in bytes, as in etcd."""

_SNAPSHOTS = 8
_READERS_PER_TURN = 16
"""Readers that are served in one iteration of the event loop; one takes about as long as a read request."""
_ROUND_PAUSE = 0.004
"""Seconds between two rounds with many readers: less than network latency."""


def encode(obj: Made, version: int) -> bytes:
    """Return the value of a row; sets the version in `obj`."""
    obj["metadata"]["resourceVersion"] = str(version)
    return encode_stored(obj)


class LogStore(ABC):
    """A `Store` without durability."""

    def __init__(self, *, window: Window | None = None, row_limit: int = ROW_LIMIT) -> None:
        self._window = window or Window()
        self._row_limit = row_limit
        self._version = self._last_version = 1
        self._compacted = 0
        self._current: dict[Key, Row] = {}
        self._buckets: dict[str, Bucket] = {}
        self._snapshots: OrderedDict[tuple[str, int], SortedRows] = OrderedDict()
        self._accepted: dict[Key, Row] = {}
        self._queued: list[tuple[Row, asyncio.Future[Row]]] = []
        self._in_flight: list[tuple[Row, asyncio.Future[Row]]] = []
        # Futures that wait for a version to be committed, and whether a failed commit ends the
        # wait.
        self._version_waiters: list[tuple[int, asyncio.Future[bool], bool]] = []
        self._to_deliver: deque[WatchCursor] = deque()
        self._delivering = False
        # The number of readers that are still to be served in this round, and when the next round may begin.
        self._round, self._next_round = 0, 0.0
        self._drained: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        self._retired: set[str] = set()

    # Implemented by the two stores

    @abstractmethod
    def _commit(self, rows: Sequence[Row]) -> None:
        """Start making rows durable; `_committed` is called on the event loop when that succeeded or failed."""

    @abstractmethod
    def _forget(self, before: int, versions: Sequence[int]) -> None:
        """Start erasing replaced rows from storage, and record the compaction."""

    @abstractmethod
    async def _release(self) -> None:
        """Release resources. Everything accepted has been committed or has failed."""

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
            raise ValueError(f"version {version} is in the future: the newest is {self._version}")
        if held is None:
            self._refuse_compacted(version)
            return Listing((), version, 0)
        kept = held.rows if at is None else self._rows_at(bucket, held, version)
        rows, remaining = kept.page(namespace, after, limit)
        return Listing(rows, version, remaining)

    def count(self, bucket: str) -> int:
        held = self._buckets.get(bucket)
        return len(held.rows) if held else 0

    def changed(self, bucket: str) -> int:
        held = self._buckets.get(bucket)
        return held.history.end if held else 0

    def buckets(self, cluster: str = "") -> Sequence[str]:
        """Return the non-empty buckets of one cluster, sorted, by their names in the cluster."""
        prefix = f"{cluster}/" if cluster else ""
        return sorted(
            inner
            for name, bucket in self._buckets.items()
            if len(bucket.rows) and name.startswith(prefix) and "/" not in (inner := name[len(prefix) :])
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

    def watch(self, version: int, bucket: str, namespace: str | None = None) -> WatchCursor:
        return WatchCursor(self, self._bucket(bucket), namespace, version)

    async def wait_for(self, version: int, timeout: float) -> bool:
        if version <= self._version:
            return True
        if self._closed or timeout <= 0:
            return False
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bool] = loop.create_future()
        entry = (version, came, False)
        self._version_waiters.append(entry)
        timer = loop.call_later(timeout, _resolve, came, False)
        try:
            return await came
        finally:
            timer.cancel()
            if entry in self._version_waiters:
                self._version_waiters.remove(entry)

    async def wait_committed(self, row: Row) -> None:
        await self._wait_until_committed(row.version)

    async def flush(self) -> None:
        with suppress(StoreError):
            await self._wait_until_committed(self._last_version)

    async def _wait_until_committed(self, version: int) -> None:
        if version <= self._version:
            return
        entry = (version, asyncio.get_running_loop().create_future(), True)
        self._version_waiters.append(entry)
        try:
            await entry[1]
        finally:
            if entry in self._version_waiters:
                self._version_waiters.remove(entry)

    # Writing

    async def append(
        self, key: Key, obj: Made, *, expect: Expect | int = Expect.ANY, deleted: bool = False
    ) -> Row:
        if self._closing is not None:
            raise StoreError("the log is closed")
        newest = self.newest(key)
        _check_expected(key, newest, expect, deleted)
        version = self._last_version + 1
        value = encode(obj, version)
        if newest is None:
            "".join(key).encode()  # an invalid name fails here, alone, and not with its whole batch
        if len(value) > self._row_limit:
            raise TooLarge(f"the object is too large: {len(value)} bytes, and the limit is {self._row_limit}")
        self._last_version = version
        # The previous row's key is reused, so that its strings exist once, however often an object changes.
        key = newest.key if newest else Key(sys.intern(key.bucket), sys.intern(key.namespace), key.name)
        row = self._accepted[key] = Row(key, version, value, deleted)
        loop = asyncio.get_running_loop()
        written: asyncio.Future[Row] = loop.create_future()
        if not self._queued and not self._in_flight:
            # In the next iteration of the loop, so that other writes of this iteration are in the same batch.
            loop.call_soon(self._start_commit)
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
        self._drop_retired()

    def retire(self, cluster: str) -> None:
        """Record that a cluster was deleted: its buckets are dropped once their history is."""
        self._retired.update(name for name in self._buckets if name.startswith(f"{cluster}/"))

    def _drop_retired(self) -> None:
        """Drop the buckets of deleted clusters that have neither rows nor history."""
        for name in list(self._retired):
            bucket = self._buckets[name]
            if not len(bucket.rows) and not bucket.history.events:
                del self._buckets[name]
                self._retired.discard(name)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._finish_closing())
        # Waiting for the end may be cancelled; closing continues.
        await asyncio.shield(self._closing)

    async def _finish_closing(self) -> None:
        if self._queued or self._in_flight:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        self._closed = True
        for reader in self._to_deliver:
            reader.wake()
        for bucket in self._buckets.values():
            waiting, bucket.waiting = bucket.waiting, {}
            for readers in waiting.values():
                for reader in readers:
                    reader.resume(bucket.history.end)
                    reader.wake()
        for _, future, _ in self._version_waiters:
            _resolve(future, False)
        await self._release()

    # Commit

    def _start_commit(self) -> None:
        if self._queued and not self._in_flight:
            self._in_flight, self._queued = self._queued, []
            self._commit([row for row, _ in self._in_flight])

    def _committed(self, error: StoreError | None) -> None:
        """Publish the batch that was committed or, after an error, fail it and everything queued behind it."""
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
                _fail(written, error)
            for _, future, fails in self._version_waiters:
                if fails:
                    _fail(future, error)
        if self._to_deliver and not self._delivering:
            self._delivering = True
            asyncio.get_running_loop().call_soon(self._deliver_some)
        self._start_commit()
        if self._drained is not None and not self._in_flight and not self._drained.done():
            self._drained.set_result(None)

    def schedule_delivery(self, reader: WatchCursor) -> None:
        """Have a reader deliver its events, after the writers have returned."""
        self._to_deliver.append(reader)

    def _deliver_some(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._round:
            self._round = len(self._to_deliver)
            if self._round > _READERS_PER_TURN:
                now = loop.time()
                if now < self._next_round:
                    self._round = 0
                    loop.call_at(self._next_round, self._deliver_some)
                    return
                self._next_round = now + _ROUND_PAUSE
        count = min(self._round, _READERS_PER_TURN)
        self._round -= count
        for _ in range(count):
            self._to_deliver.popleft().deliver()
        self._delivering = bool(self._to_deliver)
        if self._delivering:
            loop.call_soon(self._deliver_some)

    def _publish(self, rows: Sequence[Row]) -> None:
        current, accepted = self._current, self._accepted
        for row in rows:
            key = row.key
            previous = current.pop(key, None) if row.deleted else current.get(key)
            if not row.deleted:
                current[key] = row
            if accepted.get(key) is row:
                del accepted[key]
            # Before the bucket wakes readers, so that they read the new version.
            self._version = row.version
            self._bucket(key.bucket).publish(row, previous)
        for version, future, _ in self._version_waiters:
            if version <= self._version:
                _resolve(future, True)

    # Rows in memory

    def _load(self, rows: Iterable[Row], *, version: int, compacted: int) -> None:
        """Load rows from storage, oldest first: those after the compaction are history too."""
        self._version = self._last_version = version
        self._compacted = compacted
        held: dict[str, dict[Key, Row]] = {}
        for row in rows:
            key = row.key
            bucket = self._bucket(key.bucket)
            objects = held.setdefault(key.bucket, {})
            bucket.history.add(Event(row, objects.pop(key, None)))
            if not row.deleted:
                objects[key] = row
        for name, objects in held.items():
            self._current.update(objects)
            self._buckets[name].rows = SortedRows(objects.values())
        # Rows that an interrupted compaction left were added to the history.
        stale = [
            version for bucket in self._buckets.values() for version in bucket.history.compact(compacted)
        ]
        if stale:
            self._forget(compacted, stale)

    def _all_rows(self) -> tuple[Sequence[Row], int]:
        """Return every row in memory, oldest first, and the version since which they are complete."""
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

    def _rows_at(self, name: str, bucket: Bucket, version: int) -> SortedRows:
        known = self._snapshots.get((name, version))
        if known is not None and version >= bucket.history.floor:
            self._snapshots.move_to_end((name, version))
            return known
        kept = bucket.at(version)
        if kept is not bucket.rows:
            self._snapshots[name, version] = kept
            if len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return kept

    def _refuse_compacted(self, version: int) -> None:
        if version < self._compacted:
            raise Gone(f"too old resource version: {version} ({self._compacted})")


def _check_expected(key: Key, newest: Row | None, expect: Expect | int, deleted: bool) -> None:
    if newest is None:
        if deleted or isinstance(expect, int):
            raise NotFound(f"there is no {key.namespace}/{key.name} in {key.bucket}")
    elif expect is Expect.ABSENT:
        raise AlreadyExists(f"there is a {key.namespace}/{key.name} in {key.bucket} already")
    elif expect is not Expect.ANY and expect != newest.version:
        raise Conflict(f"version {expect} was expected, and the newest is {newest.version}")


def _resolve(future: asyncio.Future[bool], answer: bool) -> None:
    if not future.done():
        future.set_result(answer)


def _fail(future: asyncio.Future[Row] | asyncio.Future[bool], error: StoreError) -> None:
    if not future.done():
        future.set_exception(StoreError(str(error), error.hint))
