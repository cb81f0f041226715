"""Labels and annotations that only controllers set, where an expression makes them."""

from typing import Any

import pytest

from lamina.graph.evaluate import Failed, render
from tests.unit.graph.graphs import compiled, rendered, resource, scoped

SPEC = {"name": "string", "notes": "map[string]string"}
BUCKET, DATABASE = ("aws.example.com/v1", "Bucket"), ("kro.run/v1alpha1", "Database")


def found_with(key: str, what: str = "annotations", kind: tuple[str, str] = BUCKET) -> Any:
    """Return what a template renders to whose labels or annotations are those of the instance's spec."""
    graph = compiled(resource("a", *kind, metadata={"name": "x", what: "${schema.spec.notes}"}), spec=SPEC)
    return render(graph, graph.nodes["a"], scoped(graph, {"name": "web", "notes": {key: "1"}}))


@pytest.mark.check("RG-29")
@pytest.mark.parametrize("what", ["labels", "annotations"])
@pytest.mark.parametrize("kind", [BUCKET, DATABASE])
@pytest.mark.parametrize("prefix", ["kro.run/", "internal.kro.run/", "applyset.kubernetes.io/"])
def test_an_expression_cannot_set_what_is_reserved(what: str, kind: tuple[str, str], prefix: str) -> None:
    assert found_with(f"{prefix}x", what, kind) == Failed(
        "a",
        f'node "a": path "metadata.{what}["{prefix}x"]": {what} with prefix "{prefix}" are reserved for internal use',
    )


@pytest.mark.parametrize("key", ["kro.run/rollback-to-input-revision", "kro.run/parent-input-revision"])
def test_a_user_of_an_instance_cannot_act_on_a_nested_instance(key: str) -> None:
    assert "are reserved for internal use" in found_with(key, kind=DATABASE).because


@pytest.mark.parametrize("key", ["kro.run/update-policy", "kro.run/reconcile", "kro.run/rgd-revision"])
def test_an_expression_may_steer_a_nested_instance(key: str) -> None:
    (made,) = found_with(key, kind=DATABASE)

    assert made["metadata"]["annotations"] == {key: "1"}
    assert isinstance(found_with(key), Failed)
    assert isinstance(found_with(key, "labels", DATABASE), Failed)


def test_other_keys_and_those_of_inner_templates_are_free() -> None:
    inner = {"metadata": {"labels": "${schema.spec.notes}"}}
    graph = compiled(
        resource(
            "a",
            *BUCKET,
            metadata={"name": "x", "labels": {"a/b": "${schema.spec.name}"}},
            spec={"free": inner},
        ),
        spec=SPEC,
    )
    made = rendered(graph, "a", {"name": "web", "notes": {"kro.run/x": "y"}})

    assert made["metadata"]["labels"] == {"a/b": "web"}
    assert made["spec"]["free"]["metadata"]["labels"] == {"kro.run/x": "y"}
