"""Writes an edit of annotations, and waits for what the object reports about it."""

from __future__ import annotations

import asyncio
from time import monotonic

from lamina.cli.options.param_types import format_seconds
from lamina.client.client import Client
from lamina.core.model.revision_commands import AnnotationEdit, Result, Wait
from lamina.errors import LaminaError
from lamina.objects import meta

_INTERVAL, _SETTLED_AFTER = 0.2, 1.0
"""How often the object is read, and how long it has not changed when it counts as settled; in seconds."""
_UNANSWERED = "the annotation stays, and has its effect once a controller reads it; check that one is running"


class NotReported(LaminaError):
    """A request was not carried out, or its result was not reported in time."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint or None


async def carry_out(client: Client, edit: AnnotationEdit, seconds: float) -> tuple[str, ...]:
    """Write an edit, and return the lines of its result; without seconds to wait there are none."""
    await client.patch(edit.ref, {"metadata": {"annotations": dict(edit.annotations)}})
    if not seconds:
        return ()
    result = await _result(client, edit, monotonic() + seconds)
    if result is None:
        raise NotReported(f"{edit.ref}: no result within {format_seconds(seconds)}", _UNANSWERED)
    if result.error:
        raise NotReported(result.error, result.hint)
    return result.lines


async def _result(client: Client, edit: AnnotationEdit, end: float) -> Result | None:
    version, since, wait = "", monotonic(), Wait.JUST_CHANGED
    while wait is not Wait.TIMED_OUT:
        obj = await client.get(edit.ref)
        now = monotonic()
        if meta.resource_version(obj) != version:
            version, since = meta.resource_version(obj), now
        is_settled = now - since >= _SETTLED_AFTER
        wait = Wait.TIMED_OUT if now >= end else Wait.SETTLED if is_settled else Wait.JUST_CHANGED
        result = edit.result(obj, wait)
        if result is not None:
            return result
        await asyncio.sleep(min(_INTERVAL, max(0.0, end - now)))
    return None
