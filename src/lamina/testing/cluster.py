"""
A cluster for a test: API server and controllers in this process, with a manual clock.

It starts in a few milliseconds, since it has no listener until a test asks for a
kubeconfig. Its API server is the embedded one, which follows kube-apiserver.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from lamina.actors.nodes import NOT_READY
from lamina.actors.stages.failures import ANNOTATIONS
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access
from lamina.client.kubeconfig.write import write_kubeconfig
from lamina.clock import ManualClock, pass_time
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.errors import NotFound, SpecError, UnknownKind
from lamina.faults import Fault, Faults
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Condition, Made, Obj, Ref
from lamina.server.api.authn import Authenticator
from lamina.server.http.listener import TlsFiles, listen, open_socket
from lamina.server.identity import ADMIN
from lamina.server.tls.certificates import ensure_certificates
from lamina.settings import validated
from lamina.simulation.cluster.object_rules import deep_copy

__all__ = ["Cluster", "MakeClusters"]

_HOST = "127.0.0.1"
_ENDED = "this cluster has been stopped: read what the test needs before that, or use another cluster"


class Cluster:
    """
    One cluster.

    `families` are those that run on it, `hooks` are files with their hooks. `simulate`
    is the level of simulation: `pods` run, `controllers` create pods that stay Pending,
    or `off`. Clusters that share a clock advance together.
    """

    def __init__(
        self,
        name: str = "",
        *,
        clock: ManualClock | None = None,
        families: str = "none",
        hooks: Sequence[Path] = (),
        simulate: str = "pods",
        nodes: int = 1,
    ) -> None:
        self.name = name
        self.clock = clock or ManualClock()
        self._token = secrets.token_urlsafe(16)
        self._authenticator = Authenticator({self._token: ADMIN})
        settings = validated(families=families, hooks=tuple(hooks), simulate=simulate, nodes=nodes)
        self.embedded = EmbeddedCluster(
            settings, name=name, clock=self.clock, authenticator=self._authenticator
        )
        self._client = self.embedded.client()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_ended = False
        self._stack = AsyncExitStack()
        self._kubeconfig: Path | None = None
        self.url = ""
        """Its URL, once `kubeconfig` has been called."""
        self.together: Callable[[], Awaitable[None]] = self.embedded.settled
        """Waits until all clusters that share its clock are idle."""

    async def __aenter__(self) -> Self:
        if self._has_ended:
            raise RuntimeError(_ENDED)
        _freeze_modules()
        self._loop = asyncio.get_running_loop()
        with _uncollected():
            await self._stack.enter_async_context(self.embedded)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended = True
        with _uncollected():
            await self._stack.aclose()

    @property
    def client(self) -> Client:
        """Return a client of this cluster without HTTP."""
        self._check()
        return self._client

    def _check(self) -> None:
        """Raise where a call would wait forever: before the start, after the stop, and in another event loop."""
        if self._has_ended:
            raise RuntimeError(_ENDED)
        if self._loop is None:
            raise RuntimeError("this cluster is not started: use it in `async with Cluster() as cluster:`")
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            # Without a running loop nothing is awaited.
            return
        if self._loop is not running:
            raise RuntimeError(
                "this cluster runs in another event loop: give the test and its fixtures one loop_scope, "
                "or enter `async with Cluster() as cluster:` in the test itself"
            )

    # ── objects ──

    async def given(self, *objects: Obj, settled: bool = False) -> Made:
        """Apply objects, and return the last; with `settled`, wait until all controllers are idle."""
        applied: Made = {}
        for obj in objects:
            applied = await self.client.apply(deep_copy(obj), manager="given", force=True)
            if obj.get("kind") == "CustomResourceDefinition":
                await self.embedded.settled()
        if settled:
            await self.settled()
        return applied

    async def get(self, what: Obj | Ref) -> Made:
        """Return an object."""
        return await self.client.get(_ref(what))

    async def is_gone(self, what: Obj | Ref) -> bool:
        """Say whether an object does not exist."""
        try:
            await self.get(what)
        except NotFound:
            return True
        return False

    async def list(
        self, kind: str, namespace: str = "", *, api_version: str = "", labels: str = ""
    ) -> list[Made]:
        """Return the objects of a kind, by its name or plural: `await cluster.list("pods")`."""
        found = self._kind(kind, api_version)
        if found is None:
            await self.client.discover()
            found = self._kind(kind, api_version)
        if found is None:
            raise UnknownKind(api_version or "any version", kind)
        return list((await self.client.list(found, namespace, labels=labels)).items)

    async def edit(self, what: Obj | Ref, **changes: Any) -> Made:
        """Change an object by a merge patch: `await cluster.edit(web, spec={"replicas": 5})`."""
        return await self.client.patch(_ref(what), deep_copy(changes))

    async def delete(self, what: Obj | Ref) -> None:
        """Delete an object."""
        await self.client.delete(_ref(what))

    async def condition(self, what: Obj | Ref, name: str) -> Condition | None:
        """Return a condition of an object; None if it does not have it."""
        found = ((await self.get(what)).get("status") or {}).get("conditions") or ()
        return conditions.find(found, name)

    async def events(self, about: Obj | Ref) -> Sequence[tuple[str, str]]:
        """Return the reasons and messages of the events about an object, in order of creation."""
        ref = _ref(about)
        events = await self.list("Event", api_version="v1")
        found = sorted((one for one in events if _is_about(one["involvedObject"], ref)), key=_created)
        return [(one.get("reason", ""), one.get("message", "")) for one in found]

    def _kind(self, word: str, api_version: str) -> Kind | None:
        plain = word.lower()
        for kind in self.client.known_kinds:
            if plain in (kind.plural, kind.kind.lower()) and api_version in ("", kind.api_version):
                return kind
        return None

    # ── time ──

    async def settled(self) -> None:
        """Wait until all controllers are idle."""
        self._check()
        await self.together()

    async def pass_time(self, **span: float) -> None:
        """Advance the clock from timer to timer, until all are idle: `await cluster.pass_time(minutes=11)`."""
        self._check()
        await pass_time(self.clock, timedelta(**span), self.settled)

    # ── failure ──

    @property
    def faults(self) -> Faults:
        """Return the faults of requests to its API server."""
        return self.embedded.api.faults

    @contextmanager
    def broken(self, *faults: Fault) -> Iterator[None]:
        """Activate faults during a block: `with cluster.broken(Refuse(code=503, verbs=("list",))):`."""
        added = [self.faults.add(fault) for fault in faults]
        try:
            yield
        finally:
            for fault in added:
                self.faults.remove(fault.id)

    async def fail(self, what: Obj | Ref, *, on: bool = True, **marks: str) -> Made:
        """
        Make pods fail: the future pods of a workload, or a pod itself; a node becomes unreachable.

        Without marks, pods of a workload crash. Marks are annotations without the prefix
        `sim/`, as `ready_probability="0.5"`. `on=False` removes them.
        """
        obj = await self.get(what)
        is_node = obj["kind"] == "Node"
        chosen = marks or ({"not_ready": "true"} if is_node else {"crash_share": "100%"})
        annotations = {
            f"sim/{name.replace('_', '-')}": value if on else None for name, value in chosen.items()
        }
        _check_marks(obj, annotations, (NOT_READY,) if is_node else ANNOTATIONS)
        return await self.edit(meta.ref(obj), **_on_pods(obj, {"metadata": {"annotations": annotations}}))

    # ── HTTP ──

    async def kubeconfig(self) -> Path:
        """Return a kubeconfig, for programs that use HTTP; the first call starts the listener."""
        self._check()
        if self._kubeconfig is None:
            folder = Path(tempfile.mkdtemp(prefix="lamina-testing-"))
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            issued = ensure_certificates(folder / "pki", [_HOST], ADMIN.name, ("system:masters",))
            opened = open_socket(_HOST, 0)
            self._stack.callback(opened.close)
            files = TlsFiles(issued.server.certificate, issued.server.key, issued.authority.certificate)
            listener = await listen(opened, self.embedded.api, self._authenticator, files)
            self._stack.push_async_callback(listener.stop)
            self.url = f"https://{_HOST}:{opened.getsockname()[1]}"
            access = Access(server=self.url, authority=issued.authority.certificate_pem, token=self._token)
            file = folder / "kubeconfig"
            write_kubeconfig(file, access, name=self.name or "lamina")
            self._kubeconfig = file
        return self._kubeconfig


class MakeClusters(Protocol):
    """Starts clusters that share a clock; settings that are not given are those of the test's mark."""

    def __call__(
        self,
        *names: str,
        families: str = ...,
        hooks: Sequence[Path] = ...,
        simulate: str = ...,
        nodes: int = ...,
    ) -> Awaitable[tuple[Cluster, ...]]: ...


@cache
def _freeze_modules() -> None:
    """Exclude the loaded modules from garbage collection, which takes longer than the start of a cluster."""
    gc.freeze()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection during a block: starts and stops allocate little garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _check_marks(obj: Obj, marks: Iterable[str], known: Collection[str]) -> None:
    """Raise SpecError for annotations that have no effect."""
    if obj["kind"] not in ("Node", "Pod") and _on_pods(obj, {}) == {}:
        raise SpecError(f"{meta.ref(obj)} has no pods that could fail")
    if unknown := [one for one in marks if one not in known]:
        raise SpecError(
            f"{meta.ref(obj)}: {unknown[0]} has no effect", hint=f"known annotations: {', '.join(known)}"
        )


def _ref(what: Obj | Ref) -> Ref:
    return what if isinstance(what, Ref) else meta.ref(what)


def _is_about(involved: Obj, ref: Ref) -> bool:
    identity = involved.get("kind"), involved.get("namespace") or "", involved.get("name")
    return identity == (ref.kind, ref.namespace, ref.name)


def _created(event: Obj) -> tuple[str, int]:
    """Return the sort key of an event; the resource version orders those of one second."""
    return str(meta.metadata(event).get("creationTimestamp")), int(meta.resource_version(event))


def _on_pods(obj: Obj, patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a patch of the object's pod template; of an object without one, a patch of the object itself."""
    spec = obj.get("spec") or {}
    if "jobTemplate" in spec:
        return {"spec": {"jobTemplate": {"spec": {"template": patch}}}}
    return {"spec": {"template": patch}} if "template" in spec else patch
