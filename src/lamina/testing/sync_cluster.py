"""The test cluster for blocking code: it runs in a thread, and its methods block."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from lamina.errors import NotFound
from lamina.faults import Fault
from lamina.objects import meta
from lamina.objects.types import Condition, Made, Obj, Ref
from lamina.testing.cluster import Cluster
from lamina.testing.waiting import eventually

__all__ = ["SyncCluster"]

Result = TypeVar("Result")


class SyncCluster:
    """
    A cluster in a thread of its own.

    For programs that block or have their own event loop, such as kopf or the official
    client, which use its kubeconfig. It has the settings of `Cluster` and its own clock.
    """

    def __init__(
        self,
        name: str = "",
        *,
        families: str = "none",
        hooks: Sequence[Path] = (),
        simulate: str = "pods",
        nodes: int = 1,
    ) -> None:
        self._make = partial(Cluster, name, families=families, hooks=hooks, simulate=simulate, nodes=nodes)
        self._cluster: Cluster | None = None
        self._has_ended = False
        self._loop: asyncio.AbstractEventLoop
        self._thread: Thread

    def __enter__(self) -> Self:
        self._has_ended = False
        # Not in __init__: a loop has sockets, which only __exit__ closes.
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="lamina-testing", daemon=True)
        self._thread.start()
        try:
            self._wait(self._start())
        except BaseException:
            self._end()
            raise
        return self

    async def _start(self) -> None:
        cluster = self._make()
        await cluster.__aenter__()
        self._cluster = cluster

    @property
    def cluster(self) -> Cluster:
        """Return the asynchronous cluster, to be used in its own thread only."""
        if self._cluster is None:
            raise RuntimeError(
                "this cluster has been stopped: read what the test needs before that"
                if self._has_ended
                else "this cluster is not started: use it in `with SyncCluster() as cluster:`"
            )
        return self._cluster

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cluster, self._cluster, self._has_ended = self.cluster, None, True
        try:
            self._wait(cluster.__aexit__(None, None, None))
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def kubeconfig(self) -> Path:
        """Return a kubeconfig of this cluster."""
        return self._wait(self.cluster.kubeconfig())

    def given(self, *objects: Obj, settled: bool = False) -> Made:
        return self._wait(self.cluster.given(*objects, settled=settled))

    def get(self, what: Obj | Ref) -> Made:
        return self._wait(self.cluster.get(what))

    def is_gone(self, what: Obj | Ref) -> bool:
        return self._wait(self.cluster.is_gone(what))

    def list(self, kind: str, namespace: str = "", *, api_version: str = "", labels: str = "") -> list[Made]:
        return self._wait(self.cluster.list(kind, namespace, api_version=api_version, labels=labels))

    def edit(self, what: Obj | Ref, **changes: Any) -> Made:
        return self._wait(self.cluster.edit(what, **changes))

    def delete(self, what: Obj | Ref) -> None:
        self._wait(self.cluster.delete(what))

    def condition(self, what: Obj | Ref, name: str) -> Condition | None:
        return self._wait(self.cluster.condition(what, name))

    def events(self, about: Obj | Ref) -> Sequence[tuple[str, str]]:
        return self._wait(self.cluster.events(about))

    def fail(self, what: Obj | Ref, *, on: bool = True, **marks: str) -> Made:
        return self._wait(self.cluster.fail(what, on=on, **marks))

    @contextmanager
    def broken(self, *faults: Fault) -> Iterator[None]:
        """Activate faults during a block: `with cluster.broken(Refuse(code=503, verbs=("list",))):`."""
        block = self.cluster.broken(*faults)
        self._wait(_call(block.__enter__))
        try:
            yield
        finally:
            self._wait(_call(lambda: block.__exit__(None, None, None)))

    @property
    def now(self) -> datetime:
        """Return the time of its clock."""
        return self.cluster.clock.now()

    def settled(self) -> None:
        self._wait(self.cluster.settled())

    def pass_time(self, **span: float) -> None:
        self._wait(self.cluster.pass_time(**span))

    def eventually(self, what: Obj | Ref, condition: Callable[[Made], object], seconds: float = 30.0) -> Made:
        """Wait until an object meets a condition, for example by a write of another program, and return it."""
        return self._wait(_eventually(self.cluster, what, condition, seconds))


async def _eventually(
    cluster: Cluster, what: Obj | Ref, condition: Callable[[Made], object], seconds: float
) -> Made:
    async def read() -> Made | None:
        try:
            return await cluster.get(what)
        except NotFound:
            return None

    ref = what if isinstance(what, Ref) else meta.ref(what)
    found = await eventually(
        read,
        lambda obj: obj is not None and condition(obj),
        seconds=seconds,
        describe=lambda obj: f"{ref}: {_without_managed_fields(obj) if obj is not None else 'not found'}",
    )
    assert found is not None
    return found


def _without_managed_fields(obj: Made) -> str:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return json.dumps({**obj, "metadata": metadata})


async def _call(function: Callable[[], object]) -> None:
    """Call a function in the thread of the cluster."""
    function()
