"""Owners as owner references, and as an annotation for owners of another cluster."""

import json

import pytest

from lamina.core.ownership.owner_record import OWNER_REFERENCES, OwnerRecord, controller_uid
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.types import Made, Obj

ANNOTATION = "example.com/owners"
RECORDS = [
    pytest.param(OWNER_REFERENCES, id="owner references"),
    pytest.param(OwnerRecord(ANNOTATION), id="an annotation"),
]


def owner(name: str) -> Made:
    return {
        "apiVersion": "ex.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
    }


def part(**metadata: object) -> Made:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "part", **metadata}}


@pytest.mark.parametrize("record", RECORDS)
def test_an_object_that_is_taken_has_its_owner_as_the_controller(record: OwnerRecord) -> None:
    taken = record.taken(part(), None, owner("one"))

    assert record.controls(taken, "uid-one")
    assert record.has(taken, "uid-one")
    assert controller_uid(record)(taken) == "uid-one"


@pytest.mark.parametrize("record", RECORDS)
def test_after_a_takeover_the_former_controller_still_is_an_owner(record: OwnerRecord) -> None:
    before = record.taken(part(), None, owner("one"))

    after = record.taken(part(), before, owner("two"))

    assert record.controls(after, "uid-two")
    assert not record.controls(after, "uid-one")
    assert record.has(after, "uid-one")
    assert sum(bool(one.get("controller")) for one in record.owners(after)) == 1


@pytest.mark.parametrize("record", RECORDS)
def test_an_object_that_is_kept_is_written_with_the_same_owners_again(record: OwnerRecord) -> None:
    live = record.taken(part(), record.taken(part(), None, owner("one")), owner("two"))

    assert record.kept(part(), live, owner("two"), {"uid-one", "uid-two"}) == live


def test_owner_references_of_others_are_not_written_again() -> None:
    live = OWNER_REFERENCES.taken(part(), None, owner("one"))
    another = {**meta.owner_ref(owner("other"))}
    live = meta.with_metadata(live, ownerReferences=[another, *meta.owner_refs(live)])

    kept = OWNER_REFERENCES.kept(part(), live, owner("one"), {"uid-one"})

    assert [one["uid"] for one in meta.owner_refs(kept)] == ["uid-one"]


@pytest.mark.parametrize("record", RECORDS)
def test_a_release_removes_one_owner_and_no_other(record: OwnerRecord) -> None:
    live = record.taken(part(), record.taken(part(), None, owner("one")), owner("two"))

    released = merge_patch(live, {"metadata": record.released(live, "uid-one")})

    assert not record.has(released, "uid-one")
    assert record.controls(released, "uid-two")


@pytest.mark.parametrize("record", RECORDS)
def test_the_release_of_the_last_owner_leaves_no_trace(record: OwnerRecord) -> None:
    live = record.taken(part(), None, owner("one"))

    released = merge_patch(live, {"metadata": record.released(live, "uid-one")})

    assert not record.owners(released)
    assert not meta.owner_refs(released)
    assert ANNOTATION not in meta.annotations(released)


def test_an_annotation_names_the_namespace_of_the_owner() -> None:
    taken = OwnerRecord(ANNOTATION).taken(part(), None, owner("one"))

    (entry,) = json.loads(meta.annotations(taken)[ANNOTATION])
    assert entry == {
        "apiVersion": "ex.example.com/v1",
        "kind": "Thing",
        "name": "one",
        "namespace": "team",
        "uid": "uid-one",
        "controller": True,
        "blockOwnerDeletion": True,
    }


@pytest.mark.parametrize("text", ["", "{", "{}", "null", "[1]", '[{"kind": "Thing"}]'])
def test_an_annotation_that_lists_no_owners_records_none(text: str) -> None:
    obj: Obj = part(annotations={ANNOTATION: text})

    assert not OwnerRecord(ANNOTATION).owners(obj)
    assert OwnerRecord(ANNOTATION).controller(obj) is None
