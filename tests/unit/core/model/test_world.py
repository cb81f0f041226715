"""Changes of objects, and what a cache keeps of each."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.world import Change, everything, identity_only, whole
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref

POD = Kind("v1", "Pod", "pods", True)
FIELDS = {
    "name": "a",
    "namespace": "one",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 2,
    "labels": {"app": "web"},
    "annotations": {"note": "x"},
    "ownerReferences": [{"uid": "o", "kind": "Set", "name": "s", "apiVersion": "v1"}],
    "finalizers": ["a/b"],
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "managedFields": [{"manager": "kubectl"}],
}
METADATA = st.lists(st.sampled_from(sorted(FIELDS)), unique=True).map(
    lambda names: {"name": "a", **{name: FIELDS[name] for name in names}}
)


def pod(**spec: Any) -> Made:
    metadata = {"name": "a", "namespace": "one", "uid": "u"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# Changes

ADDED = Change(POD, None, pod(image="new"))
UPDATED = Change(POD, pod(image="old"), pod(image="new"))
DELETED = Change(POD, pod(image="old"), None)


@pytest.mark.parametrize(
    ("change", "image", "versions"), [(ADDED, "new", 1), (UPDATED, "new", 2), (DELETED, "old", 1)]
)
def test_a_change_is_about_the_object_as_it_is_or_as_it_last_was(
    change: Change, image: str, versions: int
) -> None:
    assert change.obj["spec"]["image"] == image
    assert len(change.versions) == versions
    assert change.versions[-1] is change.obj


@pytest.mark.parametrize("change", [ADDED, UPDATED, DELETED])
@pytest.mark.parametrize("cluster", ["", "east"])
def test_a_change_has_the_reference_of_its_object_on_its_cluster(change: Change, cluster: str) -> None:
    moved = Change(change.kind, change.before, change.after, cluster)

    assert moved.ref == Ref("v1", "Pod", "one", "a", cluster)


@pytest.mark.parametrize(
    ("change", "preserved"),
    [
        (ADDED, False),
        (DELETED, False),
        (UPDATED, False),
        (Change(POD, pod(image="old"), pod(image="old", size=1)), True),
    ],
)
def test_only_an_update_preserves_a_fact_that_is_the_same_before_and_after(
    change: Change, preserved: bool
) -> None:
    assert change.preserves(lambda obj: obj["spec"]["image"]) is preserved


def test_a_change_of_nothing_is_about_no_object() -> None:
    with pytest.raises(AssertionError):
        assert Change(POD, None, None).obj


# What is kept


def obj(metadata: Obj) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": dict(metadata),
        "spec": {"image": "a"},
        "status": {"phase": "Running"},
    }


@given(metadata=METADATA)
def test_all_is_kept_where_all_is_asked_for(metadata: Obj) -> None:
    given_one = obj(metadata)

    assert everything(given_one) is given_one


@given(metadata=METADATA)
def test_the_whole_of_an_object_is_all_but_its_managed_fields(metadata: Obj) -> None:
    kept = whole(obj(metadata))

    assert {key: kept[key] for key in ("spec", "status")} == {
        key: obj(metadata)[key] for key in ("spec", "status")
    }
    assert kept["metadata"] == {key: value for key, value in metadata.items() if key != "managedFields"}


@given(metadata=METADATA)
def test_an_identity_is_enough_to_find_own_and_delete_an_object(metadata: Obj) -> None:
    given_one = obj(metadata)
    kept = identity_only(given_one)

    assert kept.keys() == {"apiVersion", "kind", "metadata"}
    assert meta.ref(kept) == meta.ref(given_one)
    assert meta.uid(kept) == meta.uid(given_one)
    assert meta.resource_version(kept) == meta.resource_version(given_one)
    assert list(meta.owner_refs(kept)) == list(meta.owner_refs(given_one))
    assert list(meta.finalizers(kept)) == list(meta.finalizers(given_one))
    assert meta.is_deleting(kept) is meta.is_deleting(given_one)
    assert not {"labels", "annotations", "managedFields"} & kept["metadata"].keys()


@pytest.mark.parametrize("keep", [everything, whole, identity_only])
@given(metadata=METADATA)
def test_what_is_kept_of_what_was_kept_is_the_same_and_the_object_is_not_changed(
    keep: Any, metadata: Obj
) -> None:
    given_one = obj(metadata)
    before = repr(given_one)
    kept = keep(given_one)

    assert keep(kept) == kept
    assert repr(given_one) == before
