"""Encode requests and decode responses: paths, query parameters, options, watch lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from lamina.client.transport.base import Response
from lamina.errors import ApiError, BadRequest, Unreachable, from_status
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Ref, WatchEvent

Pairs: TypeAlias = list[tuple[str, str]]
EventHandler: TypeAlias = Callable[[WatchEvent], None]
"""Called with each watch event; events in one chunk with an error may be repeated."""


def collection(kind: Kind, namespace: str) -> str:
    """Return the path of the collection of a kind, in one namespace or in all."""
    return kind.path(_segment(namespace, "namespace"))


def path(kind: Kind, ref: Ref, subresource: str = "") -> str:
    """Return the path of an object or of its subresource."""
    if not ref.name:
        raise BadRequest("resource name may not be empty")
    return kind.path(_segment(ref.namespace, "namespace"), _segment(ref.name, "resource name"), subresource)


def _segment(text: str, what: str) -> str:
    # A slash would change the path to another resource.
    if "/" in text or "%" in text or text in (".", ".."):
        raise BadRequest(f"invalid {what} '{text}': may not be '.', '..' or contain '/' or '%'")
    return text


def selector_query(labels: str, fields: str) -> Pairs:
    query = [("labelSelector", labels)] if labels else []
    query += [("fieldSelector", fields)] if fields else []
    return query


def watch_query(version: str, initial: bool, labels: str, fields: str, seconds: int | None) -> Pairs:
    """Return the query of a watch."""
    query = [("watch", "true"), ("allowWatchBookmarks", "true"), *selector_query(labels, fields)]
    if initial:
        query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
    query += [("resourceVersion", version)] if version else []
    query += [("timeoutSeconds", str(seconds))] if seconds is not None else []
    return query


def delete_options(propagation: str, grace: int | None, dry_run: bool) -> Made:
    options: Made = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if propagation:
        options["propagationPolicy"] = str(propagation)
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def set_kind(obj: Made, kind: Kind) -> Made:
    """Set kind and apiVersion: items of lists lack them, and partial objects have those of PartialObjectMetadata."""
    obj["apiVersion"] = kind.api_version
    obj["kind"] = kind.kind
    return obj


async def api_error(response: Response) -> ApiError:
    """Return the error of a response, whether or not its body is a Status."""
    body = await response.read()
    message: Any = None
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        # The body of a redirect is HTML for browsers.
        if response.status >= 400:
            message = {"message": body.decode(errors="replace").strip()}
    error = from_status(message if isinstance(message, dict) else {}, response.status)
    if error.retry_after is None and (header := response.headers.get("retry-after", "")).isdigit():
        error.retry_after = int(header)
    return error


def event(line: bytes) -> WatchEvent:
    """Return the event in one line of a watch."""
    try:
        decoded = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"invalid JSON in a watch: {error}") from error
    if not isinstance(decoded, dict) or not isinstance(decoded.get("object"), dict) or "type" not in decoded:
        raise Unreachable("no watch event in a line of a watch")
    return WatchEvent(type=decoded["type"], object=decoded["object"])


def watch_event(kind: Kind, line: bytes) -> WatchEvent:
    """Return the event in one line of a watch, its object with its kind; an ERROR event is raised."""
    decoded = event(line)
    if decoded["type"] == "ERROR":
        raise from_status(decoded["object"])
    set_kind(decoded["object"], kind)
    return decoded


def push_events(kind: Kind, on_event: EventHandler, chunk: bytes) -> bool:
    """Handle the whole lines of a chunk; return False if it has a partial line."""
    for line in chunk.split(b"\n"):
        if line:
            decoded = event(line)
            if decoded["type"] == "ERROR":
                return False
            set_kind(decoded["object"], kind)
            on_event(decoded)
    return True


def lines(partial: bytes, chunk: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole lines that end in this chunk, and the partial line after them."""
    *whole, partial = (partial + chunk if partial else chunk).split(b"\n")
    return [line for line in whole if line], partial
