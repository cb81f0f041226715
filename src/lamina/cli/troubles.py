"""
What is broken on request: on the server, where answers are concerned, and on objects, where pods and nodes are.

Both are put in force, shown and taken back through the same few functions, and
by requests that no fault hits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson
from msgspec import Struct, field

from lamina.actors.nodes import NOT_READY
from lamina.actors.stages.failures import PLACE, How, failures_in
from lamina.cli.amounts import as_length, as_share
from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import Access
from lamina.errors import AlreadyExists, Conflict, Forbidden, NotFound, SettingsError, Unauthorized
from lamina.faults import Cut, Expire, Fault, Refuse, Silence, Slow, Stale, read_fault, shown
from lamina.objects import meta
from lamina.objects.types import Made, Ref

MENDER = "lamina-chaos"
"""What we call ourselves: a server that is told to break things spares whoever mends them."""
_FAULTS = "/lamina/faults"
_DOWN = "node-down-"

Result = TypeVar("Result")


class Trouble(Struct, frozen=True, kw_only=True):
    """One thing that is broken: the name it is taken back by, what it is, and how often it was met with."""

    id: str
    what: str
    met: int | None = None
    data: Made = field(default_factory=dict)

    def as_json(self) -> Made:
        return {
            "id": self.id,
            "what": self.what,
            **self.data,
            **({} if self.met is None else {"met": self.met}),
        }


def mending(access: Access, work: Callable[[Troubles], Awaitable[Result]]) -> Result:
    """Do something about what is broken on a cluster."""

    async def run() -> Result:
        client = Client(HttpTransport(access), manager=MENDER)
        try:
            return await work(Troubles(client, access.server))
        finally:
            await client.close()

    return asyncio.run(run())


class Troubles:
    """What is broken on one cluster."""

    def __init__(self, client: Client, server: str) -> None:
        self._client, self._server = client, server

    async def every(self) -> list[Trouble]:
        """Return all that is broken."""
        try:
            faults = await self._faults()
        except SettingsError:
            # A server that takes no faults may have objects that say something.
            faults = []
        return [*faults, *await self._failures(), *await self._nodes()]

    # ── answers ──

    async def break_answers(self, fault: Fault) -> Trouble:
        made = await self._page("POST", body=shown(fault))
        return _of_fault(made)

    async def _faults(self) -> list[Trouble]:
        return [_of_fault(one) for one in (await self._page("GET"))["faults"]]

    async def _page(self, method: str, below: str = "", body: Made | None = None) -> Made:
        sent = orjson.dumps(body) if body is not None else None
        try:
            answer = await self._client.request(method, f"{_FAULTS}{below}", body=sent)
            read = orjson.loads(answer)
        except (NotFound, Forbidden, Unauthorized, orjson.JSONDecodeError) as refused:
            if below and isinstance(refused, NotFound):
                raise
            raise SettingsError(
                f"{self._server} does not break its answers on request",
                hint="only the server of `lamina up` does, for whoever administers it",
            ) from None
        assert isinstance(read, dict)
        return read

    # ── pods ──

    async def fail_pods(self, image: str, share: float, how: How) -> Trouble:
        """Have a share of the pods of an image fail."""
        said = {"image": image, "share": as_share(share), "how": str(how)}
        for _ in range(5):
            there = await self._config_map()
            name = _free_name("fail", (there or {}).get("data") or {})
            entry = {name: json.dumps(said)}
            try:
                if there is None:
                    await self._client.create(_config_map(entry))
                else:
                    metadata = {"resourceVersion": meta.resource_version(there)}
                    await self._client.patch(PLACE, {"metadata": metadata, "data": entry})
            except (AlreadyExists, Conflict):
                continue
            return _of_failure(name, said)
        raise SettingsError(f"{PLACE} changes too fast to be written")

    async def _failures(self) -> list[Trouble]:
        return [
            _of_failure(one.name, {"image": one.image, "share": as_share(one.share), "how": str(one.how)})
            for one in failures_in(await self._config_map())
        ]

    async def _config_map(self) -> Made | None:
        try:
            return await self._client.get(PLACE)
        except NotFound:
            return None

    # ── nodes ──

    async def take_down(self, node: str) -> Trouble:
        """Have a node fall silent."""
        try:
            await self._client.patch(_node(node), {"metadata": {"annotations": {NOT_READY: "true"}}})
        except NotFound:
            names = ", ".join(meta.name(one) for one in await self._all_nodes()) or "none"
            raise SettingsError(f"there is no node {node!r}; the nodes are {names}") from None
        return _of_node(node)

    async def _nodes(self) -> list[Trouble]:
        return [
            _of_node(meta.name(one))
            for one in await self._all_nodes()
            if meta.annotations(one).get(NOT_READY, "false") != "false"
        ]

    async def _all_nodes(self) -> tuple[Made, ...]:
        return (await self._client.list(("v1", "Node"), metadata_only=True)).items

    # ── mending ──

    async def mend(self, trouble: Trouble) -> None:
        """Take one thing back."""
        match trouble.data.get("sort"):
            case "node":
                gone = {"metadata": {"annotations": {NOT_READY: None}}}
                await self._client.patch(_node(trouble.data["node"]), gone)
            case "pods":
                await self._client.patch(PLACE, {"data": {trouble.id: None}})
            case _:
                await self._page("DELETE", f"/{trouble.id}")


def sentence(fault: Fault) -> str:
    """Return what a fault does, in words."""
    return _done(fault, _whom(fault)) + _bound(fault)


def _done(fault: Fault, who: str) -> str:
    match fault:
        case Silence(after=after):
            return f"{who} get no answer" + (", though they are carried out" if after else "")
        case Slow(seconds=seconds):
            return f"{who} are answered {as_length(seconds)} late"
        case Refuse(code=code, after=after):
            return f"{who} are answered {code}" + (", though they are carried out" if after else "")
        case Cut(events=events):
            return (
                f"{who} end after {events} event{'s' if events != 1 else ''}"
                if events
                else f"{who} that are open end"
            )
        case Expire():
            return f"{who} that go on where they were are answered 410"
        case Stale(seconds=None, versions=None):
            return f"{who} show the cluster as it was"
        case Stale(seconds=seconds, versions=versions):
            behind = f"{versions} versions" if seconds is None else as_length(seconds)
            return f"{who} are {behind} behind"


def _whom(fault: Fault) -> str:
    verbs = fault.verbs or type(fault).usual
    words = {"watch": "watches"} if verbs == ("watch",) else {}
    what = " and ".join(words.get(verb, verb) for verb in verbs) or "requests"
    if verbs and not words:
        what = f"{what} requests"
    what = f"{as_share(fault.rate)} of {what}" if fault.rate < 1 else what
    what += f" for {', '.join(fault.resources)}" if fault.resources else ""
    what += f" at {fault.path}" if fault.path else ""
    what += f" by {', '.join(fault.users)}" if fault.users else ""
    return what


def _bound(fault: Fault) -> str:
    if not fault.times:
        return ""
    return ", once" if fault.times == 1 else f", {fault.times} times"


def _of_fault(data: Made) -> Trouble:
    met = data.pop("met", None)
    fault = read_fault(data)
    plain: dict[str, Any] = {key: value for key, value in data.items() if key != "id"}
    return Trouble(id=fault.id, what=sentence(fault), met=met, data={"sort": "answers", **plain})


def _of_failure(name: str, said: Made) -> Trouble:
    verb = "crash" if said["how"] == How.CRASH else "are not ready"
    part = "" if said["share"] == "100%" else f"{said['share']} of "
    return Trouble(id=name, what=f"{part}pods of {said['image']} {verb}", data={"sort": "pods", **said})


def _of_node(name: str) -> Trouble:
    return Trouble(id=f"{_DOWN}{name}", what=f"node {name} is silent", data={"sort": "node", "node": name})


def _node(name: str) -> Ref:
    return Ref("v1", "Node", "", name)


def _config_map(data: dict[str, str]) -> Made:
    metadata = {"name": PLACE.name, "namespace": PLACE.namespace}
    return {"apiVersion": PLACE.api_version, "kind": PLACE.kind, "metadata": metadata, "data": data}


def _free_name(word: str, taken: Any) -> str:
    number = 1
    while f"{word}-{number}" in taken:
        number += 1
    return f"{word}-{number}"
