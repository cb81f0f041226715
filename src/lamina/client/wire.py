"""How requests are written and answers are read: paths, parameters, options, lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeAlias

import orjson

from lamina.client.transport import Response
from lamina.errors import ApiError, BadRequest, Unreachable, from_status
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Ref, WatchEvent

Pairs: TypeAlias = list[tuple[str, str]]
Hear: TypeAlias = Callable[[WatchEvent], bool]
"""Is told an event, and says whether it took it in."""


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


def pushed(kind: Kind, hear: Hear, chunk: bytes) -> bool:
    """Tell somebody the events in whole lines of a watch; return whether they took all of them."""
    for line in chunk.split(b"\n"):
        if line:
            told = event(line)
            if told["type"] == "ERROR":
                return False
            named(told["object"], kind)
            if not hear(told):
                return False
    return True


async def lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield whole lines. An end without a newline is a stream that broke off, and no line."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece if rest else piece).split(b"\n")
        for line in whole:
            if line:
                yield line
