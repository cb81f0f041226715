"""
Serves a plain GET of one object synchronously.

Most requests are such reads. The kind and key of a path are cached until the set of kinds changes, so that
a read is two lookups.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from lamina.objects.api_paths import parse_resource_path
from lamina.server.codec.negotiate import check_route
from lamina.server.codec.response import object_response, versioned_json
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.target import Target
from lamina.server.metrics import Metrics, RequestCounter
from lamina.server.storage.store import Key

_CACHED_PATHS = 4_096
_LONGEST_PATH = 512
"""Number of cached paths, and the length up to which a path is cached."""
_PLAIN_ACCEPTS = (None, "application/json", "*/*")
"""Accept headers for which the stored JSON is sent as it is."""


class _CachedPath(NamedTuple):
    """The object that a path names, and the counter of reads of it."""

    kind: Kind
    key: Key
    counter: RequestCounter


class FastGet:
    """Serves GETs of the newest version of one object."""

    def __init__(self, context: ServerContext, metrics: Metrics) -> None:
        self._context = context
        self._metrics = metrics
        self._paths: dict[str, _CachedPath] = {}
        self._edition = -1

    def get(self, request: Request) -> Response | None:
        """
        Return the response to a GET without a query by an authorized user; None if it needs the full path.
        """
        started = time.perf_counter()
        context = self._context
        registry = context.registry
        registry.refresh()
        if registry.edition != self._edition:
            self._paths.clear()
            self._edition = registry.edition
        cached = self._paths.get(request.path) or self._resolve(request.path)
        if cached is None:
            return None
        kind, key, counter = cached
        row = context.store.get(key)
        if row is None:
            return None
        try:
            value = versioned_json(kind, row)
            if request.headers.get("accept") in _PLAIN_ACCEPTS:
                response = Response(200, kind.prefix + value[1:])
            else:
                if not kind.custom:
                    check_route(request.headers["accept"], streams=False)
                response = object_response(request, kind, value, context.now())
        except Exception:
            # The full path repeats the error and reports it.
            return None
        counter.add(time.perf_counter() - started)
        return response

    def _resolve(self, url_path: str) -> _CachedPath | None:
        path = parse_resource_path(url_path)
        if path is None or not path.name or path.subresource or path.watch:
            return None
        kind = self._context.registry.find(path.group, path.version, path.plural)
        if kind is None or kind.deprecation or "get" not in kind.verbs:
            return None
        if kind.namespaced is not bool(path.namespace):
            return None
        cached = _CachedPath(
            kind,
            Target(kind, path.namespace, path.name).key,
            self._metrics.counter("get", kind, path, 200),
        )
        if len(url_path) <= _LONGEST_PATH:
            if len(self._paths) >= _CACHED_PATHS:
                self._paths.clear()
            self._paths[url_path] = cached
        return cached
