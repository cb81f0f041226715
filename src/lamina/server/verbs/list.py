"""
Read many objects.

A list is a still picture of one version. Its pages are of the same picture:
the token that asks for the next one names the version and the last key seen.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from lamina.errors import BadRequest, Cause, Gone
from lamina.server.fields import forbidden, invalid_named, not_supported
from lamina.server.misread import complaint
from lamina.server.plane import Plane, Target
from lamina.server.rendering import list_answer, shown
from lamina.server.request import Answer, Request
from lamina.server.selection import Selection
from lamina.server.store import Key, Row, Store
from lamina.server.verbs.versions import reach, version_of

_INCONSISTENT = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class Token(NamedTuple):
    """Where a chunked list goes on: after which key, at which version (-1: at whatever is current)."""

    version: int
    after: tuple[str, str]

    def encode(self) -> str:
        start = {"v": "meta.k8s.io/v1", "rv": self.version, "start": "/".join(self.after)}
        return base64.urlsafe_b64encode(orjson.dumps(start)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Token:
        """Return the place a token names; raises BadRequest in the words of a real server."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise _no_token("illegal base64 data at input byte 0") from None
        if why := complaint(data):
            raise _no_token(why)
        start = orjson.loads(data)
        if not isinstance(start, dict) or start.get("v") != "meta.k8s.io/v1":
            raise _no_token("server does not recognize this encoded version")
        version, key = start.get("rv"), start.get("start") or ""
        if not isinstance(version, int) or not version:
            raise _no_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        if not isinstance(key, str) or posixpath.normpath(f"/{key}") != f"/{key}":
            raise _no_token(str(key))
        namespace, _, name = key.partition("/")
        return cls(version, (namespace, name))


def _no_token(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")


class Page(NamedTuple):
    """One page: the rows that match, the picture's version, and what is left."""

    rows: Sequence[Row]
    version: int
    token: str
    remaining: int | None


async def list_(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with the objects of a kind, or of one namespace, that the selectors match."""
    selection = Selection(target.kind, request)
    page = await read(plane, request, target, selection)
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
    kind = target.kind
    if kind.custom or kind.converts:
        values = [shown(kind, row) for row in page.rows]
    else:
        values = [row.value for row in page.rows]
    return list_answer(request, kind, values, metadata, plane.now())


async def read(plane: Plane, request: Request, target: Target, selection: Selection) -> Page:
    """Return the page a request asks for."""
    namespace = target.namespace or None
    if not request.query:
        listing = plane.store.list(target.kind.bucket, namespace)
        return Page(listing.rows, listing.version, "", None)
    check(request, watch=False)
    limit = max(0, request.number("limit") or 0)
    request.number("timeoutSeconds")
    text = request.parameter("continue")
    if text:
        if request.parameter("resourceVersion") not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        return await _continue(plane, target, selection, Token.decode(text), limit)
    version = version_of(request, listing=True)
    if version == 0:
        # Whatever is at hand is at hand whole.
        limit = 0
    if version:
        await reach(plane, version)
    exactly = version is not None and request.parameter("resourceVersionMatch") == "Exact"
    if (
        selection.name is not None
        and not exactly
        and (target.namespace or not target.kind.namespaced or not limit)
    ):
        # There is one at most, whatever the limit.
        return _one(plane.store, target, selection)
    try:
        return _page(plane.store, target, selection, version if exactly else None, None, limit)
    except Gone:
        raise Gone(f"The resourceVersion for the provided list is too old: {version}") from None


def _one(store: Store, target: Target, selection: Selection) -> Page:
    """Return what a selection by name finds without going through everything else."""
    if target.namespace or not target.kind.namespaced:
        row = store.get(Key(target.kind.bucket, target.namespace, selection.name or ""))
        rows = [row] if row is not None and selection.matches(row) else []
        return Page(rows, store.version, "", None)
    listing = store.list(target.kind.bucket)
    return Page([row for row in listing.rows if selection.matches(row)], listing.version, "", None)


async def _continue(plane: Plane, target: Target, selection: Selection, token: Token, limit: int) -> Page:
    at = None if token.version == _INCONSISTENT else token.version
    if at is not None:
        await reach(plane, at, opening="Timeout: ")
    try:
        return _page(plane.store, target, selection, at, token.after, limit)
    except Gone:
        fresh = Token(_INCONSISTENT, token.after).encode()
        raise Gone(_TOO_OLD, metadata={"continue": fresh}) from None


def _page(
    store: Store,
    target: Target,
    selection: Selection,
    at: int | None,
    after: tuple[str, str] | None,
    limit: int,
) -> Page:
    namespace = target.namespace or None
    if selection.everything:
        listing = store.list(target.kind.bucket, namespace, at=at, after=after, limit=limit)
        token = ""
        if listing.remaining and listing.rows:
            last = listing.rows[-1].key
            token = Token(listing.version, (last.namespace, last.name)).encode()
        return Page(listing.rows, listing.version, token, listing.remaining)
    listing = store.list(target.kind.bucket, namespace, at=at, after=after)
    found: list[Row] = []
    for index, row in enumerate(listing.rows):
        if selection.matches(row):
            found.append(row)
            if limit and len(found) == limit and index + 1 < len(listing.rows):
                return Page(found, listing.version, Token(listing.version, row.key[1:]).encode(), None)
    return Page(found, listing.version, "", None)


def check(request: Request, *, watch: bool) -> None:
    """Refuse combinations of list options that contradict each other, as validation of ListOptions does."""
    match = request.parameter("resourceVersionMatch")
    initial = "sendInitialEvents" in request.parameters
    causes = _watch_causes(request, match, initial) if watch else _list_causes(request, match, initial)
    if causes:
        raise invalid_named("ListOptions", "meta.k8s.io", "", causes)


_MATCH = "resourceVersionMatch"
_WITH_CONTINUE = forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def _list_causes(request: Request, match: str, initial: bool) -> list[Cause]:
    version = request.parameter("resourceVersion")
    causes: list[Cause] = []
    if match:
        if not version:
            causes.append(
                forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if request.parameter("continue"):
            causes.append(_WITH_CONTINUE)
        if match not in ("Exact", "NotOlderThan"):
            causes.append(not_supported(_MATCH, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            causes.append(
                forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if initial:
        causes.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(request: Request, match: str, initial: bool) -> list[Cause]:
    causes: list[Cause] = []
    if initial and match != "NotOlderThan":
        causes.append(
            forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
    if match and not initial:
        said = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(forbidden(_MATCH, said))
    if match and match != "NotOlderThan":
        causes.append(not_supported(_MATCH, match, ("NotOlderThan",)))
    if request.parameter("continue"):
        causes.append(_WITH_CONTINUE)
    return causes
