"""The names, the fields and the occasions of events."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.events import name_of, normal, on_change, warning
from lamina.objects.types import Condition, Made

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = st.text("ab,", max_size=4)


def thing(namespace: str = "one", **metadata: Any) -> Made:
    named = {"name": "a", "uid": "u1", "resourceVersion": "7", **metadata}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {**named, "namespace": namespace} if namespace else named,
    }


def condition(status: str, reason: str = "Up", message: str = "") -> Condition:
    return {"type": "Ready", "status": status, "reason": reason, "message": message}


# Names


@given(first=st.tuples(TEXT, TEXT, TEXT), second=st.tuples(TEXT, TEXT, TEXT))
def test_two_events_have_one_name_only_where_they_report_the_same(
    first: tuple[str, str, str], second: tuple[str, str, str]
) -> None:
    one, two = (name_of(thing(), reason, message, occasion) for reason, message, occasion in (first, second))

    assert (one == two) is (first == second)


def test_an_event_is_beside_its_object_and_has_its_name() -> None:
    ref = name_of(thing(), "Started", "it starts")

    assert (ref.namespace, ref.name.partition(".")[0]) == ("one", "a")


def test_events_about_cluster_scoped_objects_are_in_default() -> None:
    assert name_of(thing(""), "Started", "it starts").namespace == "default"


def test_an_object_that_was_made_anew_has_events_of_its_own() -> None:
    assert name_of(thing(), "Started", "") != name_of(thing(uid="u2"), "Started", "")


# Fields


@pytest.mark.parametrize(("make", "kind"), [(normal, "Normal"), (warning, "Warning")])
def test_an_event_has_its_type_its_reporter_and_its_times(make: Any, kind: str) -> None:
    event = make(thing(), "Started", "it starts", by="things", now=NOW)

    assert event["type"] == kind
    assert event["metadata"]["name"] == name_of(thing(), "Started", "it starts").name
    assert (event["reason"], event["message"], event["count"]) == ("Started", "it starts", 1)
    assert event["reportingComponent"] == event["source"]["component"] == "things"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


def test_an_event_names_its_object_and_leaves_out_what_is_empty() -> None:
    event = normal(thing(""), "Started", "", by="things", now=NOW)

    assert event["involvedObject"] == {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "name": "a",
        "uid": "u1",
    }


def test_an_event_of_an_occasion_names_the_version_of_its_object() -> None:
    event = normal(thing(), "Started", "", by="things", now=NOW, occasion="3")

    assert event["involvedObject"]["resourceVersion"] == "7"


# A condition's change


@pytest.mark.parametrize(
    ("before", "after", "is_news"),
    [
        (None,                             condition("True"),                       True),
        (condition("True"),                condition("True"),                       False),
        (condition("False"),               condition("True"),                       True),
        (condition("True", "Started"),     condition("True", "Up"),                 True),
        (condition("True", "Up", "one"),   condition("True", "Up", "two"),          False),
        (condition("Unknown"),             condition("False"),                      True),
    ],
)  # fmt: skip
def test_another_status_or_reason_is_an_event(
    before: Condition | None, after: Condition, is_news: bool
) -> None:
    events = list(on_change(thing(), before, after, by="things", now=NOW))

    assert [event["reason"] for event in events] == (["Up"] if is_news else [])


def test_reasons_that_warn_make_the_event_a_warning() -> None:
    late = condition("False", "Late", "two pods are missing")

    (event,) = on_change(thing(), None, late, by="things", now=NOW, warns={"Late"})
    (other,) = on_change(thing(), None, condition("True"), by="things", now=NOW, warns={"Late"})

    assert (event["type"], event["message"]) == ("Warning", "two pods are missing")
    assert other["type"] == "Normal"


def test_a_condition_that_returns_is_an_event_of_another_occasion() -> None:
    (first,), (second,) = (
        on_change(thing(), None, condition("True"), by="things", now=NOW, occasion=occasion)
        for occasion in ("1", "2")
    )

    assert first["metadata"]["name"] != second["metadata"]["name"]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (condition("True"), condition("False", "Down"), ["Fell"]),
        (condition("True"), condition("False", "Paused"), []),
        (condition("False", "Down", "one"), condition("False", "Down", "two"), []),
        (condition("True", "Rolling", "1 of 2"), condition("True", "Rolling", "2 of 2"), ["Rolled"]),
        (None, condition("True", "Rolling"), ["Rolled"]),
    ],
)
def test_named_reasons_lead_to_events_and_some_of_them_in_every_pass(
    before: Condition | None, after: Condition, found: list[str]
) -> None:
    names = {"Down": "Fell", "Rolling": "Rolled"}

    events = on_change(thing(), before, after, by="ctl", now=NOW, names=names, always=("Rolling",))

    assert [one["reason"] for one in events] == found
