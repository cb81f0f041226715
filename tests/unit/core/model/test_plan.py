"""Plans are values, and say what they were decided on."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.plan import (
    Action,
    Apply,
    Create,
    Delete,
    DeleteAll,
    Emit,
    Patch,
    Plan,
    Post,
    Propagation,
    Replace,
    Stage,
    change,
    change_metadata,
    delete,
    is_outdated,
    one_stage,
    remove_finalizer,
    set_status,
)
from lamina.errors import AlreadyExists, ApiError, Cause, Conflict, Forbidden, NotFound, PlanFailed
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref

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


_MAP: Made = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "n", "uid": "u"},
}
_DISPUTED = Conflict("another manager owns it", causes=[Cause("FieldManagerConflict", "conflict", ".data.a")])


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


# Patches that are applied

STATUSES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
        lambda inner: st.dictionaries(st.sampled_from("xy"), inner, min_size=1, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)
LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)


@given(before=STATUSES, after=STATUSES)
def test_a_status_patch_that_is_applied_leaves_the_status(before: Obj, after: Obj) -> None:
    obj = {**SETTINGS, "status": before}
    patch = set_status(obj, after)
    applied = merge_patch(obj, patch.patch) if patch is not None else obj

    assert applied["status"] == after
    assert (patch is None) is (before == after)
    assert {**applied, "status": None} == {**obj, "status": None}


@pytest.mark.parametrize("status", ["Ready", 3, ["Ready"], None])
def test_a_status_that_is_no_object_is_replaced_whole(status: Any) -> None:
    patch = set_status({**SETTINGS, "status": status}, {"phase": "Ready"})

    assert patch is not None
    assert patch.patch == {"status": {"phase": "Ready"}}


def test_an_object_without_a_status_has_an_empty_one() -> None:
    new = {key: value for key, value in SETTINGS.items() if key != "status"}

    assert set_status(new, {}) is None
    patch = set_status(new, {"phase": "Ready"})
    assert patch is not None and patch.patch == {"status": {"phase": "Ready"}}


@given(labels=LABELS, finalizers=st.lists(st.sampled_from(["a/a", "c/c"]), unique=True))
def test_metadata_that_is_set_is_exactly_that_or_gone_and_the_rest_stays(
    labels: dict[str, str], finalizers: list[str]
) -> None:
    patch = change_metadata(SETTINGS, labels=labels, finalizers=finalizers)
    applied = merge_patch(SETTINGS, patch.patch)

    assert list(meta.finalizers(applied)) == finalizers
    assert meta.labels(applied) == labels
    assert {"name", "namespace", "uid", "resourceVersion"} <= applied["metadata"].keys()
    assert applied["status"] == SETTINGS["status"]


@given(finalizers=st.lists(st.sampled_from("abcd"), unique=True), one=st.sampled_from("abcd"))
def test_a_finalizer_that_is_removed_is_gone_and_the_order_of_the_others_stays(
    finalizers: list[str], one: str
) -> None:
    obj = meta.with_metadata(SETTINGS, finalizers=finalizers)
    applied = merge_patch(obj, remove_finalizer(obj, one).patch)

    assert list(meta.finalizers(applied)) == [other for other in finalizers if other != one]


# What an action is about

_POD = Kind("v1", "Pod", "pods", True)
_REF = Ref("v1", "Pod", "web", "a")
_OBJ: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "web", "uid": "u"}}


@pytest.mark.parametrize("cluster", ["", "east"])
def test_every_action_names_its_object_and_the_cluster_that_is_on(cluster: str) -> None:
    ref = _REF._replace(cluster=cluster)
    actions: list[Action] = [
        Create(obj=_OBJ, cluster=cluster),
        Replace(obj=_OBJ, cluster=cluster),
        Apply(obj=_OBJ, cluster=cluster),
        Emit(event=_OBJ, cluster=cluster),
        change(_OBJ, {"spec": {}}, cluster=cluster),
        change_metadata(_OBJ, cluster=cluster, labels={}),
        remove_finalizer(_OBJ, "x", cluster=cluster),
        delete(_OBJ, cluster=cluster),
        Post(ref=ref, body={}, subresource="eviction"),
        Patch(ref=ref, uid="u", version="", patch={}),
    ]

    assert {action.ref for action in actions} == {ref}
    assert DeleteAll(kind=_POD, namespace="web", cluster=cluster).ref == ref._replace(name="")


@pytest.mark.parametrize("propagation", list(Propagation))
def test_a_deletion_says_what_becomes_of_dependents(propagation: Propagation) -> None:
    assert delete(SETTINGS, propagation).propagation is propagation


def test_dependents_are_deleted_in_the_background_by_default() -> None:
    assert delete(SETTINGS).propagation is Propagation.BACKGROUND
    assert delete(SETTINGS).grace is None


# Plans


def test_the_plan_of_one_stage_keeps_its_reason_and_its_delay() -> None:
    plan = one_stage("remove", [delete(SETTINGS)], because="it is old", again=timedelta(seconds=3))

    assert [stage.name for stage in plan.stages] == ["remove"]
    assert (plan.because, plan.requeue_after) == ("it is old", timedelta(seconds=3))


def test_a_stage_waits_for_the_one_before_it_and_for_no_time_by_default() -> None:
    stage = Stage("remove", (delete(SETTINGS),))

    assert (stage.run_after_failure, stage.min_interval) == (False, timedelta(0))


@pytest.mark.parametrize("error", [AlreadyExists("there"), Conflict("moved on"), NotFound("gone")])
@pytest.mark.parametrize(
    "action",
    [
        Replace(obj=_OBJ),
        Patch(ref=_REF, uid="u", version="1", patch={}),
        Post(ref=_REF, body={}, subresource="binding"),
        Delete(ref=_REF, uid="u"),
    ],
)
def test_an_action_on_an_object_that_has_moved_on_is_outdated(action: Action, error: ApiError) -> None:
    assert is_outdated(action, error)


@pytest.mark.parametrize("error", [Forbidden("no"), ApiError("broken")])
@pytest.mark.parametrize(
    "action", [Create(obj=_OBJ), Apply(obj=_OBJ), Replace(obj=_OBJ), Delete(ref=_REF, uid="u")]
)
def test_an_action_that_was_refused_is_not_outdated(action: Action, error: ApiError) -> None:
    assert not is_outdated(action, error)
