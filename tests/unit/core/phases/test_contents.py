"""The objects that a revision contains, and the marks by which they are known."""

import pytest

from lamina.core.model.queries import Absent, Answers, Found, Read
from lamina.core.ownership.owner_record import OwnerRecord
from lamina.core.phases.contents import Contents
from lamina.core.phases.manifest import desired
from lamina.core.phases.owner import has_lost, is_handed_over
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.core.phases.objects import (
    CONVENTIONS,
    MARK,
    NODE,
    REVISION,
    body,
    key,
    live,
    manifest,
    owner,
    owner_object,
)


@pytest.mark.parametrize(
    ("places", "name", "place", "controlled", "contained"),
    [
        ({"a": ""},     "a", "",     "",  True),
        ({"a": ""},     "a", "",     "a", True),
        ({"a": ""},     "b", "",     "",  False),
        ({"a": "east"}, "a", "east", "a", True),
        ({"a": "east"}, "a", "",     "",  True),
        ({"a": "east"}, "a", "",     "a", False),
        ({"a": ""},     "a", "east", "a", False),
    ],
)  # fmt: skip
def test_another_place_may_be_another_cluster(
    places: dict[str, str], name: str, place: str, controlled: str, contained: bool
) -> None:
    contents = Contents({key(one): where for one, where in places.items()})

    assert contents.may_contain(key(name), place, frozenset(map(key, controlled))) == contained


def test_a_revision_whose_contents_are_not_known_may_contain_anything() -> None:
    assert Contents({}, is_complete=False).may_contain(key("a"), "", ())


# Marks


@pytest.mark.parametrize(
    ("annotations", "number"),
    [({REVISION: "5"}, 5), ({}, 0), ({REVISION: ""}, 0), ({REVISION: "five"}, 0), ({"other": "5"}, 0)],
)
def test_an_object_has_the_number_of_the_revision_that_wrote_it(annotations: Made, number: int) -> None:
    assert CONVENTIONS.written_by(body(annotations=annotations)) == number


@pytest.mark.parametrize(("labels", "marked"), [({MARK: "True"}, True), ({MARK: "true"}, False), ({}, False)])
def test_an_object_is_marked_by_a_label(labels: Made, marked: bool) -> None:
    assert CONVENTIONS.is_marked(body(labels=labels)) == marked


def test_an_object_is_desired_in_the_namespace_of_its_key() -> None:
    namespaced = desired(manifest("a"), owner_object(5), 5, CONVENTIONS)
    cluster_scoped = desired(manifest(obj=body("n", NODE, namespace="x")), owner_object(5), 5, CONVENTIONS)

    assert meta.namespace(namespaced) == "team"
    assert "namespace" not in cluster_scoped["metadata"]


def test_labels_of_the_owner_win_over_those_of_a_manifest() -> None:
    made = desired(manifest(obj=body(labels={"team": "red", "app": "x"})), owner_object(5), 5, CONVENTIONS)

    assert meta.labels(made) == {"team": "blue", "app": "x", MARK: "True"}


# Handover


@pytest.mark.parametrize(
    ("found", "over"),
    [(None, False), (live(controller=6), True), (live(controller=4), False), (live(controller=5), False)],
)
def test_an_object_is_handed_over_once_a_newer_revision_controls_it(found: Obj | None, over: bool) -> None:
    assert is_handed_over(owner(siblings=[4, 6]), found) == over


def test_an_object_of_a_stranger_is_not_handed_over_whatever_its_number() -> None:
    assert not is_handed_over(owner(siblings=[6]), live(controller="other", revision=9))


def test_an_owner_of_another_cluster_is_found_in_the_annotation() -> None:
    record = OwnerRecord("ex.com/owners")
    who = owner(siblings=[6], record=record)
    found = record.taken(live(controller=None, revision=6), None, owner_object(6))

    assert is_handed_over(who, found)
    assert not who.controls(found)
    assert owner(6, record=record).controls(found)


def test_an_object_of_another_phase_is_lost_by_a_live_read() -> None:
    read = Read(manifest("b").ref(""))
    who = owner(siblings=[6], shared=(read,))

    assert has_lost(who, Answers({read: Found(live("b", controller=6))}))
    assert not has_lost(who, Answers({read: Found(live("b", controller=5))}))
    assert not has_lost(who, Answers({read: Absent()}))
