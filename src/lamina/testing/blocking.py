"""The same cluster for tests that do not await: it lives in a thread, and whoever asks waits."""

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

__all__ = ["BlockingCluster"]

Result = TypeVar("Result")


class BlockingCluster:
    """
    A cluster in a thread of its own.

    For programs that block or bring their own loop, such as kopf or the official
    client: they reach it by its kubeconfig. Its settings are those of `Cluster`,
    and its clock is its own.
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
        # Not before: a loop has sockets, and whoever never enters never closes them.
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
        made = self._make()
        await made.__aenter__()
        self._cluster = made

    @property
    def cluster(self) -> Cluster:
        """Return the same, for its own thread alone."""
        if self._cluster is None:
            raise RuntimeError(
                "this cluster has ended: what a test needs of it is asked for before that"
                if self._has_ended
                else "this cluster has not begun: use it in `with BlockingCluster() as cluster:`"
            )
        return self._cluster

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ending, self._cluster, self._has_ended = self.cluster, None, True
        try:
            self._wait(ending.__aexit__(None, None, None))
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
        """Return a kubeconfig that leads here."""
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
        """Have something go wrong for a while: `with cluster.broken(Refuse(code=503, verbs=("list",))):`."""
        breaking = self.cluster.broken(*faults)
        self._wait(_done(breaking.__enter__))
        try:
            yield
        finally:
            self._wait(_done(lambda: breaking.__exit__(None, None, None)))

    @property
    def now(self) -> datetime:
        """Return what time it is there."""
        return self.cluster.clock.now()

    def settled(self) -> None:
        self._wait(self.cluster.settled())

    def pass_time(self, **span: float) -> None:
        self._wait(self.cluster.pass_time(**span))

    def until(self, what: Obj | Ref, is_so: Callable[[Made], object], seconds: float = 30.0) -> Made:
        """Wait until an object is as somebody outside is to make it, and return it; TimeoutError if that never comes."""
        return self._wait(_until(self.cluster, what, is_so, seconds))


async def _until(cluster: Cluster, what: Obj | Ref, is_so: Callable[[Made], object], seconds: float) -> Made:
    found: Made | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    found = await cluster.get(what)
                except NotFound:
                    found = None
                if found is not None and is_so(found):
                    return found
                await asyncio.sleep(0.02)
    except TimeoutError:
        ref = what if isinstance(what, Ref) else meta.ref(what)
        how = "is not there" if found is None else "is not as it should be"
        last = "" if found is None else f": {_shown(found)}"
        raise TimeoutError(f"{ref} {how} after {seconds:g} s{last}") from None


def _shown(obj: Made) -> str:
    """Return an object as its last state is told, without who wrote which field of it."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return json.dumps({**obj, "metadata": metadata})


async def _done(work: Callable[[], object]) -> None:
    """Do something where whatever it touches lives."""
    work()
