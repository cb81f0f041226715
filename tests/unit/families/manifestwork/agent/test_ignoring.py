"""Ignored fields, by JSON paths, JSON pointers and jq; and the order of kinds."""

from typing import Any

import pytest

from lamina.core.apply.apply_order import OTHERS, UNKNOWN, rank
from lamina.families.manifestwork.agent.api import IgnoreFields
from lamina.families.manifestwork.agent.ignore_fields import IgnoreError, without
from lamina.objects.types import GroupKind

OBJ: dict[str, Any] = {
    "spec": {
        "replicas": 3,
        "a b": 1,
        "http": [
            {"name": "rollout", "route": [{"to": "stable", "weight": 90}, {"to": "canary", "weight": 10}]},
            {"name": "other", "route": [{"to": "stable", "weight": 100}]},
        ],
    },
    "flag": True,
    "none": None,
}


def dropped(**how: Any) -> Any:
    return without(OBJ, [IgnoreFields(**how)], "OnSpokePresent")


def test_fields_are_left_out_by_whichever_way_they_are_named() -> None:
    by_path = dropped(json_paths=(".spec.replicas", ".spec.http[*].route[*].weight", ".no.such"))
    assert "replicas" not in by_path["spec"]
    assert [list(one) for one in by_path["spec"]["http"][0]["route"]] == [["to"], ["to"]]
    by_pointer = dropped(json_pointers=("/spec/a b", "/spec/http/0/route/1", "/no/such", "/spec/http/9"))
    assert "a b" not in by_pointer["spec"]
    assert len(by_pointer["spec"]["http"][0]["route"]) == 1
    by_jq = dropped(jq_path_expressions=(".spec.http[].route[]", ".flag"))
    assert [one["route"] for one in by_jq["spec"]["http"]] == [[], []]
    assert "flag" not in by_jq
    assert OBJ["spec"]["http"][0]["route"], "the manifest itself stays as it is"


def test_pointers_may_name_slashes_and_tildes() -> None:
    obj = {"metadata": {"annotations": {"a/b": "1", "c~d": "2"}}}
    pointers = ("/metadata/annotations/a~1b", "/metadata/annotations/c~0d")
    kept = without(obj, [IgnoreFields(json_pointers=pointers)], "OnSpokePresent")
    assert kept == {"metadata": {"annotations": {}}}


def test_only_what_is_to_be_ignored_on_that_condition_is() -> None:
    fields = IgnoreFields(condition="OnSpokeChange", json_paths=(".flag",))
    assert without(OBJ, [fields], "OnSpokePresent") is OBJ


@pytest.mark.parametrize(
    "how",
    [
        {"json_paths": ("nodot",)},
        {"json_paths": (".spec[.x",)},
        {"json_pointers": ("spec",)},
        {"json_pointers": ("/spec/http/x",)},
        {"jq_path_expressions": ("keys",)},
        {"jq_path_expressions": (".",)},
    ],
)
def test_an_expression_that_is_not_understood_names_itself(how: Any) -> None:
    with pytest.raises(IgnoreError, match="error in '"):
        dropped(**how)


@pytest.mark.parametrize(
    ("group", "kind", "turn"),
    [
        ("",                             "Namespace",                      0),
        ("apiextensions.k8s.io",         "CustomResourceDefinition",       0),
        ("rbac.authorization.k8s.io",    "ClusterRoleBinding",             1),
        ("",                             "ServiceAccount",                 2),
        ("",                             "ConfigMap",                      3),
        ("",                             "Service",                        4),
        ("apps",                         "Deployment",                     5),
        ("batch",                        "CronJob",                        5),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", 6),
        ("serving.knative.dev",          "Service",                        OTHERS),
        ("ex.example.com",               "Widget",                         OTHERS),
    ],
)  # fmt: skip
def test_kinds_have_their_turn(group: str, kind: str, turn: int) -> None:
    assert rank(GroupKind(group, kind)) == turn
    assert rank(None) == UNKNOWN > OTHERS
