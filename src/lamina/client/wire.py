"""How requests are written and answers are read: paths, parameters, options, lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from lamina.client.transport import Response
from lamina.errors import ApiError, BadRequest, Unreachable, from_status
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Ref, WatchEvent

Pairs: TypeAlias = list[tuple[str, str]]
Hear: TypeAlias = Callable[[WatchEvent], None]
"""Is told an event; of those that come in one piece with an error, perhaps twice."""


def collection(kind: Kind, namespace: str) -> str:
    """Return the path of all objects of a kind, or of those in one namespace."""
    return kind.path(_part(namespace, "namespace"))


def path(kind: Kind, ref: Ref, subresource: str = "") -> str:
    """Return the path of one object, or of something below it."""
    if not ref.name:
        raise BadRequest("resource name may not be empty")
    return kind.path(_part(ref.namespace, "namespace"), _part(ref.name, "resource name"), subresource)


def _part(text: str, what: str) -> str:
    # A slash would not be part of the name: it would name another place.
    if "/" in text or "%" in text or text in (".", ".."):
        raise BadRequest(f"invalid {what} '{text}': may not be '.', '..' or contain '/' or '%'")
    return text


def selection(labels: str, fields: str) -> Pairs:
    query = [("labelSelector", labels)] if labels else []
    query += [("fieldSelector", fields)] if fields else []
    return query


def watching(version: str, initial: bool, labels: str, fields: str, seconds: int | None) -> Pairs:
    """Return the query of a watch."""
    query = [("watch", "true"), ("allowWatchBookmarks", "true"), *selection(labels, fields)]
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


def named(obj: Made, kind: Kind) -> Made:
    """Say which kind it is: lists of built-in kinds leave that out, and partial objects name another one."""
    obj["apiVersion"] = kind.api_version
    obj["kind"] = kind.kind
    return obj


async def refusal(response: Response) -> ApiError:
    """Return the error that an answer stands for, whether or not it is a Status."""
    body = await response.read()
    said: Any = None
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        # What is said beside a redirection is for people with a browser.
        if response.status >= 400:
            said = {"message": body.decode(errors="replace").strip()}
    refused = from_status(said if isinstance(said, dict) else {}, response.status)
    if refused.retry_after is None and (header := response.headers.get("retry-after", "")).isdigit():
        refused.retry_after = int(header)
    return refused


def event(line: bytes) -> WatchEvent:
    """Return the event that one line of a watch holds."""
    try:
        read = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"a line of a watch is no JSON: {error}") from error
    if not isinstance(read, dict) or not isinstance(read.get("object"), dict) or "type" not in read:
        raise Unreachable("a line of a watch is no event")
    return WatchEvent(type=read["type"], object=read["object"])


def told(kind: Kind, line: bytes) -> WatchEvent:
    """Return the event that one line of a watch holds, its object with its kind; raises the error that it may be."""
    read = event(line)
    if read["type"] == "ERROR":
        raise from_status(read["object"])
    named(read["object"], kind)
    return read


def pushed(kind: Kind, hear: Hear, chunk: bytes) -> bool:
    """Tell somebody the events in whole lines of a watch; return whether there were no others."""
    for line in chunk.split(b"\n"):
        if line:
            read = event(line)
            if read["type"] == "ERROR":
                return False
            named(read["object"], kind)
            hear(read)
    return True


def lines(rest: bytes, piece: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole lines that another piece makes, and what is left; that is no line without its end."""
    *whole, rest = (rest + piece if rest else piece).split(b"\n")
    return [line for line in whole if line], rest
