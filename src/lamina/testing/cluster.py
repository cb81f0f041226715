"""
A cluster for a test: a whole control plane in this process, with a clock that stands still until it is wound.

It has no listener until somebody asks for a kubeconfig, so it is there in a few
milliseconds. What it answers is what the embedded server answers, which is what
a real one would.
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
from lamina.actors.stages.failures import MARKS
from lamina.client.client import Client
from lamina.client.kubeconfig import Access
from lamina.client.writing import write_kubeconfig
from lamina.clock import ManualClock, pass_time
from lamina.embedded import EmbeddedCluster
from lamina.errors import NotFound, SpecError, UnknownKind
from lamina.faults import Fault, Faults
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Condition, Made, Obj, Ref
from lamina.paper.rules import owned
from lamina.server.certificates import ensure_certificates
from lamina.server.identity import Authenticator
from lamina.server.listener import TlsFiles, listen, open_socket
from lamina.server.request import ADMIN
from lamina.settings import checked

__all__ = ["Cluster", "MakeClusters"]

_HOST = "127.0.0.1"
_ENDED = "this cluster has ended: what a test needs of it is asked for before that, or of another one"


class Cluster:
    """
    One cluster.

    `families` are those that run on it, `hooks` files with hooks for them,
    `simulate` says how much of a cluster there is: `pods` run, `controllers`
    make pods that stay Pending, or `off`. Clusters that are given one clock pass
    their time together.
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
        settings = checked(families=families, hooks=tuple(hooks), simulate=simulate, nodes=nodes)
        self.embedded = EmbeddedCluster(
            settings, name=name, clock=self.clock, authenticator=self._authenticator
        )
        self._client = self.embedded.client()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_ended = False
        self._stack = AsyncExitStack()
        self._kubeconfig: Path | None = None
        self.url = ""
        """Where it listens, once somebody has asked for a kubeconfig."""
        self.together: Callable[[], Awaitable[None]] = self.embedded.settled
        """What waits for everybody whose time passes with this cluster's."""

    async def __aenter__(self) -> Self:
        if self._has_ended:
            raise RuntimeError(_ENDED)
        _stay()
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
        """Return a client that reaches it without HTTP."""
        self._check()
        return self._client

    def _check(self) -> None:
        """Raise where somebody would wait forever: before it begins, after its end, and in another loop than its own."""
        if self._has_ended:
            raise RuntimeError(_ENDED)
        if self._loop is None:
            raise RuntimeError("this cluster has not begun: use it in `async with Cluster() as cluster:`")
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            # Where none runs, nobody awaits.
            return
        if self._loop is not running:
            raise RuntimeError(
                "this cluster lives in another event loop than the one it is used in: give the test and its "
                "fixtures one loop_scope, or enter `async with Cluster() as cluster:` in the test itself"
            )

    # ── objects ──

    async def given(self, *objects: Obj, settled: bool = False) -> Made:
        """Have objects there, made or applied, and return the last; with `settled`, once everybody has seen to it."""
        made: Made = {}
        for obj in objects:
            made = await self.client.apply(owned(obj), manager="given", force=True)
            if obj.get("kind") == "CustomResourceDefinition":
                await self.embedded.settled()
        if settled:
            await self.settled()
        return made

    async def get(self, what: Obj | Ref) -> Made:
        """Return an object as it is now."""
        return await self.client.get(_ref(what))

    async def is_gone(self, what: Obj | Ref) -> bool:
        """Say whether an object is there no more."""
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
        return await self.client.patch(_ref(what), owned(changes))

    async def delete(self, what: Obj | Ref) -> None:
        """Ask for the end of an object."""
        await self.client.delete(_ref(what))

    async def condition(self, what: Obj | Ref, name: str) -> Condition | None:
        """Return a condition of an object, if it has it."""
        said = ((await self.get(what)).get("status") or {}).get("conditions") or ()
        return conditions.find(said, name)

    async def events(self, about: Obj | Ref) -> Sequence[tuple[str, str]]:
        """Return what was told about an object: reasons and messages, in the order they were told."""
        ref = _ref(about)
        told = await self.list("Event", api_version="v1")
        mine = sorted((one for one in told if _is_about(one["involvedObject"], ref)), key=_since)
        return [(one.get("reason", ""), one.get("message", "")) for one in mine]

    def _kind(self, word: str, api_version: str) -> Kind | None:
        plain = word.lower()
        for kind in self.client.known:
            if plain in (kind.plural, kind.kind.lower()) and api_version in ("", kind.api_version):
                return kind
        return None

    # ── time ──

    async def settled(self) -> None:
        """Wait until nobody has anything to do but wait."""
        self._check()
        await self.together()

    async def pass_time(self, **span: float) -> None:
        """Let time pass, from one thing that is due to the next: `await cluster.pass_time(minutes=11)`."""
        self._check()
        await pass_time(self.clock, timedelta(**span), self.settled)

    # ── failure ──

    @property
    def faults(self) -> Faults:
        """Return what is to go wrong between clients and the server."""
        return self.embedded.api.faults

    @contextmanager
    def broken(self, *faults: Fault) -> Iterator[None]:
        """Have something go wrong for a while: `with cluster.broken(Refuse(code=503, verbs=("list",))):`."""
        added = [self.faults.add(fault) for fault in faults]
        try:
            yield
        finally:
            for fault in added:
                self.faults.remove(fault.id)

    async def fail(self, what: Obj | Ref, *, on: bool = True, **marks: str) -> Made:
        """
        Have pods fail: of a workload those it makes from now on, of a pod that one; a node falls silent.

        Without marks, pods of a workload crash. Marks are annotations without
        their `sim/`, as `ready_probability="0.5"`. With `on=False` it is taken back.
        """
        obj = await self.get(what)
        is_node = obj["kind"] == "Node"
        named = marks or ({"not_ready": "true"} if is_node else {"crash_share": "100%"})
        annotations = {
            f"sim/{name.replace('_', '-')}": value if on else None for name, value in named.items()
        }
        _check_marks(obj, annotations, (NOT_READY,) if is_node else MARKS)
        return await self.edit(meta.ref(obj), **_on_pods(obj, {"metadata": {"annotations": annotations}}))

    # ── a way in from outside ──

    async def kubeconfig(self) -> Path:
        """Return a kubeconfig that leads here, for programs that speak HTTP; the first to ask has it listen."""
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
    """Makes clusters whose time passes together; what is not said is as the test's mark says it."""

    def __call__(
        self,
        *names: str,
        families: str = ...,
        hooks: Sequence[Path] = ...,
        simulate: str = ...,
        nodes: int = ...,
    ) -> Awaitable[tuple[Cluster, ...]]: ...


@cache
def _stay() -> None:
    """Look at what was loaded until now no more: it stays, and looking for garbage in it takes longer than a cluster."""
    gc.freeze()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no garbage for a few milliseconds: nothing that a cluster begins with is any."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _check_marks(obj: Obj, marks: Iterable[str], known: Collection[str]) -> None:
    """Refuse what nobody would heed."""
    if obj["kind"] not in ("Node", "Pod") and _on_pods(obj, {}) == {}:
        raise SpecError(f"{meta.ref(obj)} has no pods that could fail")
    if stray := [one for one in marks if one not in known]:
        raise SpecError(f"{meta.ref(obj)}: nobody heeds {stray[0]}", hint=f"what is: {', '.join(known)}")


def _ref(what: Obj | Ref) -> Ref:
    return what if isinstance(what, Ref) else meta.ref(what)


def _is_about(involved: Obj, ref: Ref) -> bool:
    said = involved.get("kind"), involved.get("namespace") or "", involved.get("name")
    return said == (ref.kind, ref.namespace, ref.name)


def _since(event: Obj) -> tuple[str, int]:
    """Return what tells which of two events was told first, be it in the same second."""
    return str(meta.metadata(event).get("creationTimestamp")), int(meta.resource_version(event))


def _on_pods(obj: Obj, patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the patch of an object that patches the pods it makes; where it makes none, itself."""
    spec = obj.get("spec") or {}
    if "jobTemplate" in spec:
        return {"spec": {"jobTemplate": {"spec": {"template": patch}}}}
    return {"spec": {"template": patch}} if "template" in spec else patch
