"""The part of jq that selects fields."""

from typing import Any

import pytest

from lamina.objects.jq import JqError, select_paths

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


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (".",                                            [()]),
        (".spec.replicas",                               [("spec", "replicas")]),
        ('.spec."a b"',                                  [("spec", "a b")]),
        ('.spec["a b"]',                                 [("spec", "a b")]),
        ('.["spec"].replicas',                           [("spec", "replicas")]),
        (".spec.http[0].name",                           [("spec", "http", 0, "name")]),
        (".spec.http[-1].name",                          [("spec", "http", 1, "name")]),
        (".spec.http[].name",                            [("spec", "http", 0, "name"), ("spec", "http", 1, "name")]),
        (".spec.http | .[1] | .name",                    [("spec", "http", 1, "name")]),
        (".spec.replicas, .flag",                        [("spec", "replicas"), ("flag",)]),
        ('.spec.http[] | select(.name == "other") | .route[].weight', [("spec", "http", 1, "route", 0, "weight")]),
        ('.spec.http[]? | select(.name? == "rollout") | .route[]? | select(.to? == "canary" or .to? == "x") | .weight?',
                                                         [("spec", "http", 0, "route", 1, "weight")]),
        (".spec.http[].route[] | select(.weight >= 90) | .to",
                                   [("spec", "http", 0, "route", 0, "to"), ("spec", "http", 1, "route", 0, "to")]),
        ('.spec.http[] | select((.route | length) > 1 and (.name | startswith("roll"))) | .name',
                                                         [("spec", "http", 0, "name")]),
        ('.spec.http[] | select(.name | endswith("er") | not) | .name', [("spec", "http", 0, "name")]),
        ('.spec.http[] | select(has("nope") | not) | select(.name | contains("th")) | .name',
                                                         [("spec", "http", 1, "name")]),
        ('.. | select(type == "boolean")',               [("flag",)]),
        (".none.deeper",                                 [("none", "deeper")]),
        (".flag.x?",                                     []),
        (".missing[]?",                                  []),
        (".spec.http[] | select(.name != null) | select(.name < \"p\") | .name", [("spec", "http", 1, "name")]),
    ],
)  # fmt: skip
def test_an_expression_finds_fields(expression: str, found: list[Any]) -> None:
    assert select_paths(expression, OBJ) == found


@pytest.mark.parametrize(
    "expression",
    ["", ".spec |", ".[", ".spec.http[", "keys", "map(.x)", ".flag.x", ".missing[]", "{a: .b}", ". = 1", '"a"',
     "select(.x)|", ".spec.replicas[0]", ".a)", "(.a", '.flag | startswith("x")', ".flag | length", "1 | has(1)"],
)  # fmt: skip
def test_other_expressions_are_refused(expression: str) -> None:
    with pytest.raises(JqError):
        select_paths(expression, OBJ)
