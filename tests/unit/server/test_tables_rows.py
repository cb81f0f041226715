"""Tables: durations, JSONPath columns, and the objects in rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.errors import BadRequest
from lamina.server.codec.tables import table
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.columns import PathColumns, human_duration, since

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SECRETS = next(kind for kind in builtin_kinds() if kind.kind == "Secret")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-2.5,                         "<invalid>"),
        (-1.5,                         "0s"),
        (0.9,                          "0s"),
        (49,                           "49s"),
        (119,                          "119s"),
        (2 * _MINUTE,                  "2m"),
        (5 * _MINUTE + 10,             "5m10s"),
        (10 * _MINUTE + 59,            "10m"),
        (179 * _MINUTE,                "179m"),
        (3 * _HOUR,                    "3h"),
        (7 * _HOUR + 59 * _MINUTE,     "7h59m"),
        (8 * _HOUR + 59 * _MINUTE,     "8h"),
        (47 * _HOUR,                   "47h"),
        (2 * _DAY,                     "2d"),
        (3 * _DAY + 4 * _HOUR,         "3d4h"),
        (8 * _DAY + 4 * _HOUR,         "8d"),
        (729 * _DAY,                   "729d"),
        (2 * 365 * _DAY,               "2y"),
        (2 * 365 * _DAY + 119 * _DAY,  "2y119d"),
        (8 * 365 * _DAY + _DAY,        "8y"),
    ],
)  # fmt: skip
def test_a_duration_is_as_coarse_as_a_reader_needs(seconds: float, told: str) -> None:
    assert human_duration(seconds) == told


def test_an_age_is_unknown_without_a_stamp_and_invalid_without_sense() -> None:
    assert since(None, _NOW) == "<unknown>"
    assert since("soon", _NOW) == "<invalid>"
    assert since("2026-01-01T00:00:00Z", _NOW) == "24h"
    assert since("2026-01-01T00:00:00.500000Z", _NOW + timedelta(seconds=1)) == "24h"


def _secret() -> dict[str, Any]:
    meta = {"name": "a", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "Secret", "apiVersion": "v1", "metadata": meta, "type": "Opaque", "data": {"a": "eA=="}}


def test_a_table_has_a_definition_for_each_column_and_a_row_for_each_object() -> None:
    made = table(_SECRETS, [_secret(), _secret()], _NOW)

    assert (made["kind"], made["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "Type", "Data", "Age"]
    assert made["columnDefinitions"][0] | {"description": ""} == {
        "name": "Name", "type": "string", "format": "name", "description": "", "priority": 0,
    }  # fmt: skip
    assert [row["cells"] for row in made["rows"]] == [["a", "Opaque", 1, "24h"]] * 2


def test_a_row_carries_as_much_of_its_object_as_was_asked_for() -> None:
    secret = _secret()

    def carried(include: str) -> Any:
        return table(_SECRETS, [secret], _NOW, include=include)["rows"][0]["object"]

    assert carried("Object") == secret
    assert carried("None") is None
    assert carried("Metadata") == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": secret["metadata"],
    }
    with pytest.raises(BadRequest, match="must be 'Metadata', 'Object', 'None', or empty"):
        carried("Everything")


def test_later_events_of_a_watch_have_no_headers() -> None:
    assert table(_SECRETS, [_secret()], _NOW, headers=False)["columnDefinitions"] is None


def test_a_custom_kind_without_columns_has_a_name_and_an_age() -> None:
    columns = PathColumns([])

    assert [(column.name, column.type) for column in columns.columns] == [("Name", "string"), ("Age", "date")]
    assert columns.cells(_secret(), _NOW) == ["a", "24h"]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string",  "x",                     "x"),
        ("string",  5,                       "5"),
        ("string",  1.5,                     "1.5"),
        ("string",  True,                    "true"),
        ("string",  {"a": [1]},              '{"a":[1]}'),
        ("string",  None,                    "<no value>"),
        ("integer", 5,                       5),
        ("integer", 5.9,                     5),
        ("integer", "5",                     None),
        ("integer", True,                    None),
        ("number",  2,                       2),
        ("number",  2.0,                     2),
        ("number",  1.5,                     1.5),
        ("boolean", True,                    True),
        ("boolean", "true",                  None),
        ("date",    "2026-01-01T00:00:00Z",  "24h"),
        ("date",    "soon",                  "<invalid>"),
        ("date",    5,                       None),
    ],
)  # fmt: skip
def test_a_cell_has_the_type_of_its_column_or_is_empty(kind: str, value: Any, cell: Any) -> None:
    columns = PathColumns([{"name": "V", "type": kind, "jsonPath": ".spec.v"}])

    shown = columns.cells({"metadata": {"name": "a"}, "spec": {"v": value}}, _NOW)[1]

    assert (shown, type(shown)) == (cell, type(cell))


def test_what_a_path_does_not_find_is_empty() -> None:
    columns = PathColumns([{"name": "V", "type": "string", "jsonPath": ".spec.v[0]"}])

    assert columns.cells({"metadata": {"name": "a"}}, _NOW) == ["a", None]
    assert columns.cells({"metadata": {"name": "a"}, "spec": {"v": []}}, _NOW) == ["a", None]


def test_a_path_that_cannot_be_read_ends_the_columns() -> None:
    columns = PathColumns(
        [
            {"name": "A", "type": "string", "jsonPath": ".a", "description": "told", "priority": 1},
            {"name": "B", "type": "string", "jsonPath": ".b["},
            {"name": "C", "type": "string", "jsonPath": ".c"},
        ]
    )

    assert [(one.name, one.description, one.priority) for one in columns.columns[1:]] == [("A", "told", 1)]
