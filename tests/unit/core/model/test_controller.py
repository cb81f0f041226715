"""A controller, as a value: its watches, and how its functions come to a plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.core.model.controller import (
    Controller,
    Options,
    Watch,
    decide,
    is_same_but_newer,
    itself,
    no_keys,
    one_of,
    only,
)
from lamina.core.model.plan import NOTHING, Plan
from lamina.core.model.queries import Absent, Answers, Query, Read
from lamina.core.model.world import Change, KeepDerived, everything, identity_only
from lamina.errors import Conflict
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref
from tests.unit.core.ownership.worlds import PART, part, world

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (Read(Ref("v1", "Pod", "one", name)) for name in "abc")


def controller(*, first: tuple[Query, ...] = (), then: tuple[Query, ...] = ()) -> Controller[str]:
    """Return a controller that asks `first` before it plans, and `then` with its plan."""
    return Controller(
        name="things",
        watches=(),
        gather=lambda seen, ref: ref.name,
        queries=lambda view, answers: tuple(one for one in first if one not in answers),
        plan=lambda view, answers, now: Plan(because=f"{view} is planned", queries=then),
    )


def known(*queries: Query) -> Answers:
    return Answers(dict.fromkeys(queries, Absent()))


# decide


@pytest.mark.parametrize(
    ("first", "then", "answers", "asked"),
    [
        ((),     (),     (),        None),
        ((A, B), (),     (),        (A, B)),
        ((A, B), (),     (A,),      (B,)),
        ((A, B), (),     (A, B),    None),
        ((A,),   (C,),   (),        (A,)),
        ((A,),   (C,),   (A,),      (C,)),
        ((),     (B, C), (C,),      (B,)),
        ((A,),   (C,),   (A, C),    None),
    ],
)  # fmt: skip
def test_a_plan_is_made_once_all_that_it_depends_on_was_answered(
    first: tuple[Query, ...],
    then: tuple[Query, ...],
    answers: tuple[Query, ...],
    asked: tuple[Query, ...] | None,
) -> None:
    found = decide(controller(first=first, then=then), "web", known(*answers), NOW)

    if asked is None:
        assert isinstance(found, Plan)
        assert found.because == "web is planned"
    else:
        assert found == asked


def test_no_plan_is_made_before_the_queries_are_answered() -> None:
    def refuse(view: Any, answers: Answers, now: datetime) -> Plan:
        raise AssertionError("it was planned")

    eager: Controller[str] = Controller(
        name="things",
        watches=(),
        gather=lambda seen, ref: "x",
        queries=lambda view, answers: (A,),
        plan=refuse,
    )

    assert decide(eager, "x", Answers(), NOW) == (A,)


# Defaults


def test_a_controller_asks_nothing_reports_nothing_and_ends_with_nothing_by_default() -> None:
    plain = controller()

    assert plain.complain(world(), A.ref, Conflict("no"), NOW) is NOTHING
    assert plain.on_removed(NOW) is NOTHING
    assert (plain.period, plain.config_hash, plain.resync_on_discovery) == (None, "", False)


# Watches


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Kind("apps/v1", "Deployment", "deployments", True), True),
        (Kind("apps/v1beta1", "Deployment", "deployments", True), True),
        (Kind("example.com/v1", "Deployment", "deployments", True), False),
        (Kind("v1", "Deployment", "deployments", True), False),
        (Kind("apps/v1", "StatefulSet", "statefulsets", True), False),
    ],
)
def test_one_kind_is_selected_in_all_its_versions(kind: Kind, expected: bool) -> None:
    assert only("apps", "Deployment")(kind) is expected


def test_which_kind_is_selected_is_the_same_question_each_time() -> None:
    assert only("apps", "Deployment") is only("apps", "Deployment")
    assert only("apps", "Deployment") is not only("", "Deployment")


def size(obj: Obj) -> int:
    return len(obj)


def names(obj: Obj) -> list[str]:
    return list(obj)


def versioned(version: str, color: str = "blue") -> Obj:
    return meta.with_metadata(part("a", color=color), resourceVersion=version)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (versioned("1"), versioned("2"), True),
        (versioned("1"), versioned("2", color="red"), False),
        (None, versioned("1"), False),
        (versioned("1"), None, False),
        (
            KeepDerived(identity_only, size)(versioned("1")),
            KeepDerived(identity_only, size)(versioned("2")),
            True,
        ),
        (
            KeepDerived(identity_only, size)(versioned("1")),
            KeepDerived(identity_only, size)({**versioned("2"), "more": 1}),
            False,
        ),
    ],
)
def test_a_new_version_alone_is_told_from_a_change_of_what_is_cached(
    before: Obj | None, after: Obj | None, expected: bool
) -> None:
    assert is_same_but_newer(Change(PART, before, after)) is expected


@pytest.mark.parametrize(
    "change",
    [
        Change(PART, None, part("a")),
        Change(PART, part("a"), part("a", color="red")),
        Change(PART, part("a"), None),
        Change(PART, None, part("a"), "east"),
    ],
)
def test_a_change_enqueues_its_object_or_nothing(change: Change) -> None:
    assert list(itself(world(), change)) == [meta.ref(part("a"), change.cluster)]
    assert list(no_keys(world(), change)) == []


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({}, {}, True),
        ({"keep": everything}, {"keep": everything}, True),
        ({"keep": everything}, {"keep": identity_only}, False),
        ({"derive": size}, {"derive": size}, True),
        ({"derive": size}, {"derive": names}, False),
        ({"derive": size}, {}, False),
        ({"keep": identity_only, "derive": size}, {"keep": everything, "derive": size}, False),
        ({"named": "a"}, {"named": "b"}, True),
    ],
)
def test_watches_share_a_cache_where_they_keep_and_derive_the_same(
    one: dict[str, Any], other: dict[str, Any], shared: bool
) -> None:
    first, second = (Watch(selects=only("", "Pod"), enqueue=itself, **more) for more in (one, other))

    assert (first.cached == second.cached) is shared


@pytest.mark.parametrize(
    ("kind", "selected"),
    [
        (PART, True),
        (PART._replace(api_version="v2"), True),
        (PART._replace(kind="Other"), False),
        (PART._replace(api_version="ex.com/v1"), False),
    ],
)
def test_several_kinds_are_selected_in_any_version(kind: Kind, selected: bool) -> None:
    kinds = [PART.group_kind, PART._replace(kind="Second").group_kind]

    assert one_of(kinds)(kind) == selected
    assert not one_of([])(kind)


def test_a_controller_reconciles_a_few_objects_at_once_and_each_twice_an_hour() -> None:
    assert (Options().workers, Options().flush.total_seconds()) == (5, 1800)
