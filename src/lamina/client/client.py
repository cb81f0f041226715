"""
The Kubernetes API, spoken to whoever serves it.

The client raises the classes the server raises: a Conflict born in a store
arrives here as a Conflict. Objects are plain dicts, and always say their kind,
whether or not the server bothered to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeAlias

import orjson

from lamina.client import wire
from lamina.client.discovery import discover, merged
from lamina.client.ending import EndingTransport
from lamina.client.transport import Query, Response, Sink, Transport
from lamina.errors import TooManyRequests, UnknownKind, Unreachable
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref, WatchEvent

_JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
_PATIENCE = 5

What: TypeAlias = Kind | tuple[str, str]
"""A kind, or its API version and name: `("apps/v1", "Deployment")`."""


class PatchType(StrEnum):
    """How a patch is to be read."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Listing(NamedTuple):
    """Objects of one kind at one version. `token` asks for the next page, where there is one."""

    items: tuple[Made, ...]
    version: str
    token: str = ""
    remaining: int = 0


class Client:
    """
    One identity at one server.

    `manager` is the name under which the server records which fields this
    client wrote, and what it calls itself. `retried` is told of each request that
    is sent again, and what the server had answered.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        manager: str = "lamina",
        retried: Callable[[str, int], None] = lambda method, code: None,
    ) -> None:
        self._transport, self._retried = transport, retried
        self._manager = manager
        self._headers = {"accept": _JSON, "user-agent": manager}
        self._kinds = Kinds()
        self._discovering = asyncio.Lock()

    async def close(self) -> None:
        await self._transport.close()

    def acting_as(self, user: str) -> Client:
        """Return a client that does what it does as somebody else, if the server lets us."""
        other = Client(self._transport, manager=self._manager, retried=self._retried)
        other._headers = {**self._headers, "impersonate-user": user}
        other._kinds = self._kinds
        return other

    def ending(self) -> tuple[Client, Callable[[], None]]:
        """Return a client that does the same, and how to end it: it waits for no answer from then on."""
        transport = EndingTransport(self._transport)
        other = Client(transport, manager=self._manager, retried=self._retried)
        other._headers, other._kinds = self._headers, self._kinds
        return other, transport.end

    # ── which kinds there are ──

    @property
    def known(self) -> Kinds:
        """Return what was found to be served when it was last asked for."""
        return self._kinds

    async def discover(self) -> Kinds:
        """Ask the server what it serves, and remember it."""

        async def fetch(path: str, accept: str) -> bytes:
            return await self.request("GET", path, headers={"accept": accept})

        self._kinds = merged(self._kinds, await discover(fetch))
        return self._kinds

    async def kind(self, api_version: str, kind: str) -> Kind:
        """Return what is served under that name; asks the server again before it raises UnknownKind."""
        found = self._kinds.find(api_version, kind)
        if found is None:
            asked = self._kinds
            async with self._discovering:
                # Of many who miss something at once, the first asks for all of them.
                if self._kinds is asked:
                    await self.discover()
            found = self._kinds.find(api_version, kind)
        if found is None:
            raise UnknownKind(api_version, kind)
        return found

    # ── reading ──

    async def get(self, ref: Ref, *, subresource: str = "", metadata_only: bool = False) -> Made:
        """Return an object as it is now."""
        kind = await self.kind(ref.api_version, ref.kind)
        accept = {"accept": _PARTIAL} if metadata_only else None
        found = await self._ask("GET", wire.path(kind, ref, subresource), headers=accept)
        return wire.named(found, kind) if metadata_only else found

    async def page(
        self,
        what: What,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        token: str = "",
        metadata_only: bool = False,
        version: str = "",
    ) -> Listing:
        """Return one page of a list; an empty namespace means all of them."""
        kind = await self._resolved(what)
        query = wire.selection(labels, fields)
        query += [("limit", str(limit))] if limit else []
        query += [("continue", token)] if token else []
        query += [("resourceVersion", version)] if version else []
        accept = {"accept": _PARTIAL_LIST} if metadata_only else None
        read = await self._ask("GET", wire.collection(kind, namespace), query=query, headers=accept)
        metadata = read.get("metadata") or {}
        return Listing(
            items=tuple(wire.named(item, kind) for item in read.get("items") or ()),
            version=metadata.get("resourceVersion") or "",
            token=metadata.get("continue") or "",
            remaining=metadata.get("remainingItemCount") or 0,
        )

    async def list(
        self,
        what: What,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> Listing:
        """Return all pages of a list, as of one version."""
        page = await self.page(
            what, namespace, labels=labels, fields=fields, limit=_PAGE, metadata_only=metadata_only
        )
        items = [*page.items]
        while page.token:
            page = await self.page(
                what,
                namespace,
                labels=labels,
                fields=fields,
                limit=_PAGE,
                token=page.token,
                metadata_only=metadata_only,
            )
            items += page.items
        return Listing(tuple(items), page.version)

    async def watch(
        self,
        what: What,
        namespace: str = "",
        *,
        version: str = "",
        initial: bool = False,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        seconds: int | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """
        Yield what happens after a version, bookmarks included, until the server ends the stream.

        With `initial`, what exists comes first, as ADDED, up to a bookmark that
        carries the annotation `k8s.io/initial-events-end`. An ERROR in the
        stream is raised; taking up a broken stream again is the caller's business.
        """
        kind = await self._resolved(what)
        query = wire.watching(version, initial, labels, fields, seconds)
        response = await self._open(kind, namespace, query, metadata_only)
        try:
            rest = b""
            async for piece in response.stream():
                lines, rest = wire.lines(rest, piece)
                for line in lines:
                    yield wire.told(kind, line)
        finally:
            await response.close()

    async def follow(
        self,
        what: What,
        hear: wire.Hear,
        namespace: str = "",
        *,
        version: str = "",
        initial: bool = False,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        seconds: int | None = None,
    ) -> None:
        """
        Tell somebody what a watch yields, and return when it ends.

        A server in this process tells them itself, without our waking up for it.
        """
        kind = await self._resolved(what)
        query = wire.watching(version, initial, labels, fields, seconds)
        response = await self._open(kind, namespace, query, metadata_only)
        push_to: Callable[[Sink], None] | None = getattr(response, "push_to", None)
        if push_to is not None:
            push_to(partial(wire.pushed, kind, hear))
        try:
            rest = b""
            async for piece in response.stream():
                lines, rest = wire.lines(rest, piece)
                for line in lines:
                    hear(wire.told(kind, line))
        finally:
            await response.close()

    async def _open(self, kind: Kind, namespace: str, query: Query, metadata_only: bool) -> Response:
        headers = {**self._headers, "accept": _PARTIAL if metadata_only else _JSON}
        return await self._send("GET", wire.collection(kind, namespace), query, headers, None, streams=True)

    # ── writing ──

    async def create(
        self, obj: Obj, *, dry_run: bool = False, manager: str | None = None, validation: str = ""
    ) -> Made:
        """Make a new object, and return it as the server stored it."""
        kind = await self.kind(obj.get("apiVersion") or "", obj.get("kind") or "")
        query = self._written(manager, dry_run, validation)
        return await self._ask("POST", wire.collection(kind, meta.namespace(obj)), query=query, body=obj)

    async def update(
        self,
        obj: Obj,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str | None = None,
        validation: str = "",
    ) -> Made:
        """Put an object in the place of the one with its name; Conflict if that has moved on."""
        ref = meta.ref(obj)
        kind = await self.kind(ref.api_version, ref.kind)
        query = self._written(manager, dry_run, validation)
        return await self._ask("PUT", wire.path(kind, ref, subresource), query=query, body=obj)

    async def patch(
        self,
        ref: Ref,
        patch: Obj | Sequence[Obj],
        *,
        how: PatchType = PatchType.MERGE,
        subresource: str = "",
        dry_run: bool = False,
        manager: str | None = None,
        validation: str = "",
    ) -> Made:
        """Change an object by a patch."""
        kind = await self.kind(ref.api_version, ref.kind)
        return await self._ask(
            "PATCH",
            wire.path(kind, ref, subresource),
            query=self._written(manager, dry_run, validation),
            headers={"content-type": how.value},
            body=patch,
        )

    async def post(
        self, ref: Ref, body: Obj, *, subresource: str, dry_run: bool = False, manager: str | None = None
    ) -> Made:
        """Hand something to a subresource: a Binding, an Eviction, a TokenRequest."""
        kind = await self.kind(ref.api_version, ref.kind)
        query = self._written(manager, dry_run, "")
        return await self._ask("POST", wire.path(kind, ref, subresource), query=query, body=body)

    async def apply(
        self,
        obj: Obj,
        *,
        manager: str | None = None,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
        validation: str = "",
    ) -> Made:
        """State the fields somebody cares about; Conflict if another manager differs, unless forced."""
        ref = meta.ref(obj)
        kind = await self.kind(ref.api_version, ref.kind)
        query = self._written(manager, dry_run, validation)
        query += [("force", "true")] if force else []
        return await self._ask(
            "PATCH",
            wire.path(kind, ref, subresource),
            query=query,
            headers={"content-type": "application/apply-patch+yaml"},
            body=obj,
        )

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "",
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Made:
        """
        Ask for the end of an object.

        Returns the object if something still holds it, and a Status if it is
        gone. Conflict if it is not the one with that uid and version.
        """
        kind = await self.kind(ref.api_version, ref.kind)
        options = wire.delete_options(propagation, grace, dry_run)
        conditions = {"uid": uid, "resourceVersion": version}
        if uid or version:
            options["preconditions"] = {field: value for field, value in conditions.items() if value}
        return await self._ask("DELETE", wire.path(kind, ref), body=options)

    async def delete_collection(
        self,
        what: What,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: str = "",
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Made:
        """Ask for the end of every object that matches, and return what the server says about it."""
        kind = await self._resolved(what)
        return await self._ask(
            "DELETE",
            wire.collection(kind, namespace),
            query=wire.selection(labels, fields),
            body=wire.delete_options(propagation, grace, dry_run),
        )

    # ── anything else ──

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> bytes:
        """Send any request, and return the body of its answer; raises what the server refuses."""
        response = await self._send(method, path, query, {**self._headers, **(headers or {})}, body)
        return await response.read()

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: Obj | Sequence[Obj] | None = None,
    ) -> Made:
        sent = self._headers if headers is None else {**self._headers, **headers}
        if body is not None and "content-type" not in sent:
            sent = {**sent, "content-type": _JSON}
        payload = orjson.dumps(body) if body is not None else None
        response = await self._send(method, path, query, sent, payload)
        try:
            read = orjson.loads(await response.read())
        except orjson.JSONDecodeError as error:
            raise Unreachable(
                f"{method} {path} was answered with something that is no JSON: {error}"
            ) from error
        if not isinstance(read, dict):
            raise Unreachable(f"{method} {path} was answered with something that is no object")
        return read

    async def _send(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        body: bytes | None,
        streams: bool = False,
    ) -> Response:
        """Send a request; where the server says to come back later, come back then."""
        for tries_left in reversed(range(_PATIENCE)):
            response = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams
            )
            if 200 <= response.status < 300:
                return response
            refused = await wire.refusal(response)
            if not (isinstance(refused, TooManyRequests) and refused.retry_after is not None and tries_left):
                try:
                    raise refused
                finally:
                    # It knows where it was raised. If that knew it, too, both would stay, with all they know.
                    del refused
            await asyncio.sleep(refused.retry_after)
            self._retried(method, response.status)
        raise AssertionError("the last try either answers or raises")

    async def _resolved(self, what: What) -> Kind:
        return what if isinstance(what, Kind) else await self.kind(*what)

    def _written(self, manager: str | None, dry_run: bool, validation: str) -> wire.Pairs:
        query = [("fieldManager", manager or self._manager)]
        query += [("dryRun", "All")] if dry_run else []
        query += [("fieldValidation", validation)] if validation else []
        return query
