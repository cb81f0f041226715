"""The kinds of a CRD."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lamina.server.kinds.custom.kinds import VERBS, kinds_of
from tests.unit.server.custom.golden import objects, ours

Made = dict[str, Any]


def established(body: Made) -> Made:
    return ours.create_definition(body)[0]


def versioned(*names: str, **more: Any) -> Made:
    body = copy.deepcopy(objects.DEFINITIONS["plain"])
    first = body["spec"]["versions"][0]
    body["spec"]["versions"] = [
        {**first, "name": name, "storage": index == 0, **more.get(name, {})}
        for index, name in enumerate(names)
    ]
    return body


def test_nothing_is_served_before_names_are_accepted() -> None:
    crd = established(objects.DEFINITIONS["plain"])
    crd["status"]["conditions"] = [{"type": "Established", "status": "False"}]
    assert kinds_of(crd) == ()


def test_a_kind_is_called_what_was_accepted() -> None:
    (kind,) = kinds_of(established(objects.DEFINITIONS["stateful"]))
    assert (kind.group, kind.version, kind.kind, kind.list_kind) == (
        "gold.example.com",
        "v1",
        "Statefuls",
        "StatefulsList",
    )
    assert (kind.plural, kind.singular, kind.bucket) == (
        "statefuls",
        "statefuls",
        "statefuls.gold.example.com",
    )
    assert kind.namespaced and kind.custom and kind.preferred and not kind.converts
    assert kind.verbs == VERBS
    assert [(sub.name, sub.kind, sub.verbs) for sub in kind.subresources] == [
        ("status", "Statefuls", ("get", "patch", "update")),
        ("scale", "Scale", ("get", "patch", "update")),
    ]


def test_the_preferred_version_comes_first_whatever_is_stored() -> None:
    kinds = kinds_of(established(versioned("v1beta1", "v1", "v2")))
    assert [(kind.version, kind.preferred) for kind in kinds] == [
        ("v2", True),
        ("v1", False),
        ("v1beta1", False),
    ]
    assert len({kind.bucket for kind in kinds}) == 1


def test_a_version_that_is_not_served_brings_no_kind() -> None:
    kinds = kinds_of(established(versioned("v1", "v2", v2={"served": False})))
    assert [kind.version for kind in kinds] == ["v1"]


def test_only_a_version_with_another_schema_than_the_stored_one_converts() -> None:
    alike = kinds_of(established(versioned("v1", "v2")))
    assert [kind.converts for kind in alike] == [False, False]
    unlike = kinds_of(established(objects.DEFINITIONS["versions"]))
    assert {kind.version: kind.converts for kind in unlike} == {"v1": False, "v2": True}


def test_the_same_content_gives_the_same_values() -> None:
    crd = established(objects.DEFINITIONS["plain"])
    again = copy.deepcopy(crd)
    again["metadata"]["labels"] = {"a": "b"}
    again["status"]["conditions"].append({"type": "Mine", "status": "True"})
    assert kinds_of(crd)[0] is kinds_of(again)[0]


def test_another_schema_gives_other_values() -> None:
    crd = established(objects.DEFINITIONS["loose"])
    changed, _ = ours.update_definition(crd, objects.DEFINITIONS["tight"])
    assert kinds_of(crd)[0] is not kinds_of(changed)[0]


def test_a_definition_on_its_way_out_offers_no_new_objects() -> None:
    crd = established(objects.DEFINITIONS["plain"])
    crd["status"]["conditions"].append({"type": "Terminating", "status": "True"})
    assert kinds_of(crd)[0].verbs == ("delete", "deletecollection", "get", "list", "watch")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"v1beta1": {"deprecated": True}}, "gold.example.com/v1beta1 Plains is deprecated; use gold.example.com/v2 Plains"),
        ({"v1beta1": {"deprecated": True, "deprecationWarning": "no more"}}, "no more"),
        ({"v1beta1": {"deprecated": True}, "v1": {"deprecated": True}, "v2": {"served": False}}, "gold.example.com/v1beta1 Plains is deprecated"),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_deprecated_version_says_what_to_use_instead(more: Made, told: str) -> None:
    kinds = ours.kinds_of(established(versioned("v1beta1", "v1", "v2", **more)))
    assert kinds["v1beta1"].deprecation == told


def test_metadata_merges_as_everywhere() -> None:
    kind = kinds_of(established(objects.DEFINITIONS["embedding"]))[0]
    for metadata in (
        kind.schema.properties["metadata"],
        kind.schema.properties["spec"].properties["one"].properties["metadata"],
    ):
        assert metadata.properties["finalizers"].list_type == "set"
        assert metadata.properties["ownerReferences"].list_keys == ("uid",)


def test_selectable_fields_are_asked_by_their_path_without_the_dot() -> None:
    body = versioned(
        "v1", v1={"selectableFields": [{"jsonPath": ".spec.text"}, {"jsonPath": ".spec.replicas"}]}
    )
    labels = kinds_of(established(body))[0].shape.field_labels
    obj = {"spec": {"text": "a", "replicas": 3}}
    assert {name: read(obj) for name, read in labels.items()} == {"spec.text": "a", "spec.replicas": "3"}
    assert {name: read({"spec": None}) for name, read in labels.items()} == {
        "spec.text": "",
        "spec.replicas": "",
    }
