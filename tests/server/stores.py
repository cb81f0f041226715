"""Both stores, and small objects to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from lamina.objects.types import Made
from lamina.server.bucket import Window
from lamina.server.log import ROW_LIMIT, Log
from lamina.server.memory import MemoryStore
from lamina.server.sqlite import SqliteStore
from lamina.server.store import Event, Follower, Key, Row

STORES = ("sqlite", "memory")


@asynccontextmanager
async def opened(
    which: str, data_dir: Path, *, window: Window | None = None, row_limit: int = ROW_LIMIT
) -> AsyncIterator[Log]:
    store: Log = (
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
    store: Log, name: str, namespace: str = "default", bucket: str = "configmaps", **data: str
) -> Row:
    return await store.append(key(name, namespace, bucket), obj(name, namespace, **data))


async def drop(store: Log, name: str, namespace: str = "default", bucket: str = "configmaps") -> Row:
    return await store.append(key(name, namespace, bucket), obj(name, namespace), deleted=True)


def names(rows: Sequence[Row]) -> list[str]:
    return [f"{row.key.namespace}/{row.key.name}" for row in rows]


def told(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return what events say, as a watch would."""
    return list(_told(events))


def _told(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    for row, previous in events:
        yield ("DELETED" if row.deleted else "MODIFIED" if previous else "ADDED"), row.key.name


async def collect(follower: Follower, count: int) -> list[Event]:
    """Read until there are so many events."""
    events: list[Event] = []
    while len(events) < count:
        events += await anext(follower)
    return events
