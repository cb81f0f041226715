"""
Routes requests to one of several clusters behind a listener.

A path below `/clusters/NAME/` is served by that cluster, with the prefix removed; every other path is
served by the first cluster. Each cluster authenticates its own tokens. The clusters are managed at paths of
the server itself:

    GET    /clusters          list the clusters
    GET    /clusters/NAME     show one, with the token of its administrator
    PUT    /clusters/NAME     create it, if it does not exist
    DELETE /clusters/NAME     delete it and everything in it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from lamina.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    StoreError,
    Unavailable,
)
from lamina.logs import log
from lamina.objects import names
from lamina.objects.types import Made
from lamina.server.http.connection_context import Handler, RequestAuthenticator
from lamina.server.http.request import Request, Response, error_response, json_response
from lamina.server.identity import ADMIN, ANONYMOUS, Identity

FIRST_CLUSTER = "lamina"
"""The name of the first cluster, where a name is needed."""
_PREFIX = "/clusters"
_RESERVED = (FIRST_CLUSTER, "default")


class ClusterManager(Protocol):
    """Creates, lists and deletes the clusters of a server."""

    def list_clusters(self) -> Sequence[Made]:
        """Return a description of each cluster."""
        ...

    def describe(self, name: str) -> Made | None:
        """Return the address and administrator token of a cluster; None if it does not exist."""
        ...

    async def add(self, name: str) -> bool:
        """Create a cluster unless it exists, and return whether it is new."""
        ...

    async def remove(self, name: str) -> None:
        """Delete an existing cluster."""
        ...


class ClusterRoute(NamedTuple):
    """The handler and the authenticator of a cluster."""

    handler: Handler
    authenticator: RequestAuthenticator


class ClusterRouter:
    """Dispatches each request to the cluster that its path names."""

    def __init__(self, first: ClusterRoute, manager: ClusterManager) -> None:
        self._first = first
        self._manager = manager
        self._entries: dict[str, ClusterRoute] = {}
        self.is_complete = False
        """Whether every cluster has a route: false while the server starts or stops."""

    def open(self, name: str, entry: ClusterRoute) -> None:
        """Add the route to a cluster."""
        self._entries[name] = entry

    def close(self, name: str) -> None:
        """Remove the route to a cluster."""
        self._entries.pop(name, None)

    def authenticate(self, request: Request, client_identity: Identity | None = None) -> Identity:
        """Authenticate a request with the authenticator of the cluster it is for."""
        self._strip_prefix(request)
        entry = self._entries.get(request.cluster) if request.cluster else self._first
        if entry is None and not self.is_complete:
            raise _unavailable(request.cluster)
        return (entry or self._first).authenticator.authenticate(request, client_identity)

    def handle_nowait(self, request: Request) -> Response | None:
        self._strip_prefix(request)
        if not request.cluster:
            return self._first.handler.handle_nowait(request)
        entry = self._entries.get(request.cluster)
        return entry.handler.handle_nowait(request) if entry is not None else None

    async def handle(self, request: Request) -> Response:
        self._strip_prefix(request)
        if not request.cluster:
            if request.path == _PREFIX or request.path.startswith(f"{_PREFIX}/"):
                return await self._serve_clusters(request)
            return await self._first.handler.handle(request)
        entry = self._entries.get(request.cluster)
        if entry is None:
            unknown = _unknown(request.cluster) if self.is_complete else _unavailable(request.cluster)
            return error_response(_refused(request) or unknown)
        response = await entry.handler.handle(request)
        if response.status == 301:
            # A cluster does not know its prefix, so a redirect needs it added.
            response.headers = [
                (name, f"{_PREFIX}/{request.cluster}{value}" if name == "location" else value)
                for name, value in response.headers
            ]
        return response

    def _strip_prefix(self, request: Request) -> None:
        """Move the cluster prefix of a path into `request.cluster`, once: clusters do not nest."""
        if request.path.startswith("/clusters/") and not request.cluster:
            _, _, name, *below = request.path.split("/", 3)
            if below:
                request.cluster, request.path = name or "/", f"/{below[0]}"

    # ── which clusters there are ──

    async def _serve_clusters(self, request: Request) -> Response:
        try:
            if refused := _refused(request):
                raise refused
            return await self._clusters(request)
        except ApiError as error:
            return error_response(error)
        except StoreError as error:
            return error_response(Unavailable(f"the log cannot be written: {error}", retry_after=1))
        except Exception:
            log.exception("request failed", method=request.method, path=request.path)
            return error_response(InternalError("Internal error occurred: see the server's log"))

    async def _clusters(self, request: Request) -> Response:
        name = request.path.removeprefix(_PREFIX).removeprefix("/")
        if not name:
            if request.method != "GET":
                raise MethodNotAllowed("the list of clusters supports GET")
            return json_response({"clusters": list(self._manager.list_clusters())})
        match request.method:
            case "GET":
                return json_response(self._describe(name))
            case "PUT":
                check_name(name)
                is_new = await self._manager.add(name)
                return json_response(self._describe(name), 201 if is_new else 200)
            case "DELETE":
                if name in _RESERVED:
                    raise Conflict("the first cluster stays for as long as its server runs")
                described = self._describe(name)
                await self._manager.remove(name)
                return json_response({"name": described["name"]})
            case _:
                raise MethodNotAllowed("a cluster supports GET, PUT and DELETE")

    def _describe(self, name: str) -> Made:
        described = self._manager.describe(name)
        if described is None:
            raise _unknown(name)
        return described


def check_name(name: str) -> None:
    """Raise BadRequest for an invalid cluster name."""
    if name in _RESERVED:
        raise BadRequest(f'"{name}" is the first cluster, which already exists')
    if problems := names.label(name):
        raise BadRequest(f'"{name}" is not a valid cluster name: {problems[0]}')


def _refused(request: Request) -> ApiError | None:
    """Return Forbidden unless the user administers the server."""
    if request.user is not ANONYMOUS and set(ADMIN.groups) <= set(request.user.groups):
        return None
    verb = request.method.lower()
    path = f"{_PREFIX}/{request.cluster}{request.path}" if request.cluster else request.path
    error = Forbidden(f'forbidden: User "{request.user.name}" cannot {verb} path "{path}"')
    error.shows_details = True
    return error


def _unavailable(name: str) -> ApiError:
    return Unavailable(f"cluster {name!r} is not served now: the server starts or stops", retry_after=1)


def _unknown(name: str) -> NotFound:
    if name in _RESERVED:
        return NotFound(
            f'"{name}" is the first cluster, which is served without a prefix: leave out {_PREFIX}/{name}'
        )
    return NotFound(f'there is no cluster "{name}"')
