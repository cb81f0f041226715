"""Holding an object with a finalizer, and releasing it."""

import pytest

from lamina.core.model.finalizers import held, hold, is_held, release, waiting
from lamina.core.model.plan import Patch
from lamina.objects import meta
from lamina.objects.types import Made

OURS = "example.com/cleanup"


def thing(*finalizers: str) -> Made:
    metadata = {"name": "a", "namespace": "one", "uid": "u1", "resourceVersion": "7"}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {**metadata, **({"finalizers": list(finalizers)} if finalizers else {})},
    }


@pytest.mark.parametrize(
    ("finalizers", "is_ours"),
    [((), False), (("other",), False), ((OURS,), True), (("other", OURS), True)],
)
def test_an_object_is_held_where_it_has_the_finalizer(finalizers: tuple[str, ...], is_ours: bool) -> None:
    assert is_held(thing(*finalizers), OURS) is is_ours


@pytest.mark.parametrize(
    ("before", "after"),
    [((), [OURS]), (("other",), ["other", OURS]), ((OURS, "other"), [OURS, "other"])],
)
def test_holding_adds_the_finalizer_behind_those_of_others(before: tuple[str, ...], after: list[str]) -> None:
    assert list(meta.finalizers(held(thing(*before), OURS))) == after


def test_the_plan_that_holds_patches_finalizers_at_the_version_seen_and_nothing_else() -> None:
    plan = hold(thing("other"), OURS, because="its parts go first", cluster="hub")

    assert plan.actions == (
        Patch(
            ref=meta.ref(thing(), "hub"),
            uid="u1",
            version="7",
            patch={"metadata": {"finalizers": ["other", OURS]}},
        ),
    )
    assert plan.because == "its parts go first"


@pytest.mark.parametrize(("before", "after"), [((OURS,), None), (("other", OURS), ["other"])])
def test_the_plan_that_releases_removes_that_finalizer_only(
    before: tuple[str, ...], after: list[str] | None
) -> None:
    (patch,) = release(thing(*before), OURS, because="nothing is left").actions

    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"finalizers": after}}


def test_what_is_held_and_released_is_as_before() -> None:
    (patch,) = release(held(thing("other"), OURS), OURS, because="").actions

    assert isinstance(patch, Patch)
    assert patch.patch["metadata"]["finalizers"] == ["other"]


def test_a_deleted_object_names_what_it_waits_for() -> None:
    assert waiting(thing("a", "b")) == "waits for finalizers: a, b"
    assert waiting(thing()) == "is being deleted"


@pytest.mark.parametrize(
    ("before", "after"),
    [(("a", "b", "c"), ["c"]), (("a", "b"), None), (("a", "c"), ["c"]), (("c",), ["c"])],
)
def test_several_finalizers_are_released_at_once(before: tuple[str, ...], after: list[str] | None) -> None:
    plan = release(thing(*before), "a", "b", because="nothing is left")

    (patch,) = plan.actions
    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"finalizers": after}}
    assert plan.because == "nothing is left"
