"""
A client for fault injection: adds faults, lists active ones, and removes them.

Faults of requests are on the server, below /lamina/faults; faults of pods and
nodes are in objects. The requests of this client are exempt from faults.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson
from msgspec import Struct, field

from lamina.actors.nodes import NOT_READY
from lamina.actors.stages.failures import FAILURES_REF, FailureMode, failures_in
from lamina.cli.options.param_types import format_seconds, format_share
from lamina.cli.server_version import is_embedded, server_version
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access
from lamina.client.transport.http import HttpTransport
from lamina.errors import AlreadyExists, Conflict, Forbidden, NotFound, SettingsError, Unauthorized
from lamina.faults import Cut, Expire, Fault, Refuse, Silence, Slow, Stale, read_fault, shown
from lamina.objects import meta
from lamina.objects.types import Made, Ref

USER_AGENT = "lamina-chaos"
"""The user agent that the server exempts from faults, so that a fault can be removed."""
_FAULTS = "/lamina/faults"
_NODE_PREFIX = "node-down-"

Result = TypeVar("Result")


class ActiveFault(Struct, frozen=True, kw_only=True):
    """One active fault: its ID, its description, how many requests it has hit if known, and its spec."""

    id: str
    description: str
    hits: int | None = None
    data: Made = field(default_factory=dict)

    def as_json(self) -> Made:
        return {
            "id": self.id,
            "what": self.description,
            **self.data,
            **({} if self.hits is None else {"met": self.hits}),
        }


def with_faults(access: Access, work: Callable[[FaultsClient], Awaitable[Result]]) -> Result:
    """Run a function with the faults of a cluster."""

    async def run() -> Result:
        client = Client(HttpTransport(access), manager=USER_AGENT)
        try:
            return await work(FaultsClient(client, access.server))
        finally:
            await client.close()

    return asyncio.run(run())


class FaultsClient:
    """The faults of one cluster."""

    def __init__(self, client: Client, server: str) -> None:
        self._client, self._server = client, server

    async def list_all(self) -> list[ActiveFault]:
        """Return all active faults."""
        try:
            faults = await self._request_faults()
        except SettingsError:
            # A server without fault injection may have objects that make pods and nodes fail.
            faults = []
        return [*faults, *await self._pod_faults(), *await self._node_faults()]

    async def _check_embedded(self, fails: str) -> None:
        """Raise SettingsError unless the server is one of `lamina up`, which alone acts upon faults in objects."""
        version = await server_version(self._client)
        if not is_embedded(version):
            reported = f"it reports version {version}" if version else "it reports no version"
            raise SettingsError(
                f"{self._server} is not a server of `lamina up` ({reported}, without +lamina), "
                f"so {fails}: nothing was written",
                hint="simulate it on a copy of the cluster: `lamina simulate --failures FILE`",
            )

    # ── requests ──

    async def fail_requests(self, fault: Fault) -> ActiveFault:
        added = await self._request("POST", body=shown(fault))
        return _of_fault(added)

    async def _request_faults(self) -> list[ActiveFault]:
        return [_of_fault(one) for one in (await self._request("GET"))["faults"]]

    async def _request(self, method: str, path: str = "", body: Made | None = None) -> Made:
        content = orjson.dumps(body) if body is not None else None
        try:
            response = await self._client.request(method, f"{_FAULTS}{path}", body=content)
            decoded = orjson.loads(response)
        except (NotFound, Forbidden, Unauthorized, orjson.JSONDecodeError) as error:
            if path and isinstance(error, NotFound):
                raise
            raise SettingsError(
                f"{self._server} does not support fault injection",
                hint="only a server of `lamina up` does, and only its administrator may use it",
            ) from None
        assert isinstance(decoded, dict)
        return decoded

    # ── pods ──

    async def fail_pods(self, image: str, share: float, how: FailureMode) -> ActiveFault:
        """Make a share of the pods of an image fail, by an entry in a ConfigMap."""
        await self._check_embedded("its pods do not fail on request")
        spec = {"image": image, "share": format_share(share), "how": str(how)}
        for _ in range(5):
            found = await self._config_map()
            name = _free_name("fail", (found or {}).get("data") or {})
            entry = {name: json.dumps(spec)}
            try:
                if found is None:
                    await self._client.create(_config_map(entry))
                else:
                    metadata = {"resourceVersion": meta.resource_version(found)}
                    await self._client.patch(FAILURES_REF, {"metadata": metadata, "data": entry})
            except (AlreadyExists, Conflict):
                continue
            return _of_pods(name, spec)
        raise SettingsError(f"every write of {FAILURES_REF} conflicts with another", hint="try again")

    async def _pod_faults(self) -> list[ActiveFault]:
        return [
            _of_pods(one.name, {"image": one.image, "share": format_share(one.share), "how": str(one.how)})
            for one in failures_in(await self._config_map())
        ]

    async def _config_map(self) -> Made | None:
        try:
            return await self._client.get(FAILURES_REF)
        except NotFound:
            return None

    # ── nodes ──

    async def stop_node(self, node: str) -> ActiveFault:
        """Make a node unreachable, by an annotation."""
        await self._check_embedded("its nodes do not fail on request")
        try:
            await self._client.patch(_node(node), {"metadata": {"annotations": {NOT_READY: "true"}}})
        except NotFound:
            names = ", ".join(meta.name(one) for one in await self._all_nodes()) or "none"
            raise SettingsError(f"there is no node {node!r}; the nodes are {names}") from None
        return _of_node(node)

    async def _node_faults(self) -> list[ActiveFault]:
        return [
            _of_node(meta.name(one))
            for one in await self._all_nodes()
            if meta.annotations(one).get(NOT_READY, "false") != "false"
        ]

    async def _all_nodes(self) -> tuple[Made, ...]:
        return (await self._client.list(("v1", "Node"), metadata_only=True)).items

    # ── removal ──

    async def remove(self, fault: ActiveFault) -> None:
        """Remove a fault from where it is stored."""
        match fault.data.get("sort"):
            case "node":
                patch = {"metadata": {"annotations": {NOT_READY: None}}}
                await self._client.patch(_node(fault.data["node"]), patch)
            case "pods":
                await self._client.patch(FAILURES_REF, {"data": {fault.id: None}})
            case _:
                await self._request("DELETE", f"/{fault.id}")


def describe(fault: Fault) -> str:
    """Return a sentence: which requests a fault hits, what it does to them, and how often."""
    return _effect(fault, _requests(fault)) + _limit(fault)


def _effect(fault: Fault, requests: str) -> str:
    match fault:
        case Silence(after=after):
            return f"{requests} get no response" + (", but are executed" if after else "")
        case Slow(seconds=seconds):
            return f"{requests} are answered {format_seconds(seconds)} late"
        case Refuse(code=code, after=after):
            return f"{requests} are answered {code}" + (", but are executed" if after else "")
        case Cut(events=events):
            return (
                f"{requests} end after {events} event{'s' if events != 1 else ''}"
                if events
                else f"{requests} that are open end"
            )
        case Expire():
            return f"{requests} that resume are answered 410"
        case Stale(seconds=None, versions=None):
            return f"{requests} return stale objects"
        case Stale(seconds=seconds, versions=versions):
            age = f"{versions} versions" if seconds is None else format_seconds(seconds)
            return f"{requests} return objects that are {age} stale"


def _requests(fault: Fault) -> str:
    verbs = fault.verbs or type(fault).usual
    words = {"watch": "watches"} if verbs == ("watch",) else {}
    text = " and ".join(words.get(verb, verb) for verb in verbs) or "requests"
    if verbs and not words:
        text = f"{text} requests"
    text = f"{format_share(fault.rate)} of {text}" if fault.rate < 1 else text
    text += f" for {', '.join(fault.resources)}" if fault.resources else ""
    text += f" at {fault.path}" if fault.path else ""
    text += f" by {', '.join(fault.users)}" if fault.users else ""
    return text


def _limit(fault: Fault) -> str:
    if not fault.times:
        return ""
    return ", once" if fault.times == 1 else f", {fault.times} times"


def _of_fault(data: Made) -> ActiveFault:
    hits = data.pop("met", None)
    fault = read_fault(data)
    spec: dict[str, Any] = {key: value for key, value in data.items() if key != "id"}
    return ActiveFault(id=fault.id, description=describe(fault), hits=hits, data={"sort": "answers", **spec})


def _of_pods(name: str, spec: Made) -> ActiveFault:
    verb = "crash" if spec["how"] == FailureMode.CRASH else "are not ready"
    share = "" if spec["share"] == "100%" else f"{spec['share']} of "
    description = f"{share}pods of {spec['image']} {verb}"
    return ActiveFault(id=name, description=description, data={"sort": "pods", **spec})


def _of_node(name: str) -> ActiveFault:
    data = {"sort": "node", "node": name}
    return ActiveFault(id=f"{_NODE_PREFIX}{name}", description=f"node {name} is unreachable", data=data)


def _node(name: str) -> Ref:
    return Ref("v1", "Node", "", name)


def _config_map(data: dict[str, str]) -> Made:
    metadata = {"name": FAILURES_REF.name, "namespace": FAILURES_REF.namespace}
    return {
        "apiVersion": FAILURES_REF.api_version,
        "kind": FAILURES_REF.kind,
        "metadata": metadata,
        "data": data,
    }


def _free_name(prefix: str, taken: Any) -> str:
    number = 1
    while f"{prefix}-{number}" in taken:
        number += 1
    return f"{prefix}-{number}"
