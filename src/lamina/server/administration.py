"""
The server's own pages, for whoever administers it: its faults and its clock.

    GET    /lamina/faults        what is broken on request, and how often it was met with
    PUT    /lamina/faults        break this and nothing else: {"faults": [...]}
    POST   /lamina/faults        break this as well
    DELETE /lamina/faults[/ID]   take everything back, or one
    GET    /lamina/clock         what time it is here, and how fast it goes by
    POST   /lamina/clock         {"wind": seconds}, {"speed": n}, or both

They are answered whatever is broken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from lamina.clock import Clock, PacedClock, pass_time
from lamina.errors import BadRequest, Conflict, Forbidden, MethodNotAllowed, NotFound, SpecError
from lamina.faults import Faults, read_fault, shown
from lamina.objects.times import micro_stamp
from lamina.objects.types import Made
from lamina.server.request import ADMIN, Answer, Identity, Request, json_answer

FASTEST = 1_000_000.0
LONGEST = timedelta(days=3660)
"""How far a clock is wound at once."""


class Administration:
    """The pages of one server; `clock`, `settled` and who hears that it was `wound` are set by whoever has them."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.clock: Clock | None = None
        self.settled: Callable[[], Awaitable[None]] = _at_once
        self.wound: Callable[[], Awaitable[None]] = _at_once

    async def serve(self, request: Request) -> Answer | None:
        """Answer a request for one of these pages; None for any other."""
        match request.path.rstrip("/").split("/"):
            case ["", "lamina", "faults"]:
                _admit(request.user)
                return self._table(request)
            case ["", "lamina", "faults", name]:
                _admit(request.user)
                return self._fault(request, name)
            case ["", "lamina", "clock"]:
                return await self._time(request)
            case _:
                return None

    # ── faults ──

    def _table(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                return json_answer(self._listed())
            case "PUT":
                listed = _body(request).get("faults")
                if not isinstance(listed, list):
                    raise BadRequest("faults: expected a list of faults")
                faults = [_read(one, f"faults[{index}].") for index, one in enumerate(listed)]
                self.faults.clear()
                for fault in faults:
                    self.faults.add(fault)
                return json_answer(self._listed())
            case "POST":
                return json_answer(shown(self.faults.add(_read(_body(request)))), 201)
            case "DELETE":
                self.faults.clear()
                return json_answer(self._listed())
            case _:
                raise MethodNotAllowed("faults take GET, PUT, POST and DELETE")

    def _fault(self, request: Request, name: str) -> Answer:
        if request.method != "DELETE":
            raise MethodNotAllowed("a fault takes DELETE")
        if not self.faults.remove(name):
            known = ", ".join(entry.fault.id for entry in self.faults.entries) or "none"
            raise NotFound(f'there is no fault "{name}"; the faults in force are {known}')
        return json_answer(self._listed())

    def _listed(self) -> Made:
        return {"faults": [{**shown(entry.fault), "met": entry.met} for entry in self.faults.entries]}

    # ── time ──

    async def _time(self, request: Request) -> Answer:
        if self.clock is None:
            raise NotFound("this server shows no clock")
        if request.method == "GET":
            return json_answer(_told(self.clock))
        if request.method != "POST":
            raise MethodNotAllowed("the clock takes GET and POST")
        _admit(request.user)
        if request.cluster:
            raise Forbidden(
                "all clusters of a server have one clock: "
                "it is wound at the server's own address, which is the context lamina"
            )
        asked = _body(request)
        if stray := sorted(asked.keys() - {"wind", "speed"}):
            raise BadRequest(f"{stray[0]}: the clock takes wind and speed, in seconds and times")
        wind = _number(asked, "wind", 0.0, LONGEST.total_seconds())
        speed = _number(asked, "speed", 0.0, FASTEST)
        if not isinstance(self.clock, PacedClock):
            raise Conflict("the clock of this server is somebody else's to wind")
        if speed is not None:
            self.clock.run_at(speed)
        if wind is not None:
            # It may take hours, and whoever does not wait for it any more does not want it any more.
            request.held = True
            try:
                await pass_time(self.clock, timedelta(seconds=wind), self.settled)
            finally:
                await self.wound()
        elif speed is not None:
            await self.wound()
        return json_answer(_told(self.clock))


def _told(clock: Clock) -> Made:
    now = clock.now()
    ahead = round((now - datetime.now(UTC)).total_seconds(), 3)
    speed = clock.speed if isinstance(clock, PacedClock) else 1.0
    return {"now": micro_stamp(now), "speed": speed, "ahead": ahead}


def _admit(user: Identity) -> None:
    if user != ADMIN and not set(ADMIN.groups) <= set(user.groups):
        raise Forbidden(f'user "{user.name}" does not administer this server')


def _read(data: Any, where: str = "") -> Any:
    try:
        return read_fault(data)
    except SpecError as senseless:
        raise BadRequest(f"{where}{senseless}") from None


def _body(request: Request) -> Made:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the request is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequest("the request is no JSON object")
    return body


def _number(asked: Made, name: str, least: float, most: float) -> float | None:
    value = asked.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadRequest(
            f"{name}: expected a number from {least:.0f} to {most:.0f}, got {orjson.dumps(value).decode()}"
        )
    return float(value)


async def _at_once() -> None:
    """Nobody has to be waited for."""
