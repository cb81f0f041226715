"""
The list verb.

A list is a snapshot of one version. All its pages show the same snapshot: a continue token holds the
version and the last key of the previous page.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from lamina.errors import BadRequest, Cause, Gone
from lamina.server.codec.response import list_response, versioned_json
from lamina.server.codec.selectors import Selection
from lamina.server.context import ServerContext
from lamina.server.decode_errors import json_syntax_error
from lamina.server.field_errors import forbidden, invalid_named, not_supported
from lamina.server.http.request import Request, Response
from lamina.server.kinds.target import Target
from lamina.server.storage.store import Key, Row, Store
from lamina.server.verbs.resource_version import requested_version, wait_for_version

_INCONSISTENT = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class ContinueToken(NamedTuple):
    """The position of a paginated list: the last key and the version (-1: the current one)."""

    version: int
    after: tuple[str, str]

    def encode(self) -> str:
        start = {"v": "meta.k8s.io/v1", "rv": self.version, "start": "/".join(self.after)}
        return base64.urlsafe_b64encode(orjson.dumps(start)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> ContinueToken:
        """Return the position in a token; raises BadRequest with kube-apiserver's message."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise _invalid_token("illegal base64 data at input byte 0") from None
        if why := json_syntax_error(data):
            raise _invalid_token(why)
        start = orjson.loads(data)
        if not isinstance(start, dict) or start.get("v") != "meta.k8s.io/v1":
            raise _invalid_token("server does not recognize this encoded version")
        version, key = start.get("rv"), start.get("start") or ""
        if not isinstance(version, int) or not version:
            raise _invalid_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        if not isinstance(key, str) or posixpath.normpath(f"/{key}") != f"/{key}":
            raise _invalid_token(str(key))
        namespace, _, name = key.partition("/")
        return cls(version, (namespace, name))


def _invalid_token(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")


class Page(NamedTuple):
    """
    One page: the matching rows, the version of the snapshot, the continue token and the remaining count.
    """

    rows: Sequence[Row]
    version: int
    token: str
    remaining: int | None


async def list_(context: ServerContext, request: Request, target: Target) -> Response:
    """Return the objects of a kind, or of one namespace, that match the selectors."""
    selection = Selection(target.kind, request)
    page = await read_page(context, request, target, selection)
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
    kind = target.kind
    if kind.custom or kind.converts:
        values = [versioned_json(kind, row) for row in page.rows]
    else:
        values = [row.value for row in page.rows]
    return list_response(request, kind, values, metadata, context.now())


async def read_page(context: ServerContext, request: Request, target: Target, selection: Selection) -> Page:
    """Return the requested page."""
    namespace = target.namespace or None
    if not request.query:
        listing = context.store.list(target.kind.bucket, namespace)
        return Page(listing.rows, listing.version, "", None)
    check_list_options(request, watch=False)
    limit = max(0, request.number("limit") or 0)
    request.number("timeoutSeconds")
    text = request.parameter("continue")
    if text:
        if request.parameter("resourceVersion") not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        return await _continue(context, target, selection, ContinueToken.decode(text), limit)
    version = requested_version(request, listing=True)
    if version == 0:
        # resourceVersion=0 is served from the watch cache, which ignores the limit.
        limit = 0
    if version:
        await wait_for_version(context, version)
    exact = version is not None and request.parameter("resourceVersionMatch") == "Exact"
    if (
        selection.name is not None
        and not exact
        and (target.namespace or not target.kind.namespaced or not limit)
    ):
        # At most one object matches, so the limit does not apply.
        return _page_by_name(context.store, target, selection)
    try:
        return _page(context.store, target, selection, version if exact else None, None, limit)
    except Gone:
        raise Gone(f"The resourceVersion for the provided list is too old: {version}") from None


def _page_by_name(store: Store, target: Target, selection: Selection) -> Page:
    """Return the page of a selection by name; with a namespace it is a lookup."""
    if target.namespace or not target.kind.namespaced:
        row = store.get(Key(target.kind.bucket, target.namespace, selection.name or ""))
        rows = [row] if row is not None and selection.matches(row) else []
        return Page(rows, store.version, "", None)
    listing = store.list(target.kind.bucket)
    return Page([row for row in listing.rows if selection.matches(row)], listing.version, "", None)


async def _continue(
    context: ServerContext, target: Target, selection: Selection, token: ContinueToken, limit: int
) -> Page:
    at = None if token.version == _INCONSISTENT else token.version
    if at is not None:
        await wait_for_version(context, at, prefix="Timeout: ")
    try:
        return _page(context.store, target, selection, at, token.after, limit)
    except Gone:
        page = ContinueToken(_INCONSISTENT, token.after).encode()
        raise Gone(_TOO_OLD, metadata={"continue": page}) from None


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
            token = ContinueToken(listing.version, (last.namespace, last.name)).encode()
        return Page(listing.rows, listing.version, token, listing.remaining)
    listing = store.list(target.kind.bucket, namespace, at=at, after=after)
    matching: list[Row] = []
    for index, row in enumerate(listing.rows):
        if selection.matches(row):
            matching.append(row)
            if limit and len(matching) == limit and index + 1 < len(listing.rows):
                return Page(
                    matching, listing.version, ContinueToken(listing.version, row.key[1:]).encode(), None
                )
    return Page(matching, listing.version, "", None)


def check_list_options(request: Request, *, watch: bool) -> None:
    """Raise Invalid for contradicting options, as the validation of ListOptions does."""
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
