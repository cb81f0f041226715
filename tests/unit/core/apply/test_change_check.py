"""Whether a write would change a live object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.apply.change_check import (
    CHANGES,
    NO_EFFECT,
    Check,
    Effect,
    apply_query,
    check_apply,
    check_replace,
    field_managers,
    is_written_only_by,
    without_status,
)
from lamina.core.model.queries import Absent, Answer, Answers, DryRun, Found, Refused
from lamina.objects.types import Made, Obj

NO_ANSWERS = Answers()
FIELDS: Made = {"f:data": {"f:colour": {}}}


def entry(manager: str, fields: Made | None = None, **more: Any) -> Made:
    """Return an entry of managed fields, which is that of an apply."""
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields or {}, "time": "2026-01-01", **more}


def settings(colour: str = "red", *, managers: list[Made] | None = None, **more: Any) -> Made:
    """Return a live ConfigMap."""
    metadata = {
        "name": "settings",
        "namespace": "default",
        "uid": "1",
        "resourceVersion": "7",
        **more.pop("metadata", {}),
    }
    if managers is not None:
        metadata["managedFields"] = managers
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": colour}, **more}


def body(colour: str = "red") -> Made:
    metadata = {"name": "settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": colour}}


def with_metadata(obj: Obj, **fields: Any) -> Made:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def check(live: Obj, answer: Answer | None, *, ownership: bool = True, colour: str = "blue") -> Check:
    """Check an apply, given what the dry run answers."""
    query = apply_query(live, body(colour), "ours")
    assert query is not None
    answers = Answers({query: answer}) if answer is not None else NO_ANSWERS
    return check_apply(query, live, answers, ownership=ownership)


def replace(live: Obj, replacement: Made, answer: Answer | None = None) -> Check:
    """Check a replacement, given what the dry run answers."""
    first = check_replace(live, replacement, "ours", NO_ANSWERS)
    if first.query is None or answer is None:
        return first
    return check_replace(live, replacement, "ours", Answers({first.query: answer}))


# Server-side apply


def test_what_managed_fields_show_to_be_applied_needs_no_dry_run() -> None:
    live = settings(managers=[entry("ours", FIELDS)])

    assert apply_query(live, body(), "ours") is None
    assert check_apply(None, live, NO_ANSWERS) is NO_EFFECT


@pytest.mark.parametrize(
    "live",
    [
        settings(managers=[entry("theirs", FIELDS)]),
        settings(managers=[entry("ours", {"f:data": {"f:colour": {}, "f:size": {}}})]),
        settings(managers=[entry("ours", FIELDS, operation="Update")]),
        settings("blue", managers=[entry("ours", FIELDS)]),
        settings(managers=[]),
        settings(),
    ],
)
def test_anything_else_needs_a_dry_run(live: Obj) -> None:
    query = apply_query(live, body(), "ours")

    assert query is not None
    assert check_apply(query, live, NO_ANSWERS) == Check(Effect.UNKNOWN, query)


def test_a_dry_run_says_what_is_applied_by_which_manager_and_whether_it_is_forced() -> None:
    query = apply_query(settings(), body(), "ours", force=False)

    assert query is not None
    assert (query.obj, query.manager, query.force, query.replaces) == (body(), "ours", False, False)


def test_an_object_that_would_stay_as_it_is_is_not_written() -> None:
    live = settings()

    assert check(live, Found(live)) is NO_EFFECT


def test_an_object_that_would_change_is_written() -> None:
    assert check(settings(), Found(settings("blue"))) is CHANGES


def test_a_default_that_the_server_adds_again_is_no_change() -> None:
    live = settings(immutable=False)

    assert check(live, Found(settings(immutable=False))) is NO_EFFECT


def test_fields_that_would_be_owned_are_a_change() -> None:
    live = settings(managers=[entry("theirs", FIELDS)])
    became = settings(managers=[entry("theirs", FIELDS), entry("ours", FIELDS)])

    assert check(live, Found(became)) is CHANGES


def test_where_ownership_does_not_count_only_content_is_compared() -> None:
    live = settings(managers=[entry("theirs", FIELDS)])
    became = settings(managers=[entry("theirs", FIELDS), entry("ours", FIELDS)])

    assert check(live, Found(became), ownership=False) is NO_EFFECT
    assert check(live, Found(settings("blue")), ownership=False) is CHANGES


@pytest.mark.parametrize("code", [403, 409, 422])
def test_a_refusal_says_what_the_server_said(code: int) -> None:
    found = check(settings(), Refused(code, "it is refused"))

    assert (found.effect, found.code, found.because) == (Effect.REFUSED, code, "it is refused")


def test_an_object_that_has_gone_meanwhile_is_written() -> None:
    assert check(settings(), Absent()) is CHANGES


@pytest.mark.parametrize(
    "became",
    [
        settings(status={"ready": True}),
        settings(metadata={"resourceVersion": "8"}),
        settings(metadata={"generation": 2}),
    ],
)
def test_a_status_or_a_version_is_no_change(became: Obj) -> None:
    assert check(settings(), Found(became)) is NO_EFFECT


@pytest.mark.parametrize(
    "later",
    [
        settings(status={"ready": True}),
        settings(metadata={"resourceVersion": "8"}),
        settings(metadata={"generation": 2}),
    ],
)
def test_another_status_or_version_is_the_same_dry_run(later: Obj) -> None:
    assert apply_query(later, body("blue"), "ours") == apply_query(settings(), body("blue"), "ours")


@pytest.mark.parametrize(
    ("live", "applied", "manager"),
    [
        (settings("green"),                               body("blue"),  "ours"),
        (settings(metadata={"labels": {"a": "b"}}),       body("blue"),  "ours"),
        (settings(metadata={"uid": "2"}),                 body("blue"),  "ours"),
        (settings(managers=[entry("theirs", FIELDS)]),    body("blue"),  "ours"),
        (settings(),                                      body("green"), "ours"),
        (settings(),                                      body("blue"),  "theirs"),
    ],
)  # fmt: skip
def test_anything_else_is_another_dry_run(live: Obj, applied: Made, manager: str) -> None:
    assert apply_query(live, applied, manager) != apply_query(settings(), body("blue"), "ours")


# Replacement


def test_a_replacement_that_equals_the_live_object_needs_no_dry_run() -> None:
    assert replace(settings(), settings()) is NO_EFFECT


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a": "b"}},
        {"annotations": {"a": "b"}},
        {"finalizers": ["a/b"]},
        {"ownerReferences": [{"uid": "9"}]},
    ],
)
def test_other_metadata_is_a_change_that_needs_no_dry_run(metadata: Made) -> None:
    assert replace(settings(), settings(metadata=metadata)) is CHANGES
    assert replace(settings(metadata=metadata), settings()) is CHANGES


@pytest.mark.parametrize("empty", [{"labels": {}}, {"annotations": None}, {"ownerReferences": []}])
def test_empty_metadata_is_as_good_as_absent(empty: Made) -> None:
    assert replace(settings(), settings(metadata=empty)) is NO_EFFECT


def test_other_content_needs_a_dry_run() -> None:
    found = replace(settings(), settings("blue"))

    assert found.effect is Effect.UNKNOWN
    assert found.query is not None
    assert found.query.replaces
    assert found.query.obj == settings("blue")


def test_content_that_the_server_makes_what_it_was_is_no_change() -> None:
    live = settings(immutable=False)

    assert replace(live, settings(), Found(live)) is NO_EFFECT


def test_content_that_the_server_keeps_is_a_change() -> None:
    assert replace(settings(), settings("blue"), Found(settings("blue"))) is CHANGES


def test_owners_are_a_change_whatever_the_dry_run_says() -> None:
    live = settings(immutable=False)
    owned = settings(metadata={"ownerReferences": [{"uid": "9"}]})

    assert replace(live, owned, Found(live)) is CHANGES


def test_owners_make_no_other_dry_run() -> None:
    plain = replace(settings(), settings("blue"))
    owned = replace(settings(), with_metadata(settings("blue"), ownerReferences=[{"uid": "9"}]))

    assert plain.query == owned.query


def test_a_refused_replacement_says_what_the_server_said() -> None:
    found = replace(settings(), settings("blue"), Refused(422, "immutable"))

    assert (found.effect, found.code, found.because) == (Effect.REFUSED, 422, "immutable")


def test_a_replacement_and_an_apply_are_different_dry_runs() -> None:
    replaced = replace(settings(), body("blue")).query
    applied = apply_query(settings(), body("blue"), "ours")

    assert isinstance(replaced, DryRun)
    assert replaced != applied


# What of an object counts


def test_which_manager_owns_what_whenever_it_wrote_it() -> None:
    first = settings(managers=[entry("ours", FIELDS)])
    later = settings(managers=[entry("ours", FIELDS, time="2027-01-01")])

    assert field_managers(first) == field_managers(later)
    assert field_managers(settings(managers=[entry("kubelet", subresource="status")])) == []


@pytest.mark.parametrize(
    ("managers", "says"),
    [
        ([("ours", "")],                          True),
        ([("ours", ""), ("kubelet", "status")],   True),
        ([("kubelet", "status")],                 True),
        ([("ours", ""), ("kubectl", "")],         False),
        ([("kubectl", "")],                       False),
        ([],                                      False),
    ],
)  # fmt: skip
def test_whether_one_manager_alone_has_written(managers: list[tuple[str, str]], says: bool) -> None:
    entries = [entry(name, subresource=part) for name, part in managers]

    assert is_written_only_by(settings(managers=entries), "ours") is says


def test_without_status_the_rest_stays() -> None:
    obj = settings(status={"ready": True}, managers=[], metadata={"labels": {"a": "b"}, "generation": 3})

    assert without_status(obj) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default", "uid": "1", "labels": {"a": "b"}},
        "data": {"colour": "red"},
    }


COLOURS = st.sampled_from(["red", "blue", "green"])


@given(live=COLOURS, wanted=COLOURS, became=COLOURS, labelled=st.booleans())
def test_a_write_is_made_exactly_where_the_server_would_change_something(
    live: str, wanted: str, became: str, labelled: bool
) -> None:
    before = settings(live, metadata={"labels": {"a": "b"}} if labelled else {})
    after = with_metadata(settings(became), **({"labels": {"a": "b"}} if labelled else {}))

    applied = check(before, Found(after), colour=wanted)
    assert applied.effect is (Effect.NONE if became == live else Effect.CHANGE)

    replaced = replace(
        before,
        with_metadata(before, labels={"a": "b"} if labelled else None) | {"data": {"colour": wanted}},
        Found(after),
    )
    unchanged = wanted == live or became == live
    assert replaced.effect is (Effect.NONE if unchanged else Effect.CHANGE)
