"""The types in the messages about rules of CustomResourceDefinitions are those of `self`, as kube-apiserver names them."""

from typing import Any

import pytest

from lamina.client.client import Client
from lamina.errors import Invalid
from lamina.testing.builders import definition

pytestmark = pytest.mark.asyncio(loop_scope="session")

ITEM = {"type": "object", "properties": {"n": {"type": "integer"}}}
SPEC = {
    "type": "object",
    "properties": {
        "size": ITEM,
        "list": {"type": "array", "maxItems": 3, "items": ITEM},
        "map": {"type": "object", "maxProperties": 3, "additionalProperties": ITEM},
    },
}


def ruled(node: dict[str, Any], rule: str) -> dict[str, Any]:
    return {**node, "x-kubernetes-validations": [{"rule": rule}]}


@pytest.mark.parametrize(
    ("part", "rule", "types"),
    [
        ("", "self == 1", r"\(selfType\d+, int\)"),
        ("", "self.size == 1", r"\(selfType\d+\.size, int\)"),
        ("", "self.list[0] == 1", r"\(selfType\d+\.list\.@idx, int\)"),
        ("", "self.map == 1", r"\(map\(string, selfType\d+\.map\.@elem\), int\)"),
        ("size", "self == 1", r"\(selfType\d+, int\)"),
        ("list", "self == 1", r"\(list\(selfType\d+\.@idx\), int\)"),
        ("map", "self == 1", r"\(map\(string, selfType\d+\.@elem\), int\)"),
    ],
)
async def test_a_rule_that_compares_an_object_with_an_int_names_the_type_of_self(
    client: Client, part: str, rule: str, types: str
) -> None:
    parts = SPEC["properties"]
    assert isinstance(parts, dict)
    spec = {**SPEC, "properties": {**parts, part: ruled(parts[part], rule)}} if part else ruled(SPEC, rule)
    crd = definition(
        "Ruled", group="rules.example.com", schema={"type": "object", "properties": {"spec": spec}}
    )

    with pytest.raises(Invalid, match=rf"found no matching overload for '_==_' applied to '{types}'"):
        await client.create(crd)
