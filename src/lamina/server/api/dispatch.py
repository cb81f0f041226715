"""
Dispatches requests to verbs and turns errors into Statuses.

Transports (HTTP, or a client in this process) call it with an authenticated request. An unexpected
exception is logged with its traceback and becomes a 500 without details.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from lamina.errors import ApiError, BadRequest, InternalError, StoreError, Unavailable
from lamina.faults import Faults
from lamina.logs import log
from lamina.objects.api_paths import Path, parse_resource_path
from lamina.server import status_errors
from lamina.server.admission.chain import ObjectChanged
from lamina.server.api import authn
from lamina.server.api.access_reviews import AccessReviews
from lamina.server.api.admin import AdminApi
from lamina.server.api.fast_get import FastGet
from lamina.server.api.nonresource import NonResourceApi
from lamina.server.codec.negotiate import PLAIN_ACCEPTS, check_route
from lamina.server.codec.response import negotiated_status
from lamina.server.codec.typemeta import declared_name
from lamina.server.context import ServerContext
from lamina.server.fault_matching import is_exempt
from lamina.server.faults import FaultInjector
from lamina.server.http.request import Request, Response, error_response
from lamina.server.identity import ANONYMOUS
from lamina.server.kinds.builtin.catalogue import is_builtin
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.target import Target
from lamina.server.metrics import Metrics
from lamina.server.subresources.dispatch import serve_subresource
from lamina.server.subresources.pods import create_binding
from lamina.server.verbs.create import create
from lamina.server.verbs.delete import delete, delete_collection
from lamina.server.verbs.get import get
from lamina.server.verbs.list import list_
from lamina.server.verbs.patch import patch
from lamina.server.verbs.update import update
from lamina.server.verbs.watch import watch

_ATTEMPTS = 8
"""How often a write is retried that loses against other writers while webhooks are called."""

Verb = Callable[[ServerContext, Request, Target], Awaitable[Response]]

_ON_OBJECT: dict[str, tuple[str, Verb]] = {
    "GET": ("get", get),
    "PUT": ("update", update),
    "PATCH": ("patch", patch),
    "DELETE": ("delete", delete),
}
_ON_KIND: dict[str, tuple[str, Verb]] = {
    "GET": ("list", list_),
    "POST": ("create", create),
    "DELETE": ("deletecollection", delete_collection),
}


def _verb(request: Request, path: Path, kind: Kind) -> tuple[str, Verb | None]:
    """Return the verb of a request, by its method and by whether the path names an object."""
    if kind.custom and request.method == "POST":
        # The name in the path is ignored: the object has its own.
        return _ON_KIND["POST"]
    return (_ON_OBJECT if path.name else _ON_KIND).get(request.method, ("", None))


def _method_error(request: Request, target: Target, verb: str) -> ApiError:
    """Return the error for a verb that the kind does not support."""
    if target.kind.custom and verb == "create":
        return status_errors.crd_terminating(target.kind, declared_name(request.body))
    if target.kind.custom and not target.name and request.method in ("PUT", "PATCH"):
        return BadRequest("name must be provided")
    return status_errors.not_allowed()


def _removes_finalizers(kind: Kind, verb: str) -> bool:
    """Return whether a verb is still allowed while its CRD terminates: finalizers have to be removed."""
    return kind.custom and verb in ("patch", "update")


class Api:
    """The API of one cluster."""

    def __init__(
        self,
        context: ServerContext,
        nonresource: NonResourceApi,
        access_reviews: AccessReviews,
        metrics: Metrics,
    ) -> None:
        self._context = context
        self._nonresource = nonresource
        self._access_reviews = access_reviews
        self._metrics = metrics
        self._fast_get = FastGet(context, metrics)
        self.faults = Faults()
        """Faults to inject; the injector is skipped while there are none."""
        self._in_force = self.faults.in_force
        self._fault_injector = FaultInjector(context)
        self.faults.added = self._fault_injector.begin
        self.admin = nonresource.admin = AdminApi(self.faults)

    @property
    def context(self) -> ServerContext:
        return self._context

    def handle_nowait(self, request: Request) -> Response | None:
        """
        Return the response to a GET of one object without a query, None if it cannot be served
        synchronously.
        """
        if request.method != "GET" or request.query or request.user is ANONYMOUS or self._in_force:
            return None
        return self._fast_get.get(request)

    async def handle(self, request: Request, context: ServerContext | None = None) -> Response:
        """
        Serve any request; raises nothing but cancellation.

        The fault injector passes the context to serve from; without one, faults apply.
        """
        if context is None:
            context = self._context
            if self._in_force and not is_exempt(request):
                return await self._fault_injector.handle(request, self.faults, self.handle)
        started = time.perf_counter()
        path = parse_resource_path(request.path)
        kind: Kind | None = None
        verb = request.method.lower()
        try:
            authn.authorize(request, path)
            if path is None:
                response = await self._nonresource.serve(request)
            else:
                kind = self._find_kind(path)
                verb, response = await self._retry_on_change(context, request, path, kind)
        except ApiError as error:
            if request.method != "GET":
                # Before an error is returned to a writer, pending commits are awaited, so that the client can
                # observe the state it conflicts with: a client in this process might otherwise retry forever.
                await self._context.store.flush()
            response = negotiated_status(request, error_response(error))
        except StoreError as error:
            log.error("store failed", method=request.method, path=request.path, error=str(error))
            response = error_response(Unavailable(f"the log cannot be written: {error}", retry_after=1))
        except RecursionError:
            response = error_response(status_errors.too_deep())
        except Exception:
            log.exception("request failed", method=request.method, path=request.path)
            response = error_response(InternalError("Internal error occurred: see the server's log"))
        self._metrics.count(verb, kind, path, response, time.perf_counter() - started)
        if not isinstance(response.body, bytes):
            response.body = self._metrics.open(response.body)
        return response

    async def _retry_on_change(
        self, context: ServerContext, request: Request, path: Path, kind: Kind
    ) -> tuple[str, Response]:
        """Serve a request, again if the object changed while webhooks were called."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._serve_resource(context, request, path, kind)
            except ObjectChanged:
                request.warnings.clear()
        raise status_errors.conflict(kind, path.name)

    def _find_kind(self, path: Path) -> Kind:
        kind = self._context.registry.find(path.group, path.version, path.plural)
        if kind is None:
            raise self._unknown_path(path)
        if path.namespace and not kind.namespaced:
            raise self._unknown_path(path)
        return kind

    def _unknown_path(self, path: Path) -> ApiError:
        """Return the error for a path without a kind: a text page, except in built-in groups."""
        return status_errors.unknown_path() if is_builtin(path.group) else status_errors.page_not_found()

    async def _serve_resource(
        self, context: ServerContext, request: Request, path: Path, kind: Kind
    ) -> tuple[str, Response]:
        if request.method == "HEAD":
            raise status_errors.not_allowed()
        if kind.deprecation:
            request.warn(kind.deprecation)
        accept = request.headers.get("accept", "")
        if accept not in PLAIN_ACCEPTS and not kind.custom:
            check_route(accept, streams=request.method == "GET" and not path.name)
        if path.subresource:
            target = Target(
                kind, path.namespace, path.name, path.subresource, kind.subresource(path.subresource)
            )
            if target.below is None:
                raise (
                    status_errors.not_found(kind, path.name) if kind.custom else status_errors.unknown_path()
                )
            return request.method.lower(), await serve_subresource(context, request, target)
        target = Target(kind, path.namespace, path.name)
        # A GET with a name reads the object, whatever its query; only the deprecated /watch/ path watches it.
        if request.method == "GET" and (
            path.watch or (request.query and not path.name and request.flag("watch"))
        ):
            return "watch", await watch(context, request, target)
        if not kind.stored and path.name:
            # Kinds that are only created (reviews, bindings) have no named objects.
            raise self._unknown_path(path)
        verb, serve = _verb(request, path, kind)
        if kind.namespaced and not path.namespace and verb != "list":
            # A namespaced object is reached only through its namespace.
            raise self._unknown_path(path) if path.name or kind.custom else status_errors.not_allowed()
        if serve is None or path.watch or (verb not in kind.verbs and not _removes_finalizers(kind, verb)):
            raise _method_error(request, target, verb)
        if not kind.stored:
            create_only = create_binding if kind.bucket == "bindings" else self._access_reviews.create
            return verb, await create_only(context, request, target)
        return verb, await serve(context, request, target)
