"""Path expressions of stages."""

from typing import Any

import pytest

from lamina.actors.stages.path import parse

OBJ = {
    "metadata": {"name": "web", "annotations": {"sim/ready-after": "30s"}},
    "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}], "none": None},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("text",                                                              "found"),
    [
        (".metadata.name",                                                ["web"]),
        ('.metadata.annotations["sim/ready-after"]',                      ["30s"]),
        (".spec.containers.[].name",                                      ["a", "b"]),
        (".spec.containers[].image",                                      ["x"]),
        (".spec.containers[1].name",                                      ["b"]),
        (".spec.containers[7].name",                                      []),
        (".spec.none",                                                    []),
        (".spec.absent.deeper",                                           []),
        (".metadata.name.deeper",                                         []),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status',  ["True"]),
        ('.status.conditions.[] | select( .type == "No" ) | .status',     []),
        ("container.name",                                                ["c"]),
        ("container.lastState.terminated",                                []),
    ],
)  # fmt: skip
def test_an_expression_leads_to_values(text: str, found: list[Any]) -> None:
    expression = parse(text, ("container", "item"))

    assert expression.values({"": OBJ, "container": {"name": "c", "lastState": {}}}) == found
    assert expression.first({"": OBJ, "container": {"name": "c"}}) == (found[0] if found else None)


@pytest.mark.parametrize("text", ["", "name", ".a.b!", '.a | select(.b != "x")', ".a | ", "containers.name"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        parse(text, ("container",))
