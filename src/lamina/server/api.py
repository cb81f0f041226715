"""
One server: a request in, an answer out.

Whoever carries requests (HTTP, or a controller in this process) hands them in
here, already told who is asking. Errors become the Status that says so; what
nobody foresaw is logged with its traceback and becomes a 500 without one.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from lamina.errors import ApiError, BadRequest, InternalError, StoreError, Unavailable
from lamina.faults import Faults
from lamina.logs import log
from lamina.server import identity, words
from lamina.server.administration import Administration
from lamina.server.builtin.catalogue import is_builtin
from lamina.server.declared import declared_name
from lamina.server.faults import Trouble, is_spared
from lamina.server.kind import Kind
from lamina.server.metrics import Metrics
from lamina.server.negotiate import PLAIN_ACCEPTS, check_route
from lamina.server.pages import Pages
from lamina.server.plane import Plane, Target
from lamina.server.pods import bind_by_name
from lamina.server.reads import Reads
from lamina.server.rendering import in_form
from lamina.server.request import ANONYMOUS, Answer, Request, error_answer
from lamina.server.reviewing import Moved
from lamina.server.reviews import Reviews
from lamina.server.routes import Path, take_apart
from lamina.server.subresources import serve_below
from lamina.server.verbs.create import create
from lamina.server.verbs.delete import delete, delete_collection
from lamina.server.verbs.get import get
from lamina.server.verbs.list import list_
from lamina.server.verbs.patch import patch
from lamina.server.verbs.update import update
from lamina.server.verbs.watch import watch

_ATTEMPTS = 8
"""How often a write is worked out before it is given up to those who are quicker."""

Verb = Callable[[Plane, Request, Target], Awaitable[Answer]]

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
    """Return what a request does, by its method and by whether it names an object."""
    if kind.custom and request.method == "POST":
        # Whatever name is in the path, the object brings its own.
        return _ON_KIND["POST"]
    return (_ON_OBJECT if path.name else _ON_KIND).get(request.method, ("", None))


def _refused(request: Request, target: Target, verb: str) -> ApiError:
    """Return what is said to a request that its kind does not take."""
    if target.kind.custom and verb == "create":
        return words.definition_ends(target.kind, declared_name(request.body))
    if target.kind.custom and not target.name and request.method in ("PUT", "PATCH"):
        return BadRequest("name must be provided")
    return words.not_allowed()


def _still_changes(kind: Kind, verb: str) -> bool:
    """Say whether this is a change to an object whose kind is going: its finalizers must still be removed."""
    return kind.custom and verb in ("patch", "update")


class Api:
    """Serves one control plane."""

    def __init__(self, plane: Plane, pages: Pages, reviews: Reviews, metrics: Metrics) -> None:
        self._plane = plane
        self._pages = pages
        self._reviews = reviews
        self._metrics = metrics
        self._reads = Reads(plane, metrics)
        self.faults = Faults()
        """What is to go wrong on request; nothing, as a rule, and then nobody asks."""
        self._in_force = self.faults.in_force
        self._trouble = Trouble(plane)
        self.faults.added = self._trouble.begin
        self.administration = pages.administration = Administration(self.faults)

    @property
    def plane(self) -> Plane:
        return self._plane

    def answer_now(self, request: Request) -> Answer | None:
        """Return the answer to a plain read of one object, for which nothing has to be waited for."""
        if request.method != "GET" or request.query or request.user is ANONYMOUS or self._in_force:
            return None
        return self._reads.answer(request)

    async def handle(self, request: Request, plane: Plane | None = None) -> Answer:
        """
        Answer any request; raises nothing but cancellation.

        Whoever names the plane that is to be shown has seen to the faults already.
        """
        if plane is None:
            plane = self._plane
            if self._in_force and not is_spared(request):
                return await self._trouble.handle(request, self.faults, self.handle)
        started = time.perf_counter()
        path = take_apart(request.path)
        kind: Kind | None = None
        verb = request.method.lower()
        try:
            identity.authorise(request, path)
            if path is None:
                answer = await self._pages.serve(request)
            else:
                kind = self._find(path)
                verb, answer = await self._tried(plane, request, path, kind)
        except ApiError as error:
            if request.method != "GET":
                # Nobody is refused for something they cannot see yet: in one process they might ask for ever.
                await self._plane.store.caught_up()
            answer = in_form(request, error_answer(error))
        except StoreError as error:
            log.error("store failed", method=request.method, path=request.path, because=str(error))
            answer = error_answer(Unavailable(f"the log cannot be written: {error}", retry_after=1))
        except RecursionError:
            answer = error_answer(words.too_deep())
        except Exception:
            log.exception("request failed", method=request.method, path=request.path)
            answer = error_answer(InternalError("Internal error occurred: see the server's log"))
        self._metrics.count(verb, kind, path, answer, time.perf_counter() - started)
        if not isinstance(answer.body, bytes):
            answer.body = self._metrics.open(answer.body)
        return answer

    async def _tried(self, plane: Plane, request: Request, path: Path, kind: Kind) -> tuple[str, Answer]:
        """Answer a request; anew where somebody was quicker while others were asked about it."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._resource(plane, request, path, kind)
            except Moved:
                request.warnings.clear()
        raise words.conflict(kind, path.name)

    def _find(self, path: Path) -> Kind:
        kind = self._plane.registry.find(path.group, path.version, path.plural)
        if kind is None:
            raise self._unknown(path)
        if path.namespace and not kind.namespaced:
            raise self._unknown(path)
        return kind

    def _unknown(self, path: Path) -> ApiError:
        """Return what is said of a path that no kind answers: a page, but for the groups the server was born with."""
        return words.unknown_path() if is_builtin(path.group) else words.no_page()

    async def _resource(self, plane: Plane, request: Request, path: Path, kind: Kind) -> tuple[str, Answer]:
        if request.method == "HEAD":
            raise words.not_allowed()
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
                raise words.not_found(kind, path.name) if kind.custom else words.unknown_path()
            return request.method.lower(), await serve_below(plane, request, target)
        target = Target(kind, path.namespace, path.name)
        # An object that is named is read, whatever the query says; only its old path still watches one.
        if request.method == "GET" and (
            path.watch or (request.query and not path.name and request.flag("watch"))
        ):
            return "watch", await watch(plane, request, target)
        if not kind.stored and path.name:
            # What is only created has no place of its own.
            raise self._unknown(path)
        verb, serve = _verb(request, path, kind)
        if kind.namespaced and not path.namespace and verb != "list":
            # A namespaced object is only reached through its namespace.
            raise self._unknown(path) if path.name or kind.custom else words.not_allowed()
        if serve is None or path.watch or (verb not in kind.verbs and not _still_changes(kind, verb)):
            raise _refused(request, target, verb)
        if not kind.stored:
            act = bind_by_name if kind.bucket == "bindings" else self._reviews.create
            return verb, await act(plane, request, target)
        return verb, await serve(plane, request, target)
