"""Rows are those of a real server for the same objects, and columns have its descriptions."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lamina.server.kinds.builtin.catalogue import CATALOGUE
from lamina.server.kinds.builtin.columns import cells_of, columns_of
from lamina.server.kinds.kind import Findings
from tests.unit.server.builtin.validation import kind_of

_GOLDEN = json.loads(Path(__file__).with_name("golden_cells.json").read_text())
_OF_THE_MOMENT = {"Age", "Last Seen", "First Seen", "Duration", "Last Schedule", "Restarts"}
"""Columns that depend on the time of the request."""


@pytest.mark.parametrize("case", _GOLDEN, ids=lambda case: case["case"])
def test_a_row_reads_as_on_a_real_server(case: dict[str, Any]) -> None:
    kind = kind_of(case["object"])
    body = {key: value for key, value in case["object"].items() if key not in {"apiVersion", "kind"}}

    cells = kind.shape.cells(kind.shape.decode(body, Findings()), datetime.fromisoformat(case["now"]))

    assert len(cells) == len(kind.shape.columns)
    for column, ours, theirs in zip(kind.shape.columns, cells, case["cells"], strict=True):
        if column.name not in _OF_THE_MOMENT:
            assert (column.name, ours) == (column.name, theirs)


def test_every_kind_has_a_name_first_except_events() -> None:
    for resource in CATALOGUE:
        first = columns_of(resource.storage[0], resource.plural)[0]
        assert first.name == ("Last Seen" if resource.kind == "Event" else "Name")


def test_every_column_is_described() -> None:
    bare = {
        (resource.plural, column.name)
        for resource in CATALOGUE
        if resource.stored
        for column in columns_of(resource.storage[0], resource.plural)
        if not column.description
    }

    # kubectl requests the description of another type for this one, and gets none.
    assert bare == {("runtimeclasses", "Handler")}


def test_a_kind_without_columns_of_its_own_says_when_it_was_created() -> None:
    role = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    group = "rbac.authorization.k8s.io"

    assert [column.name for column in columns_of(group, "roles")] == ["Name", "Created At"]
    assert cells_of(group, "roles")(role, datetime.fromisoformat("2026-01-02T00:00:00Z")) == [
        "a",
        "2026-01-01T00:00:00Z",
    ]


def _pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running", **status},
    }


def test_restarts_say_when_the_last_one_was() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:55:00Z"}}
    pod = _pod(
        containerStatuses=[{"name": "c", "restartCount": 3, "lastState": ended, "state": {"running": {}}}]
    )

    cells = cells_of("", "pods")(pod, datetime.fromisoformat("2026-01-01T01:00:00Z"))

    assert cells[:5] == ["a", "0/1", "Running", "3 (5m ago)", "60m"]


def test_a_job_says_how_long_it_took() -> None:
    job = {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"completions": 1},
        "status": {
            "succeeded": 1,
            "startTime": "2026-01-01T00:00:01Z",
            "completionTime": "2026-01-01T00:05:11Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        },
    }

    cells = cells_of("batch", "jobs")(job, datetime.fromisoformat("2026-01-03T00:00:00Z"))

    assert cells[:5] == ["a", "Complete", "1/1", "5m10s", "2d"]


def test_an_event_says_when_it_was_last_and_first_seen() -> None:
    event = {
        "metadata": {"name": "a"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "count": 4,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:59:30Z",
    }

    cells = cells_of("", "events")(event, datetime.fromisoformat("2026-01-01T01:00:00Z"))

    assert (cells[0], cells[3], cells[7], cells[8]) == ("30s", "pod/p", "60m", 4)
