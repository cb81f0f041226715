"""Revisions are read from ControllerRevision objects, and stored as them."""

import pytest

from lamina.core.model.plan import Patch
from lamina.core.rollout.history import history, look_up
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.revision_object import (
    adopt_and_renumber,
    create_revision,
    read_revision,
    revision_name,
    revision_ref,
)
from lamina.objects import meta
from lamina.objects.types import Made, Obj, OwnerRef, Ref
from tests.unit.core.rollout.revisions import owner, stored

LABEL = "example.com/hash"
REFERENCE: OwnerRef = meta.owner_ref(owner(), controller=True, blocks=True)


def read(obj: Obj) -> Revision:
    return read_revision(obj, obj["data"], hash_label=LABEL)


@pytest.mark.parametrize(
    ("number", "read_as"), [(1, 1), (0, 0), (12, 12), ("3", 0), (None, 0), (1.5, 0), ([], 0)]
)
def test_a_number_that_is_none_reads_as_zero(number: object, read_as: int) -> None:
    assert read(stored("app-x", number)).number == read_as


@pytest.mark.parametrize(
    ("name", "labels", "hash"),
    [
        ("app-x",     {LABEL: "y"}, "y"),
        ("app-x",     {LABEL: ""},  "x"),
        ("app-x",     {},           "x"),
        ("my-app-x",  {"a": "b"},   "x"),
        ("app",       {},           "app"),
    ],
)  # fmt: skip
def test_a_hash_is_in_the_label_or_at_the_end_of_the_name(
    name: str, labels: dict[str, str], hash: str
) -> None:
    assert read(stored(name, labels=labels)).hash == hash


def test_a_revision_knows_its_object_and_when_it_was_created() -> None:
    obj = stored("app-x")
    obj["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"

    found = read_revision(obj, {"a": 1}, hash_label=LABEL, digest="d")

    assert found == Revision(
        number=1,
        name="app-x",
        snapshot={"a": 1},
        hash="x",
        digest="d",
        created="2026-01-01T00:00:00Z",
        obj=obj,
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [("app", "app-h"), ("a" * 300, "a" * 223 + "-h"), ("ä" * 200, "ä" * 111 + "-h")],
)
def test_a_name_is_cut_so_that_the_hash_fits(name: str, shown: str) -> None:
    assert revision_name(name, "h") == shown


def test_what_is_created_reads_as_the_same_revision() -> None:
    new = Revision(number=4, name="app-h", snapshot={"spec": {"a": 1}}, hash="h")

    made = create_revision(
        new, owner(), REFERENCE, data={"spec": {"a": 1}}, labels={LABEL: "h"}, annotations={"of": "1"}
    )

    assert made.ref == revision_ref("team", "app-h") == Ref("apps/v1", "ControllerRevision", "team", "app-h")
    assert meta.annotations(made.obj) == {"of": "1"}
    assert meta.is_controlled_by(made.obj, "uid-app")
    assert read(made.obj) == Revision(**{**fields(new), "obj": made.obj})


def test_no_annotations_are_no_field() -> None:
    made = create_revision(
        Revision(number=1, name="app-h", snapshot={}), owner(), REFERENCE, data={}, labels={}, annotations={}
    )

    assert "annotations" not in made.obj["metadata"]


def fields(one: Revision) -> Made:
    return {name: getattr(one, name) for name in one.__struct_fields__}


def patches(wanted: object, *objects: Obj) -> dict[str, Obj]:
    found = look_up(
        history(map(read, objects)), Revision(number=0, name="new", snapshot={"spec": wanted}, hash="n")
    )
    made = {one.ref.name: one for one in adopt_and_renumber(found, REFERENCE)}
    assert all(isinstance(one, Patch) and one.version == "7" and one.uid for one in made.values())
    return {name: one.patch for name, one in made.items()}


def test_nothing_is_written_where_all_are_controlled_and_the_wanted_one_is_the_highest() -> None:
    assert patches("app-b", stored("app-a", 1), stored("app-b", 2)) == {}
    assert patches("other", stored("app-a", 1), stored("app-b", 2)) == {}


def test_the_wanted_revision_is_renumbered_and_no_other() -> None:
    assert patches("app-a", stored("app-a", 1), stored("app-b", 2)) == {"app-a": {"revision": 3}}


def test_revisions_without_a_controller_are_adopted() -> None:
    adopted = {"metadata": {"ownerReferences": [REFERENCE]}}

    assert patches("x", stored("app-a", 1, controlled=False), stored("app-b", 2)) == {"app-a": adopted}


def test_a_revision_is_adopted_and_renumbered_in_one_patch_and_keeps_its_other_owners() -> None:
    lone = stored("app-a", 1, controlled=False)
    other: Made = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "uid-c"}
    lone["metadata"]["ownerReferences"] = [other]

    assert patches("app-a", lone, stored("app-b", 2)) == {
        "app-a": {"revision": 3, "metadata": {"ownerReferences": [other, REFERENCE]}}
    }


def test_duplicates_are_adopted_too() -> None:
    double = stored("app-a", 1, data={"spec": "app-b"}, controlled=False)

    assert list(patches("app-b", double, stored("app-b", 2))) == ["app-a"]
