"""
Plain reads of one object, answered on the spot.

Most requests are that, and there is nothing to wait for. What a path means is
remembered for as long as the kinds stay the same, so that the way from a path
to the stored bytes is two look-ups.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from lamina.server.kind import Kind
from lamina.server.metrics import Metrics, Tally
from lamina.server.negotiate import check_route
from lamina.server.plane import Plane, Target
from lamina.server.rendering import object_answer, shown
from lamina.server.request import Answer, Request
from lamina.server.routes import take_apart
from lamina.server.store import Key

_REMEMBERED = 4_096
_LONGEST = 512
"""How many paths are remembered, and how long each may be."""
_AS_STORED = (None, "application/json", "*/*")
"""What clients accept who take an object as it is."""


class _Place(NamedTuple):
    """What a path means: an object that may be read without further ado, and where such reads are counted."""

    kind: Kind
    key: Key
    tally: Tally


class Reads:
    """Answers reads that ask for nothing but the newest version of one object."""

    def __init__(self, plane: Plane, metrics: Metrics) -> None:
        self._plane = plane
        self._metrics = metrics
        self._places: dict[str, _Place] = {}
        self._edition = -1

    def answer(self, request: Request) -> Answer | None:
        """Return the answer to a GET without a query, by somebody who may read; None if it takes more than that."""
        started = time.perf_counter()
        plane = self._plane
        registry = plane.registry
        registry.refresh()
        if registry.edition != self._edition:
            self._places.clear()
            self._edition = registry.edition
        place = self._places.get(request.path) or self._find(request.path)
        if place is None:
            return None
        kind, key, tally = place
        row = plane.store.get(key)
        if row is None:
            return None
        try:
            value = shown(kind, row)
            if request.headers.get("accept") in _AS_STORED:
                answer = Answer(200, kind.prefix + value[1:])
            else:
                if not kind.custom:
                    check_route(request.headers["accept"], streams=False)
                answer = object_answer(request, kind, value, plane.now())
        except Exception:
            # Whatever is wrong is found again, and reported, by the way that can take its time.
            return None
        tally.add(time.perf_counter() - started)
        return answer

    def _find(self, text: str) -> _Place | None:
        path = take_apart(text)
        if path is None or not path.name or path.subresource or path.watch:
            return None
        kind = self._plane.registry.find(path.group, path.version, path.plural)
        if kind is None or kind.deprecation or "get" not in kind.verbs:
            return None
        if kind.namespaced is not bool(path.namespace):
            return None
        place = _Place(
            kind,
            Target(kind, path.namespace, path.name).key,
            self._metrics.tally("get", kind, path, 200),
        )
        if len(text) <= _LONGEST:
            if len(self._places) >= _REMEMBERED:
                self._places.clear()
            self._places[text] = place
        return place
