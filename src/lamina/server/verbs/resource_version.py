"""The resourceVersion parameter, and waiting for a version that is not committed yet."""

from __future__ import annotations

from lamina.errors import Unclassified
from lamina.server import status_errors
from lamina.server.context import ServerContext
from lamina.server.http.request import Request

_WAIT_SECONDS = 3.0
"""Seconds to wait for a version in the future, as in kube-apiserver."""


def requested_version(request: Request, *, listing: bool = False) -> int | None:
    """
    Return the resourceVersion parameter; None where it is absent, 0 for any. Only a list explains an
    invalid one.
    """
    text = request.parameter("resourceVersion")
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise (
            status_errors.bad_version(text) if listing else Unclassified(status_errors.unparsed_version(text))
        )
    return int(text)


async def wait_for_request(context: ServerContext, request: Request) -> int | None:
    """Wait until the store has committed the version that a request names, and return that version."""
    version = requested_version(request)
    if version is not None:
        await wait_for_version(context, version)
    return version


async def wait_for_version(context: ServerContext, version: int, prefix: str = "") -> None:
    """
    Wait for a version in the future; raises kube-apiserver's timeout, its message starting with `prefix`.
    """
    if version > context.store.version and not await context.store.wait_for(version, _WAIT_SECONDS):
        raise status_errors.too_large_version(version, context.store.version, prefix)
