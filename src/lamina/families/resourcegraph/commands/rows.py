"""The rows of lists of revisions: of a definition, and of an instance's input."""

from __future__ import annotations

from datetime import UTC

from lamina.core.model.revision_commands import Table
from lamina.families.resourcegraph.commands.facts import Facts, number
from lamina.families.resourcegraph.definitions.instance_facts import facts as instance_facts
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj

_DEFINITION = ("REVISION", "CREATED", "INSTANCES", "STATUS")
_INPUT = ("INPUT-REV", "RGD-REV", "CREATED", "STATUS")


def table(found: Facts) -> Table:
    """Return the revisions of a definition or of an instance, newest first."""
    if found.is_definition:
        header, keys = _DEFINITION, ("revision", "created", "instances", "status")
        data = definition_rows(found)
    else:
        header, keys = _INPUT, ("revision", "rgdRevision", "created", "status")
        data = input_rows(found)
    return Table(
        header=header,
        rows=tuple(tuple(_cell(row, key) for key in keys) for row in data),
        data=data,
        empty=f"{found.title} has no revisions",
    )


def _cell(row: Made, key: str) -> str:
    return shown_time(row[key]) if key == "created" else str(row[key])


def shown_time(text: str) -> str:
    """Return a timestamp in UTC as it is listed: `2025-01-15 10:30:00`."""
    at = moment(text)
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if at is not None else "<unknown>"


def definition_rows(found: Facts) -> tuple[Made, ...]:
    """
    Return the revisions of a definition.

    One that is neither current nor in use is prunable, even where the history limit still keeps it.
    """
    current = current_revision(found)
    pinned = {instance_facts(one).pin for one in found.instances}
    rows: list[Made] = []
    for one in reversed(found.revisions):
        count = (one.get("status") or {}).get("instanceCount") or 0
        state = "Active" if count or number(one) in pinned else "Prunable"
        rows.append(
            {
                "revision": number(one),
                "name": meta.name(one),
                "created": _created(one),
                "instances": count,
                "status": "Current" if number(one) == current else state,
            }
        )
    return tuple(rows)


def current_revision(found: Facts) -> int:
    """Return the current revision of a definition or the newest input revision of an instance; 0 without any."""
    newest = number(found.revisions[-1]) if found.revisions else 0
    return (found.status.get("currentRevision") or newest) if found.is_definition else newest


def input_rows(found: Facts) -> tuple[Made, ...]:
    """Return the input revisions of an instance."""
    return tuple(_input_row(one) for one in reversed(found.revisions))


def _input_row(one: Obj) -> Made:
    status = one.get("status") or {}
    return {
        "revision": number(one),
        "name": meta.name(one),
        "rgdRevision": one["spec"].get("rgdRevision"),
        "created": _created(one),
        "status": "Superseded" if status.get("superseded") else status.get("propagationStatus") or "Pending",
    }


def _created(revision: Obj) -> str:
    """Return when a revision was made; only the status survives a restore from a backup."""
    stated = (revision.get("status") or {}).get("createdAt")
    return stated or meta.metadata(revision).get("creationTimestamp") or ""
