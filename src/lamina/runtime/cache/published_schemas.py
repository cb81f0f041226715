"""
The schemas of kinds, as servers publish them.

A server lists its OpenAPI documents, one for each group version, by URLs that contain a
hash of the content. A document is read when the schema of one of its kinds is asked for,
and only the schemas that were asked for are kept, by its URL. The list itself is read
again when a schema is not found, when discovery has found other kinds since, and when it
is older than a few seconds: a schema may change without any kind coming or going, and
kube-apiserver publishes a change some time after discovery has it. Those who ask keep
what they make of a schema, so that they ask rarely, and the list is small.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Protocol
from weakref import WeakKeyDictionary

from lamina.errors import ApiError
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.openapi import Resolver, component_of, components_of, document_name
from lamina.objects.types import Made, Obj

_MAX_AGE = 10.0
"""How long the list of documents is used while the kinds stay the same, in seconds."""
_MAX_SCHEMAS = 64
"""How many schemas are kept for each server: that of a Pod takes half a megabyte."""


class SchemaReader(Protocol):
    """The part of a client that reads schemas."""

    @property
    def known_kinds(self) -> Kinds: ...

    async def kind(self, api_version: str, kind: str) -> Kind: ...

    async def openapi_documents(self) -> Mapping[str, str]: ...

    async def openapi(self, url: str) -> Made: ...


class PublishedSchemas:
    """Reads schemas from servers, and keeps those of a server as long as its client exists."""

    def __init__(self, *, max_age: float = _MAX_AGE, max_schemas: int = _MAX_SCHEMAS) -> None:
        self._max_age, self._max_schemas = max_age, max_schemas
        self._servers: WeakKeyDictionary[SchemaReader, _Server] = WeakKeyDictionary()

    async def schema(self, client: SchemaReader, kind: Kind) -> Obj | None:
        """
        Return the schema of a kind with all references resolved, None if its server publishes none.

        Raises UnknownKind where the kind is not served.
        """
        await client.kind(kind.api_version, kind.kind)
        server = self._servers.get(client)
        if server is None:
            server = self._servers[client] = _Server()
        server.asked[kind] = None
        try:
            # One request serves all who ask for kinds of one document at the same time.
            async with server.lock:
                return await self._find(client, server, kind)
        finally:
            server.asked.pop(kind, None)

    async def _find(self, client: SchemaReader, server: _Server, kind: Kind) -> Obj | None:
        if server.is_current(client.known_kinds, self._max_age):
            # A document that changed after the list was read is refused with a redirect to the present one.
            with suppress(ApiError):
                found = await server.find(client, kind, self._max_schemas)
                if found is not None:
                    return found
        await server.read_urls(client)
        return await server.find(client, kind, self._max_schemas)


class _Server:
    """What is known of the schemas of one server."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.asked: dict[Kind, None] = {}
        """The kinds that are being asked for."""
        self._urls: Mapping[str, str] = {}
        self._kinds: Kinds | None = None
        self._read_at = 0.0
        self._schemas: dict[tuple[str, str], Obj | None] = {}
        """The schemas by the URL of their document and the name of their kind; None where the document has none."""

    def is_current(self, kinds: Kinds, max_age: float) -> bool:
        """Say whether the list of documents was read recently, and since discovery found these kinds."""
        return self._kinds is kinds and monotonic() - self._read_at < max_age

    async def read_urls(self, client: SchemaReader) -> None:
        """Read the list of documents, and drop the schemas of documents that are no longer listed."""
        kinds = client.known_kinds
        self._urls = await client.openapi_documents()
        self._kinds, self._read_at = kinds, monotonic()
        # An aggregated API may publish its document without a hash.
        listed = {url for url in self._urls.values() if "hash=" in url}
        self._schemas = {known: schema for known, schema in self._schemas.items() if known[0] in listed}

    async def find(self, client: SchemaReader, kind: Kind, max_schemas: int) -> Obj | None:
        """Return the schema of a kind from its document, which is read unless the schema is known."""
        url = self._urls.get(document_name(kind.api_version))
        if url is None:
            return None
        if (url, kind.kind) not in self._schemas:
            components = components_of(await client.openapi(url))
            resolver = Resolver(components.get)
            others = [one for one in self.asked if one.api_version == kind.api_version and one != kind]
            for one in (*others, kind):
                name = component_of(components, one)
                self._schemas[url, one.kind] = resolver.component(name) if name is not None else None
            while len(self._schemas) > max_schemas:
                del self._schemas[next(iter(self._schemas))]
        return self._schemas[url, kind.kind]
