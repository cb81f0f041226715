"""Both stores, and small objects to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from lamina.objects.types import Made
from lamina.server.storage.bucket_history import Window
from lamina.server.storage.log_store import ROW_LIMIT, LogStore
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.sqlite import SqliteStore
from lamina.server.storage.store import Cursor, Event, Key, Row

STORES = ("sqlite", "memory")


@asynccontextmanager
async def opened(
    which: str, data_dir: Path, *, window: Window | None = None, row_limit: int = ROW_LIMIT
) -> AsyncIterator[LogStore]:
    store: LogStore = (
        MemoryStore(window=window, row_limit=row_limit)
        if which == "memory"
        else SqliteStore.open(data_dir, window=window, row_limit=row_limit)
    )
    try:
        yield store
    finally:
        await store.close()


def key(name: str, namespace: str = "default", bucket: str = "configmaps") -> Key:
    return Key(bucket, namespace, name)


def obj(name: str, namespace: str = "default", **data: str) -> Made:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def put(
    store: LogStore, name: str, namespace: str = "default", bucket: str = "configmaps", **data: str
) -> Row:
    return await store.append(key(name, namespace, bucket), obj(name, namespace, **data))


async def drop(store: LogStore, name: str, namespace: str = "default", bucket: str = "configmaps") -> Row:
    return await store.append(key(name, namespace, bucket), obj(name, namespace), deleted=True)


def names(rows: Sequence[Row]) -> list[str]:
    return [f"{row.key.namespace}/{row.key.name}" for row in rows]


def as_watch(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return events in the form of a watch."""
    return list(_as_watch(events))


def _as_watch(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    for row, previous in events:
        yield ("DELETED" if row.deleted else "MODIFIED" if previous else "ADDED"), row.key.name


async def collect(follower: Cursor, count: int) -> list[Event]:
    """Read a number of events."""
    events: list[Event] = []
    while len(events) < count:
        events += await anext(follower)
    return events
