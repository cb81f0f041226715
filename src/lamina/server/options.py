"""What a request asks beside its body: dry run, field validation, field manager, deadlines."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from lamina.errors import BadRequest
from lamina.objects.printing import json_text
from lamina.server import words
from lamina.server.fields import invalid_named
from lamina.server.metadata import check_field_manager
from lamina.server.request import Request

_PRINTABLE_LIMIT = 128
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([^0-9.]*)")
_LONGEST_DURATION = 2**63 / 1e9
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DEFAULT_DEADLINE = 60.0


class WriteOptions(NamedTuple):
    """How to write: `validation` is Strict, Warn or Ignore; `manager` is who owns what is written."""

    dry_run: bool
    validation: str
    manager: str
    force: bool


_PLAIN = ("Warn", "unknown")


def write_options(request: Request, options: str) -> WriteOptions:
    """Return the options of a create, update or patch; `options` names their kind in complaints."""
    return _written(request.query, request.headers.get("user-agent", ""), options)


@lru_cache(maxsize=512)
def _written(query: str, user_agent: str, options: str) -> WriteOptions:
    agent = _agent(user_agent)
    if not query:
        return WriteOptions(False, "Warn", agent, False)
    request = Request("", "", query)
    dry_run = _dry_run(request.parameters.get("dryRun", ()), options)
    validation = request.parameter("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        raise words.invalid_options(
            options,
            "fieldValidation",
            "FieldValueNotSupported",
            f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"',
        )
    manager = request.parameter("fieldManager")
    if wrong := check_field_manager(manager):
        raise invalid_named(options, "meta.k8s.io", "", wrong)
    return WriteOptions(dry_run, validation, manager or agent, request.flag("force"))


def _dry_run(values: list[str] | tuple[str, ...], options: str) -> bool:
    if any(value != "All" for value in values):
        raise words.invalid_options(
            options,
            "dryRun",
            "FieldValueNotSupported",
            f'Unsupported value: {json_text(list(values))}: supported values: "All"',
        )
    return bool(values)


def check_dry_run(values: list[str], options: str) -> bool:
    """Return whether a list of dryRun words asks for one; raises for any word but All."""
    return _dry_run(values, options)


def _agent(user_agent: str) -> str:
    """Return the first word of a User-Agent, which owns what a request writes without naming a manager."""
    agent = user_agent.partition("/")[0].partition(" ")[0]
    agent = "".join(letter for letter in agent if letter.isprintable())[:_PRINTABLE_LIMIT]
    return agent or "unknown"


def deadline(request: Request) -> float:
    """Return how many seconds the request allows; raises for a duration that is none."""
    text = request.parameter("timeout")
    if not text:
        return _DEFAULT_DEADLINE
    try:
        seconds = go_duration(text)
    except ValueError as nonsense:
        raise BadRequest(f"invalid timeout specified in the request URL - {nonsense}") from None
    return min(seconds, _DEFAULT_DEADLINE) if seconds > 0 else _DEFAULT_DEADLINE


def go_duration(text: str) -> float:
    """Return the seconds of a duration as Go writes them (`1h30m`, `34s`, `0`); raises ValueError in Go's words."""
    sign = -1.0 if text.startswith("-") else 1.0
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0.0
    total, position = 0.0, 0
    while position < len(rest) or not rest:
        found = _DURATION.match(rest, position)
        if found is None:
            raise ValueError(f"time: invalid duration {_in_quotes(text)}")
        number, unit = found.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {_in_quotes(text)}")
        if unit not in _SECONDS:
            raise ValueError(f"time: unknown unit {_in_quotes(unit)} in duration {_in_quotes(text)}")
        total += float(number) * _SECONDS[unit]
        position = found.end()
    if total >= _LONGEST_DURATION:
        raise ValueError(f"time: invalid duration {_in_quotes(text)}")
    return sign * total


def _in_quotes(text: str) -> str:
    """Return a text as Go's own clock quotes it, which is stricter than Go otherwise is."""
    shown = "".join(
        f"\\{letter}" if letter in '"\\' else letter if " " <= letter < "\x7f" else _bytes_of(letter)
        for letter in text
    )
    return f'"{shown}"'


def _bytes_of(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "replace"))
