"""The options of a write: dry run, field validation, field manager."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lamina.objects.go_quote import json_text
from lamina.server import status_errors
from lamina.server.field_errors import invalid_named
from lamina.server.http.request import Request
from lamina.server.kinds.metadata import check_field_manager

_PRINTABLE_LIMIT = 128


class WriteOptions(NamedTuple):
    """Options of a write: `validation` is Strict, Warn or Ignore; `manager` is the field manager."""

    dry_run: bool
    validation: str
    manager: str
    force: bool


def write_options(request: Request, options: str) -> WriteOptions:
    """Return the options of a create, update or patch; `options` is their kind, for error messages."""
    return _parse(request.query, request.headers.get("user-agent", ""), options)


@lru_cache(maxsize=512)
def _parse(query: str, user_agent: str, options: str) -> WriteOptions:
    agent = _agent(user_agent)
    if not query:
        return WriteOptions(False, "Warn", agent, False)
    request = Request("", "", query)
    dry_run = _dry_run(request.parameters.get("dryRun", ()), options)
    validation = request.parameter("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        raise status_errors.invalid_options(
            options,
            "fieldValidation",
            "FieldValueNotSupported",
            f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"',
        )
    manager = request.parameter("fieldManager")
    if problem := check_field_manager(manager):
        raise invalid_named(options, "meta.k8s.io", "", problem)
    return WriteOptions(dry_run, validation, manager or agent, request.flag("force"))


def _dry_run(values: list[str] | tuple[str, ...], options: str) -> bool:
    if any(value != "All" for value in values):
        raise status_errors.invalid_options(
            options,
            "dryRun",
            "FieldValueNotSupported",
            f'Unsupported value: {json_text(list(values))}: supported values: "All"',
        )
    return bool(values)


def check_dry_run(values: list[str], options: str) -> bool:
    """Return whether dryRun values request a dry run; raises for any value but All."""
    return _dry_run(values, options)


def _agent(user_agent: str) -> str:
    """Return the first word of a User-Agent: the default field manager."""
    agent = user_agent.partition("/")[0].partition(" ")[0]
    agent = "".join(letter for letter in agent if letter.isprintable())[:_PRINTABLE_LIMIT]
    return agent or "unknown"
