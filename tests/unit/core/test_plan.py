"""Plans are values, and say what they were decided on."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.core import events
from lamina.core.plan import (
    Action,
    Apply,
    Create,
    Delete,
    Plan,
    Replace,
    Stage,
    change_metadata,
    delete,
    is_outdated,
    one_stage,
    remove_finalizer,
    set_status,
)
from lamina.errors import AlreadyExists, ApiError, Cause, Conflict, Forbidden, NotFound, PlanFailed
from lamina.objects import meta
from lamina.objects.types import Made, Ref

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "settings",
        "namespace": "web",
        "uid": "u",
        "resourceVersion": "7",
        "finalizers": ["a/a", "b/b"],
    },
    "status": {"phase": "Busy", "note": "old"},
}


def test_an_action_names_the_uid_and_the_version_it_was_decided_on() -> None:
    ref = Ref("v1", "ConfigMap", "web", "settings")

    assert delete(SETTINGS) == Delete(ref=ref, uid="u", version="7")
    patch = change_metadata(SETTINGS, labels={"a": "b"})
    assert (patch.ref, patch.uid, patch.version) == (ref, "u", "7")


def test_a_finalizer_is_removed_and_the_others_stay() -> None:
    assert remove_finalizer(SETTINGS, "a/a").patch == {"metadata": {"finalizers": ["b/b"]}}


def test_the_last_finalizer_takes_the_field_along() -> None:
    alone = {**SETTINGS, "metadata": {**SETTINGS["metadata"], "finalizers": ["a/a"]}}

    assert remove_finalizer(alone, "a/a").patch == {"metadata": {"finalizers": None}}


def test_a_status_patch_holds_what_changes_and_no_more() -> None:
    patch = set_status(SETTINGS, {"phase": "Busy", "ready": True})

    assert patch is not None
    assert (patch.patch, patch.subresource) == ({"status": {"ready": True, "note": None}}, "status")


def test_a_status_that_is_there_already_is_not_written() -> None:
    assert set_status(SETTINGS, {"phase": "Busy", "note": "old"}) is None


def test_a_plan_without_actions_has_no_stages() -> None:
    assert one_stage("nothing", [], because="all is well") == Plan(because="all is well")


def test_actions_are_shown_in_the_order_they_would_be_done() -> None:
    first, second = delete(SETTINGS), remove_finalizer(SETTINGS, "a/a")

    assert Plan(stages=(Stage("one", (first,)), Stage("two", (second,)))).actions == (first, second)


def test_the_same_happening_is_the_same_event() -> None:
    assert events.name_of(SETTINGS, "Why", "so") == events.name_of(SETTINGS, "Why", "so")
    assert events.name_of(SETTINGS, "Why", "so") != events.name_of(SETTINGS, "Why", "not")


def test_what_happens_to_the_cluster_is_told_in_the_default_namespace() -> None:
    role = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}

    made = events.warning(role, "Why", "so", by="me", now=NOW)

    assert made["metadata"]["namespace"] == "default"
    assert "namespace" not in made["involvedObject"]
    assert (made["firstTimestamp"], made["count"]) == ("2026-01-01T00:00:00Z", 1)


_MAP: Made = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "n", "uid": "u"},
}
_DISPUTED = Conflict("somebody states it", causes=[Cause("FieldManagerConflict", "conflict", ".data.a")])


@pytest.mark.parametrize(
    ("action", "error", "outdated"),
    [
        (Create(obj=_MAP),              AlreadyExists("there"),      True),
        (Create(obj=_MAP),              NotFound("no namespace"),    False),
        (Create(obj=_MAP),              Forbidden("no"),             False),
        (Replace(obj=_MAP),             Conflict("moved on"),        True),
        (Replace(obj=_MAP),             NotFound("gone"),            True),
        (Apply(obj=_MAP),               Conflict("another uid"),     True),
        (Apply(obj=_MAP),               _DISPUTED,                   False),
        (Apply(obj=_MAP),               NotFound("no namespace"),    False),
        (Delete(ref=meta.ref(_MAP), uid="u"), NotFound("gone"),      True),
    ],
)  # fmt: skip
def test_an_action_that_came_too_late_is_told_from_one_that_was_refused(
    action: Action, error: ApiError, outdated: bool
) -> None:
    assert is_outdated(action, error) is outdated


def test_a_failed_plan_says_of_what_and_what_is_serious() -> None:
    ref = meta.ref(_MAP)
    failed = PlanFailed([Conflict("moved on"), Forbidden("no")], [ref, ref], [True, False])

    assert failed.serious is not None
    assert [str(one) for one in failed.serious.failures] == ["no"]
    assert failed.serious.about == (ref,)
    assert PlanFailed([Conflict("moved on")], [ref], [True]).serious is None
    assert PlanFailed([Conflict("of any kind")]).about == (None,)
