"""Accepted names of CRDs in a group, and their conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lamina.server.kinds.custom.names import definition_status, is_established, is_terminating

Made = dict[str, Any]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 4, 0, 0, tzinfo=UTC)


def crd(plural: str = "cats", kind: str = "Cat", **names: Any) -> Made:
    called = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List", **names}
    return {
        "metadata": {"name": f"{plural}.example.com", "generation": 1},
        "spec": {"group": "example.com", "names": called, "versions": [{"name": "v1", "storage": True}]},
        "status": {"storedVersions": ["v1"]},
    }


def settled(definition: Made, *others: Made) -> Made:
    return {**definition, "status": definition_status(definition, others, NOW)}


def conditions(definition: Made) -> dict[str, tuple[str, str, str]]:
    return {
        one["type"]: (one["status"], one["reason"], one["message"])
        for one in definition["status"]["conditions"]
    }


def test_a_definition_alone_in_its_group_is_established_at_once() -> None:
    cats = settled(crd(shortNames=["c"], categories=["all"]))
    assert conditions(cats) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert cats["status"]["acceptedNames"] == cats["spec"]["names"]
    assert cats["status"]["storedVersions"] == ["v1"]
    assert is_established(cats)
    assert not is_terminating(cats)


def test_a_taken_kind_is_refused_and_the_rest_is_granted() -> None:
    cats = settled(crd())
    other = settled(crd("felines", "Cat", singular="feline", listKind="FelineList"), cats)
    assert conditions(other) == {
        "NamesAccepted": ("False", "KindConflict", '"Cat" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    assert other["status"]["acceptedNames"] == {
        "plural": "felines",
        "singular": "feline",
        "kind": "",
        "listKind": "FelineList",
    }
    assert not is_established(other)


def test_the_last_conflict_is_the_one_that_is_told() -> None:
    cats = settled(crd())
    other = settled(crd("cats2", "Cat"), cats)
    assert conditions(other)["NamesAccepted"] == ("False", "ListKindConflict", '"CatList" is already in use')


def test_all_taken_short_names_are_told() -> None:
    cats = settled(crd(shortNames=["a", "b"]))
    dogs = settled(crd("dogs", "Dog", shortNames=["b", "d", "cat"]), cats)
    assert conditions(dogs)["NamesAccepted"] == (
        "False",
        "ShortNamesConflict",
        '["b" is already in use, "cat" is already in use]',
    )
    assert "shortNames" not in dogs["status"]["acceptedNames"]


def test_a_definition_once_established_stays_so_when_it_asks_for_a_taken_name() -> None:
    cats = settled(crd(shortNames=["c"]))
    dogs = settled(crd("dogs", "Dog"), cats)
    dogs["spec"]["names"]["shortNames"] = ["c"]
    dogs = settled(dogs, cats)
    assert conditions(dogs)["NamesAccepted"][:2] == ("False", "ShortNamesConflict")
    assert is_established(dogs)


def test_a_name_that_is_let_go_is_free_for_others() -> None:
    cats = settled(crd())
    other = settled(crd("felines", "Cat", singular="feline", listKind="FelineList"), cats)
    other = {**other, "status": definition_status(other, [], LATER)}
    assert is_established(other)
    assert {one["lastTransitionTime"] for one in other["status"]["conditions"]} == {"2026-01-02T04:00:00Z"}


def test_a_status_that_is_settled_stays_the_same() -> None:
    cats = settled(crd(shortNames=["c"]))
    assert definition_status(cats, [], LATER) == cats["status"]


def test_conditions_that_others_set_are_kept() -> None:
    cats = settled(crd())
    cats["status"]["conditions"].append({"type": "Mine", "status": "True"})
    assert "Mine" in {one["type"] for one in definition_status(cats, [], LATER)["conditions"]}


def test_a_definition_on_its_way_out_says_so() -> None:
    cats = settled(crd())
    cats["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    cats = settled(cats)
    assert conditions(cats)["Terminating"] == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    assert is_terminating(cats)


def test_a_webhook_with_a_bundle_of_nonsense_is_not_established() -> None:
    cats = crd()
    client = {"url": "https://x", "caBundle": "bm90IGEgYnVuZGxl"}
    cats["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": client}}
    assert conditions(settled(cats))["Established"] == (
        "False",
        "InvalidCABundle",
        "The conversion webhook CABundle is invalid",
    )


def test_a_group_of_kubernetes_is_told_where_it_was_approved() -> None:
    cats = crd()
    cats["spec"]["group"] = "cats.k8s.io"
    cats["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
    assert conditions(settled(cats))["KubernetesAPIApprovalPolicyConformant"] == (
        "True",
        "ApprovedAnnotation",
        "approved in https://example.com/1",
    )
