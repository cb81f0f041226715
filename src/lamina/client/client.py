"""
A client of the Kubernetes API.

It raises the same error classes as the embedded server, decoded from the Status
in the response. Objects are plain dicts and always have `apiVersion` and `kind`,
even where the server leaves them out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson

from lamina.client import codec
from lamina.client.discovery import discover, merged
from lamina.client.transport.base import Query, Response, Sink, Transport
from lamina.client.transport.cancellable import CancellableTransport
from lamina.client.write_guard import WriteGuard
from lamina.errors import TooManyRequests, UnknownKind, Unreachable
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref, WatchEvent

_JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
_MAX_TRIES = 5

KindOrName: TypeAlias = Kind | tuple[str, str]
"""A kind, or its API version and name: `("apps/v1", "Deployment")`."""


class PatchType(StrEnum):
    """The format of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Listing(NamedTuple):
    """Objects of one kind at one resource version. `token` is the continue token of the next page, if any."""

    items: tuple[Made, ...]
    version: str
    token: str = ""
    remaining: int = 0


class Client:
    """
    One identity at one server.

    `manager` is the field manager and the user agent. `retried` is called with the
    method and the status code before each retry.
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

    def impersonating(self, user: str) -> Client:
        """Return a client that impersonates a user."""
        other = Client(self._transport, manager=self._manager, retried=self._retried)
        other._headers = {**self._headers, "impersonate-user": user}
        other._kinds = self._kinds
        return other

    def cancellable(self) -> tuple[Client, Callable[[], None]]:
        """Return a copy of this client, and a function that cancels its pending and future requests."""
        transport = CancellableTransport(self._transport)
        other = Client(transport, manager=self._manager, retried=self._retried)
        other._headers, other._kinds = self._headers, self._kinds
        return other, transport.end

    # ── discovery ──

    @property
    def known_kinds(self) -> Kinds:
        """Return the kinds of the last discovery."""
        return self._kinds

    async def discover(self) -> Kinds:
        """Fetch the discovery documents and remember the kinds."""

        async def fetch(path: str, accept: str) -> bytes:
            return await self.request("GET", path, headers={"accept": accept})

        self._kinds = merged(self._kinds, await discover(fetch))
        return self._kinds

    async def kind(self, api_version: str, kind: str) -> Kind:
        """Return the kind with that name; runs discovery again before it raises UnknownKind."""
        found = self._kinds.find(api_version, kind)
        if found is None:
            requested = self._kinds
            async with self._discovering:
                # One discovery serves all callers that miss a kind at the same time.
                if self._kinds is requested:
                    await self.discover()
            found = self._kinds.find(api_version, kind)
        if found is None:
            raise UnknownKind(api_version, kind)
        return found

    async def openapi_documents(self) -> Mapping[str, str]:
        """Return the URL of each OpenAPI v3 document by name, such as `apis/apps/v1`; it changes with the content."""
        index = await self._request_json("GET", "/openapi/v3")
        return {name: entry["serverRelativeURL"] for name, entry in index["paths"].items()}

    async def openapi(self, url: str) -> Made:
        """Return an OpenAPI v3 document."""
        parts = urlsplit(url)
        return await self._request_json("GET", unquote(parts.path), query=parse_qsl(parts.query))

    # ── reading ──

    async def get(self, ref: Ref, *, subresource: str = "", metadata_only: bool = False) -> Made:
        """Return an object."""
        kind = await self.kind(ref.api_version, ref.kind)
        accept = {"accept": _PARTIAL} if metadata_only else None
        found = await self._request_json("GET", codec.path(kind, ref, subresource), headers=accept)
        return codec.set_kind(found, kind) if metadata_only else found

    async def page(
        self,
        what: KindOrName,
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
        query = codec.selector_query(labels, fields)
        query += [("limit", str(limit))] if limit else []
        query += [("continue", token)] if token else []
        query += [("resourceVersion", version)] if version else []
        accept = {"accept": _PARTIAL_LIST} if metadata_only else None
        read = await self._request_json("GET", codec.collection(kind, namespace), query=query, headers=accept)
        metadata = read.get("metadata") or {}
        return Listing(
            items=tuple(codec.set_kind(item, kind) for item in read.get("items") or ()),
            version=metadata.get("resourceVersion") or "",
            token=metadata.get("continue") or "",
            remaining=metadata.get("remainingItemCount") or 0,
        )

    async def list(
        self,
        what: KindOrName,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> Listing:
        """Return all pages of a list, at one resource version."""
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
        what: KindOrName,
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
        Yield the events after a resource version, bookmarks included, until the server ends the stream.

        With `initial`, existing objects come first, as ADDED, up to a bookmark with
        the annotation `k8s.io/initial-events-end`. An ERROR event is raised; the
        caller has to resume a broken watch.
        """
        kind = await self._resolved(what)
        query = codec.watch_query(version, initial, labels, fields, seconds)
        response = await self._open(kind, namespace, query, metadata_only)
        try:
            remainder = b""
            async for chunk in response.stream():
                lines, remainder = codec.lines(remainder, chunk)
                for line in lines:
                    yield codec.watch_event(kind, line)
        finally:
            await response.close()

    async def follow(
        self,
        what: KindOrName,
        on_event: codec.EventHandler,
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
        Call `on_event` with each event of a watch, and return when it ends.

        An embedded server calls it directly, without waking this task.
        """
        kind = await self._resolved(what)
        query = codec.watch_query(version, initial, labels, fields, seconds)
        response = await self._open(kind, namespace, query, metadata_only)
        push_to: Callable[[Sink], None] | None = getattr(response, "push_to", None)
        if push_to is not None:
            push_to(partial(codec.push_events, kind, on_event))
        try:
            remainder = b""
            async for chunk in response.stream():
                lines, remainder = codec.lines(remainder, chunk)
                for line in lines:
                    on_event(codec.watch_event(kind, line))
        finally:
            await response.close()

    async def _open(self, kind: Kind, namespace: str, query: Query, metadata_only: bool) -> Response:
        headers = {**self._headers, "accept": _PARTIAL if metadata_only else _JSON}
        return await self._send("GET", codec.collection(kind, namespace), query, headers, None, streams=True)

    # ── writing ──

    async def create(
        self,
        obj: Obj,
        *,
        dry_run: bool = False,
        manager: str | None = None,
        validation: str = "",
        guard: WriteGuard | None = None,
    ) -> Made:
        """Create an object, and return it as stored."""
        kind = await self.kind(obj.get("apiVersion") or "", obj.get("kind") or "")
        query = self._write_query(manager, dry_run, validation)
        return await self._request_json(
            "POST", codec.collection(kind, meta.namespace(obj)), query=query, body=obj, guard=guard
        )

    async def update(
        self,
        obj: Obj,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str | None = None,
        validation: str = "",
        guard: WriteGuard | None = None,
    ) -> Made:
        """Replace an object; Conflict if its resource version is stale."""
        ref = meta.ref(obj)
        kind = await self.kind(ref.api_version, ref.kind)
        query = self._write_query(manager, dry_run, validation)
        return await self._request_json(
            "PUT", codec.path(kind, ref, subresource), query=query, body=obj, guard=guard
        )

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
        guard: WriteGuard | None = None,
    ) -> Made:
        """Patch an object."""
        kind = await self.kind(ref.api_version, ref.kind)
        return await self._request_json(
            "PATCH",
            codec.path(kind, ref, subresource),
            query=self._write_query(manager, dry_run, validation),
            headers={"content-type": how.value},
            body=patch,
            guard=guard,
        )

    async def post(
        self,
        ref: Ref,
        body: Obj,
        *,
        subresource: str,
        dry_run: bool = False,
        manager: str | None = None,
        guard: WriteGuard | None = None,
    ) -> Made:
        """Post to a subresource: a Binding, an Eviction, a TokenRequest."""
        kind = await self.kind(ref.api_version, ref.kind)
        query = self._write_query(manager, dry_run, "")
        return await self._request_json(
            "POST", codec.path(kind, ref, subresource), query=query, body=body, guard=guard
        )

    async def apply(
        self,
        obj: Obj,
        *,
        manager: str | None = None,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
        validation: str = "",
        guard: WriteGuard | None = None,
    ) -> Made:
        """Apply an object server-side; Conflict if another manager owns a field, unless forced."""
        ref = meta.ref(obj)
        kind = await self.kind(ref.api_version, ref.kind)
        query = self._write_query(manager, dry_run, validation)
        query += [("force", "true")] if force else []
        return await self._request_json(
            "PATCH",
            codec.path(kind, ref, subresource),
            query=query,
            headers={"content-type": "application/apply-patch+yaml"},
            body=obj,
            guard=guard,
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
        guard: WriteGuard | None = None,
    ) -> Made:
        """
        Delete an object.

        Returns the object if finalizers or a grace period keep it, and a Status if it
        is gone. Conflict if its uid or resource version differs.
        """
        kind = await self.kind(ref.api_version, ref.kind)
        options = codec.delete_options(propagation, grace, dry_run)
        conditions = {"uid": uid, "resourceVersion": version}
        if uid or version:
            options["preconditions"] = {field: value for field, value in conditions.items() if value}
        return await self._request_json("DELETE", codec.path(kind, ref), body=options, guard=guard)

    async def delete_collection(
        self,
        what: KindOrName,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: str = "",
        grace: int | None = None,
        dry_run: bool = False,
        guard: WriteGuard | None = None,
    ) -> Made:
        """Delete every object that matches, and return the server's response."""
        kind = await self._resolved(what)
        return await self._request_json(
            "DELETE",
            codec.collection(kind, namespace),
            query=codec.selector_query(labels, fields),
            body=codec.delete_options(propagation, grace, dry_run),
            guard=guard,
        )

    # ── other requests ──

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        guard: WriteGuard | None = None,
    ) -> bytes:
        """Send any request, and return the response body; raises the error of a failed one."""
        response = await self._send(
            method, path, query, {**self._headers, **(headers or {})}, body, guard=guard
        )
        return await response.read()

    async def _request_json(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: Obj | Sequence[Obj] | None = None,
        guard: WriteGuard | None = None,
    ) -> Made:
        sent = self._headers if headers is None else {**self._headers, **headers}
        if body is not None and "content-type" not in sent:
            sent = {**sent, "content-type": _JSON}
        payload = orjson.dumps(body) if body is not None else None
        response = await self._send(method, path, query, sent, payload, guard=guard)
        try:
            read = orjson.loads(await response.read())
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{method} {path} returned invalid JSON: {error}") from error
        if not isinstance(read, dict):
            raise Unreachable(f"{method} {path} returned no JSON object")
        return read

    async def _send(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        body: bytes | None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        """Send a request; retry as `Retry-After` asks."""
        for tries_left in reversed(range(_MAX_TRIES)):
            response = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
            )
            if 200 <= response.status < 300:
                return response
            error = await codec.api_error(response)
            if not (isinstance(error, TooManyRequests) and error.retry_after is not None and tries_left):
                try:
                    raise error
                finally:
                    # A reference from the error to itself through its traceback would keep all frames alive.
                    del error
            await asyncio.sleep(error.retry_after)
            self._retried(method, response.status)
        raise AssertionError("the last try returns or raises")

    async def _resolved(self, what: KindOrName) -> Kind:
        return what if isinstance(what, Kind) else await self.kind(*what)

    def _write_query(self, manager: str | None, dry_run: bool, validation: str) -> codec.Pairs:
        query = [("fieldManager", manager or self._manager)]
        query += [("dryRun", "All")] if dry_run else []
        query += [("fieldValidation", validation)] if validation else []
        return query
