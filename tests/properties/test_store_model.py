"""
The log against the plainest thing that does the same: a list of what happened.

Everything a store can be asked is answered by going through that list from the
beginning, at every step, for both stores.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamina.errors import AlreadyExists, Conflict, Gone, LaminaError, NotFound
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.sqlite import LEAP, SqliteStore, restore
from lamina.server.storage.store import Cursor, Event, Expect, Key, Row

BUCKETS = ("configmaps", "secrets")
NAMESPACES = ("a", "a-b", "b")
NAMES = ("x", "x.y", "y", "z")

keys = st.builds(Key, st.sampled_from(BUCKETS), st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
places = st.tuples(st.sampled_from(BUCKETS), st.none() | st.sampled_from(NAMESPACES))


class Write(NamedTuple):
    """One thing to do to the store; `expect` may be "current", which is filled in."""

    key: Key
    expect: str
    deleted: bool


class Happened(NamedTuple):
    version: int
    key: Key
    content: int
    deleted: bool


writes = st.builds(Write, keys, st.sampled_from(("any", "absent", "current", "wrong")), st.booleans())


class Model:
    """What happened, oldest first."""

    def __init__(self) -> None:
        self.happened: list[Happened] = []
        self.version = 1
        self.compacted = 0

    def held(self, at: int) -> dict[Key, Happened]:
        held: dict[Key, Happened] = {}
        for one in self.happened:
            if one.version <= at:
                held.pop(one.key, None)
                if not one.deleted:
                    held[one.key] = one
        return held

    def listed(self, bucket: str, namespace: str | None, at: int) -> list[Happened]:
        rows = [one for key, one in self.held(at).items() if key.bucket == bucket]
        rows = [one for one in rows if namespace in (None, one.key.namespace)]
        return sorted(rows, key=lambda one: f"{one.key.namespace}/{one.key.name}")

    def since(
        self, version: int, bucket: str, namespace: str | None
    ) -> list[tuple[Happened, Happened | None]]:
        return [
            (one, self.held(one.version - 1).get(one.key))
            for one in self.happened
            if one.version > version and one.key.bucket == bucket and namespace in (None, one.key.namespace)
        ]

    def judge(self, write: Write) -> type[LaminaError] | None:
        current = self.held(self.version).get(write.key)
        if current is None:
            return NotFound if write.deleted or write.expect in ("current", "wrong") else None
        return {"absent": AlreadyExists, "wrong": Conflict}.get(write.expect)


def content(row: Row) -> Happened:
    value: dict[str, Any] = orjson.loads(row.value)
    assert value["metadata"]["resourceVersion"] == str(row.version)
    return Happened(row.version, row.key, value["content"], row.deleted)


def contents(events: list[Event]) -> list[tuple[Happened, Happened | None]]:
    return [(content(row), content(previous) if previous else None) for row, previous in events]


class StoreMachine(RuleBasedStateMachine):
    """Random operations on a store and on the model."""

    which: ClassVar[str]

    @initialize()
    def open(self) -> None:
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.data = Path(self.folder.name) / "data"
        self.model = Model()
        self.count = 0
        self.followers: list[tuple[Cursor, int, str, str | None]] = []
        self.store: LogStore = self.made()

    def made(self) -> LogStore:
        return MemoryStore() if self.which == "memory" else SqliteStore.open(self.data)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.loop.run(self.store.close())
            self.loop.close()
            self.folder.cleanup()

    @rule(batch=st.lists(writes, min_size=1, max_size=6))
    def write(self, batch: list[Write]) -> None:
        """Several writers at once: each is judged by what the one before it did."""
        self.loop.run(self.write_all(batch))

    async def write_all(self, batch: list[Write]) -> None:
        expected: list[Happened | type[LaminaError]] = []
        tasks = []
        for write in batch:
            self.count += 1
            newest = self.store.newest(write.key)
            current = newest.version if newest else 1
            choices: dict[str, Expect | int] = {
                "any": Expect.ANY,
                "absent": Expect.ABSENT,
                "current": current,
                "wrong": current - 1,
            }
            refused = self.model.judge(write)
            if refused:
                expected.append(refused)
            else:
                self.model.version += 1
                done = Happened(self.model.version, write.key, self.count, write.deleted)
                self.model.happened.append(done)
                expected.append(done)
            obj = {"metadata": {"name": write.key.name}, "content": self.count}
            tasks.append(
                asyncio.ensure_future(
                    self.store.append(write.key, obj, expect=choices[write.expect], deleted=write.deleted)
                )
            )
            await asyncio.sleep(0)  # accepted; some are committed before the next one comes
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [content(o) if isinstance(o, Row) else type(o) for o in outcomes] == expected

    @rule(place=places, back=st.integers(0, 12), limit=st.integers(0, 5))
    def list_in_pages(self, place: tuple[str, str | None], back: int, limit: int) -> None:
        bucket, namespace = place
        at = max(1, self.model.version - back)
        if at < self.model.compacted:
            with pytest.raises(Gone):
                self.store.list(bucket, namespace, at=at, limit=limit)
            return
        expected = self.model.listed(bucket, namespace, at)
        seen: list[Happened] = []
        after = None
        # A page has a row at least.
        for _ in range(len(expected) + 1):
            page = self.store.list(bucket, namespace, at=at, after=after, limit=limit)
            seen += [content(row) for row in page.rows]
            assert page.version == at
            assert page.remaining == len(expected) - len(seen)
            if not page.remaining:
                break
            after = (page.rows[-1].key.namespace, page.rows[-1].key.name)
        assert seen == expected

    @rule(place=places, back=st.integers(0, 12))
    def look_back(self, place: tuple[str, str | None], back: int) -> None:
        bucket, namespace = place
        version = max(0, self.model.version - back)
        if version < self.model.compacted:
            with pytest.raises(Gone):
                self.store.since(version, bucket, namespace)
        else:
            events = list(self.store.since(version, bucket, namespace))
            assert contents(events) == self.model.since(version, bucket, namespace)

    @rule(place=places, back=st.integers(0, 5))
    def watch(self, place: tuple[str, str | None], back: int) -> None:
        version = max(self.model.compacted, self.model.version - back)
        self.followers.append((self.store.watch(version, *place), version, *place))

    @rule()
    def read_on(self) -> None:
        """Every follower has what happened since it was last asked, unless it is compacted away."""
        self.followers = [self.loop.run(self.read(*each)) for each in self.followers]

    async def read(
        self, follower: Cursor, version: int, bucket: str, namespace: str | None
    ) -> tuple[Cursor, int, str, str | None]:
        expected = self.model.since(version, bucket, namespace)
        seen: list[Event] = []
        try:
            while batch := await follower.next(timeout=0):
                seen += batch
        except Gone:
            missed = [one for one, _ in self.model.since(version, bucket, None)]
            assert missed[0].version <= self.model.compacted
            return (
                self.store.watch(self.model.version, bucket, namespace),
                self.model.version,
                bucket,
                namespace,
            )
        assert contents(seen) == expected
        assert follower.version == self.model.version
        return follower, self.model.version, bucket, namespace

    @rule(back=st.integers(-2, 8))
    def compact(self, back: int) -> None:
        before = self.model.version - back
        self.store.compact(before)
        self.model.compacted = max(self.model.compacted, min(before, self.model.version))

    @precondition(lambda self: self.which == "sqlite")
    @rule()
    def reopen(self) -> None:
        self.loop.run(self.store.close())
        self.followers = []
        self.store = self.made()

    @rule()
    def restore_a_copy(self) -> None:
        """What is current is in the copy, and nothing older can be asked for."""
        copy, data = Path(self.folder.name) / "copy.db", Path(self.folder.name) / f"restored-{self.count}"
        self.count += 1
        self.loop.run(self.store.backup(copy))
        restore(copy, data)
        restored = SqliteStore.open(data)
        assert restored.version == restored.compacted == self.model.version + LEAP
        for bucket in BUCKETS:
            rows = [content(row) for row in restored.list(bucket).rows]
            assert rows == self.model.listed(bucket, None, self.model.version)
        self.loop.run(restored.close())

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.version == self.model.version
        assert self.store.compacted == self.model.compacted
        held = self.model.held(self.model.version)
        assert self.store.buckets() == sorted({key.bucket for key in held})
        for bucket in BUCKETS:
            assert self.store.count(bucket) == len([key for key in held if key.bucket == bucket])
            for namespace in NAMESPACES:
                for name in NAMES:
                    key = Key(bucket, namespace, name)
                    row = self.store.get(key)
                    assert (content(row) if row else None) == held.get(key)
                    assert self.store.newest(key) is row


class SqliteMachine(StoreMachine):
    which = "sqlite"


class MemoryMachine(StoreMachine):
    which = "memory"


SOME = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = SOME
TestMemory = MemoryMachine.TestCase
TestMemory.settings = SOME
