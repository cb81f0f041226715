"""The fields of a new object: the same as a comparison with an empty one finds."""

import random
from typing import Any

import pytest

from lamina.merge.compare import compare, everything
from lamina.merge.schema import Schema, Schemas
from lamina.merge.schema_node import UntypableError, node_of
from lamina.server.kinds.builtin.definitions import definition

SCHEMAS = Schemas(definition)
KINDS = [
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Pod",
    "io.k8s.api.core.v1.Service",
    "io.k8s.api.core.v1.Namespace",
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.batch.v1.CronJob",
    "io.k8s.api.rbac.v1.ClusterRole",
    "io.k8s.api.storage.v1.StorageClass",
]


def made_up(schema: Schema, dice: random.Random, depth: int = 6) -> Any:
    """Return some value, mostly one that the schema allows."""
    if dice.random() < 0.03:
        return dice.choice([None, {}, [], "", 0])
    if schema.items is not None:
        count = dice.randrange(3) if depth else 0
        return [made_up(schema.items, dice, depth - 1) for _ in range(count)]
    if schema.properties:
        names = dice.sample(sorted(schema.properties), min(len(schema.properties), 4)) if depth else []
        return {name: made_up(schema.properties[name], dice, depth - 1) for name in names}
    if schema.values is not None:
        return {dice.choice("xyz"): made_up(schema.values, dice, depth - 1) for _ in range(dice.randrange(3))}
    match schema.type:
        case "integer" | "number":
            return dice.randrange(3)
        case "boolean":
            return dice.random() < 0.5
        case "object":
            return {"a": {"b": 1}}
        case _:
            return dice.choice(["", "a", "b"])


@pytest.mark.parametrize("name", KINDS)
def test_everything_is_what_differs_from_nothing(name: str) -> None:
    dice, schema = random.Random(name), SCHEMAS.named(name)
    node = node_of(schema)
    looked_at = 0
    for _ in range(400):
        obj = made_up(schema, dice)
        if not isinstance(obj, dict):
            continue
        try:
            expected = compare({}, obj, node).changed
        except UntypableError:
            with pytest.raises(UntypableError):
                everything(obj, node)
            continue
        found = everything(obj, node)
        assert found == expected
        assert list(found) == list(expected)
        looked_at += 1

    assert looked_at > 100
