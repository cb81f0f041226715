"""
The way to each of several clusters, behind one listener.

What stands below `/clusters/NAME/` is a server like any other, without that
part of the path; everything else is the first cluster's. A token is good at the
cluster that knows it. Which clusters there are is a page of the whole server:

    GET    /clusters          all of them
    GET    /clusters/NAME     one, with the token of its administrator
    PUT    /clusters/NAME     add it, if it is not there yet
    DELETE /clusters/NAME     end it, with all that is in it
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
from lamina.server.desk import Handler
from lamina.server.identity import Authenticator
from lamina.server.request import ADMIN, ANONYMOUS, Answer, Identity, Request, error_answer, json_answer

FIRST = "lamina"
"""What the first cluster is called, where it has to be called something."""
_WAY = "/clusters"
_RESERVED = (FIRST, "default")


class Keeper(Protocol):
    """Who has the clusters, makes them and ends them."""

    def listed(self) -> Sequence[Made]:
        """Return what there is to say of each cluster."""
        ...

    def told(self, name: str) -> Made | None:
        """Return how to reach one cluster, as its administrator; None if there is none of that name."""
        ...

    async def add(self, name: str) -> bool:
        """Have a cluster of that name, and say whether it is new."""
        ...

    async def remove(self, name: str) -> None:
        """End a cluster that there is."""
        ...


class Entry(NamedTuple):
    """A cluster at the end of a way: who answers, and who knows whom."""

    handler: Handler
    authenticator: Authenticator


class Gate:
    """Hands each request to the cluster that its path names."""

    def __init__(self, first: Entry, keeper: Keeper) -> None:
        self._first = first
        self._keeper = keeper
        self._entries: dict[str, Entry] = {}
        self.is_complete = False
        """Whether every cluster there is can be reached: not while the server starts or stops."""

    def open(self, name: str, entry: Entry) -> None:
        """Lead the way to a cluster from now on."""
        self._entries[name] = entry

    def close(self, name: str) -> None:
        """Lead nobody to a cluster any more."""
        self._entries.pop(name, None)

    def identify(self, request: Request, certified: Identity | None = None) -> Identity:
        """Return who a request is from, as the cluster knows them that it is for."""
        self._lead(request)
        entry = self._entries.get(request.cluster) if request.cluster else self._first
        if entry is None and not self.is_complete:
            raise _not_yet(request.cluster)
        return (entry or self._first).authenticator.identify(request, certified)

    def answer_now(self, request: Request) -> Answer | None:
        self._lead(request)
        if not request.cluster:
            return self._first.handler.answer_now(request)
        entry = self._entries.get(request.cluster)
        return entry.handler.answer_now(request) if entry is not None else None

    async def handle(self, request: Request) -> Answer:
        self._lead(request)
        if not request.cluster:
            if request.path == _WAY or request.path.startswith(f"{_WAY}/"):
                return await self._administer(request)
            return await self._first.handler.handle(request)
        entry = self._entries.get(request.cluster)
        if entry is None:
            unknown = _unknown(request.cluster) if self.is_complete else _not_yet(request.cluster)
            return error_answer(_refused(request) or unknown)
        answer = await entry.handler.handle(request)
        if answer.status == 301:
            # The cluster knows its own paths, and not the way to them.
            answer.headers = [
                (name, f"{_WAY}/{request.cluster}{value}" if name == "location" else value)
                for name, value in answer.headers
            ]
        return answer

    def _lead(self, request: Request) -> None:
        """Take the way to a cluster off a path, once: below a cluster there is no other."""
        if request.path.startswith("/clusters/") and not request.cluster:
            _, _, name, *below = request.path.split("/", 3)
            if below:
                request.cluster, request.path = name or "/", f"/{below[0]}"

    # ── which clusters there are ──

    async def _administer(self, request: Request) -> Answer:
        try:
            if refused := _refused(request):
                raise refused
            return await self._clusters(request)
        except ApiError as error:
            return error_answer(error)
        except StoreError as error:
            return error_answer(Unavailable(f"the log cannot be written: {error}", retry_after=1))
        except Exception:
            log.exception("request failed", method=request.method, path=request.path)
            return error_answer(InternalError("Internal error occurred: see the server's log"))

    async def _clusters(self, request: Request) -> Answer:
        name = request.path.removeprefix(_WAY).removeprefix("/")
        if not name:
            if request.method != "GET":
                raise MethodNotAllowed("the list of clusters takes GET")
            return json_answer({"clusters": list(self._keeper.listed())})
        match request.method:
            case "GET":
                return json_answer(self._told(name))
            case "PUT":
                check_name(name)
                is_new = await self._keeper.add(name)
                return json_answer(self._told(name), 201 if is_new else 200)
            case "DELETE":
                if name in _RESERVED:
                    raise Conflict("the first cluster stays for as long as its server runs")
                told = self._told(name)
                await self._keeper.remove(name)
                return json_answer({"name": told["name"]})
            case _:
                raise MethodNotAllowed("a cluster takes GET, PUT and DELETE")

    def _told(self, name: str) -> Made:
        told = self._keeper.told(name)
        if told is None:
            raise _unknown(name)
        return told


def check_name(name: str) -> None:
    """Raise BadRequest for what no cluster can be called."""
    if name in _RESERVED:
        raise BadRequest(f'"{name}" is the first cluster, which is there already')
    if problems := names.label(name):
        raise BadRequest(f'"{name}" is no name for a cluster: {problems[0]}')


def _refused(request: Request) -> ApiError | None:
    """Return what is said to those who do not administer the server."""
    if request.user is not ANONYMOUS and set(ADMIN.groups) <= set(request.user.groups):
        return None
    verb = request.method.lower()
    path = f"{_WAY}/{request.cluster}{request.path}" if request.cluster else request.path
    error = Forbidden(f'forbidden: User "{request.user.name}" cannot {verb} path "{path}"')
    error.shows_details = True
    return error


def _not_yet(name: str) -> ApiError:
    return Unavailable(f"cluster {name!r} is not served now: the server starts or stops", retry_after=1)


def _unknown(name: str) -> NotFound:
    if name in _RESERVED:
        return NotFound(
            f'"{name}" is the first cluster, which is served without a way: leave out {_WAY}/{name}'
        )
    return NotFound(f'there is no cluster "{name}"')
