"""
The administration API of a server: its faults and its clock.

    GET    /lamina/faults        list the faults, and how often each was hit
    PUT    /lamina/faults        replace all faults: {"faults": [...]}
    POST   /lamina/faults        add a fault
    DELETE /lamina/faults[/ID]   remove all faults, or one
    GET    /lamina/clock         show the time and its speed
    POST   /lamina/clock         {"wind": seconds}, {"speed": n}, or both

Faults do not apply to these paths.
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
from lamina.server.http.request import Request, Response, json_response
from lamina.server.identity import ADMIN, Identity

MAX_SPEED = 1_000_000.0
MAX_WIND = timedelta(days=3660)
"""The furthest a clock is wound in one request."""


class AdminApi:
    """Serves the administration API; the application sets `clock`, `settled` and the callback `wound`."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.clock: Clock | None = None
        self.settled: Callable[[], Awaitable[None]] = _no_wait
        self.wound: Callable[[], Awaitable[None]] = _no_wait

    async def serve(self, request: Request) -> Response | None:
        """Serve a request to this API; return None for any other path."""
        match request.path.rstrip("/").split("/"):
            case ["", "lamina", "faults"]:
                _require_admin(request.user)
                return self._serve_faults(request)
            case ["", "lamina", "faults", name]:
                _require_admin(request.user)
                return self._serve_fault(request, name)
            case ["", "lamina", "clock"]:
                return await self._serve_clock(request)
            case _:
                return None

    # ── faults ──

    def _serve_faults(self, request: Request) -> Response:
        match request.method:
            case "GET":
                return json_response(self._list_faults())
            case "PUT":
                listed = _body(request).get("faults")
                if not isinstance(listed, list):
                    raise BadRequest("faults: expected a list of faults")
                faults = [_parse_fault(one, f"faults[{index}].") for index, one in enumerate(listed)]
                self.faults.clear()
                for fault in faults:
                    self.faults.add(fault)
                return json_response(self._list_faults())
            case "POST":
                return json_response(shown(self.faults.add(_parse_fault(_body(request)))), 201)
            case "DELETE":
                self.faults.clear()
                return json_response(self._list_faults())
            case _:
                raise MethodNotAllowed("faults support GET, PUT, POST and DELETE")

    def _serve_fault(self, request: Request, name: str) -> Response:
        if request.method != "DELETE":
            raise MethodNotAllowed("a fault supports only DELETE")
        if not self.faults.remove(name):
            known = ", ".join(entry.fault.id for entry in self.faults.entries) or "none"
            raise NotFound(f'there is no fault "{name}"; the active faults are {known}')
        return json_response(self._list_faults())

    def _list_faults(self) -> Made:
        return {"faults": [{**shown(entry.fault), "met": entry.met} for entry in self.faults.entries]}

    # ── time ──

    async def _serve_clock(self, request: Request) -> Response:
        if self.clock is None:
            raise NotFound("this server has no clock")
        if request.method == "GET":
            return json_response(_clock_status(self.clock))
        if request.method != "POST":
            raise MethodNotAllowed("the clock supports GET and POST")
        _require_admin(request.user)
        if request.cluster:
            raise Forbidden(
                "all clusters of a server have one clock: "
                "it is wound at the server's own address, which is the context lamina"
            )
        requested = _body(request)
        if stray := sorted(requested.keys() - {"wind", "speed"}):
            raise BadRequest(f"{stray[0]}: the clock has the fields wind, in seconds, and speed, a factor")
        wind = _number(requested, "wind", 0.0, MAX_WIND.total_seconds())
        speed = _number(requested, "speed", 0.0, MAX_SPEED)
        if not isinstance(self.clock, PacedClock):
            raise Conflict("the clock of this server cannot be wound")
        if speed is not None:
            self.clock.run_at(speed)
        if wind is not None:
            # Winding may take hours, and is cancelled when its client disconnects.
            request.abandonable = True
            try:
                await pass_time(self.clock, timedelta(seconds=wind), self.settled)
            finally:
                await self.wound()
        elif speed is not None:
            await self.wound()
        return json_response(_clock_status(self.clock))


def _clock_status(clock: Clock) -> Made:
    now = clock.now()
    ahead = round((now - datetime.now(UTC)).total_seconds(), 3)
    speed = clock.speed if isinstance(clock, PacedClock) else 1.0
    return {"now": micro_stamp(now), "speed": speed, "ahead": ahead}


def _require_admin(user: Identity) -> None:
    if user != ADMIN and not set(ADMIN.groups) <= set(user.groups):
        raise Forbidden(f'user "{user.name}" does not administer this server')


def _parse_fault(data: Any, where: str = "") -> Any:
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


def _number(requested: Made, name: str, minimum: float, maximum: float) -> float | None:
    value = requested.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        raise BadRequest(
            f"{name}: expected a number from {minimum:.0f} to {maximum:.0f}, got {orjson.dumps(value).decode()}"
        )
    return float(value)


async def _no_wait() -> None:
    pass
