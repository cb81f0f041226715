"""Read one object."""

from __future__ import annotations

from lamina.server import words
from lamina.server.plane import Plane, Target
from lamina.server.rendering import object_answer, shown
from lamina.server.request import Answer, Request
from lamina.server.verbs.versions import at_least


async def get(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with the newest committed version, which is at least as new as any the request may name."""
    if request.query:
        await at_least(plane, request)
    row = plane.store.get(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    return object_answer(request, target.kind, shown(target.kind, row), plane.now())
