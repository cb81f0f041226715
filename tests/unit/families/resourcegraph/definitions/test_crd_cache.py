"""What is cached of CRDs, and whose they are."""

import pytest

from lamina.families.resourcegraph.definitions.crd_cache import (
    conflict,
    is_generated,
    marks_of,
    reduced,
    schema_mark,
    whole_or_child,
)
from lamina.families.resourcegraph.labels import NODE_ID
from lamina.objects import meta
from tests.unit.families.resourcegraph.definitions.clusters import APP, Definitions, app
from tests.unit.families.resourcegraph.definitions.test_crd_step import crd
from tests.unit.families.resourcegraph.definitions.test_rollback import widget, widget_crd


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"kro.run/owned": "true", "kro.run/resource-graph-definition-name": "app"}, ""),
        ({"app.kubernetes.io/managed-by": "kro", "kro.run/resource-graph-definition-name": "app"}, ""),
        (
            {"kro.run/owned": "true", "kro.run/resource-graph-definition-name": "b"},
            "ResourceGraphDefinition b",
        ),
        ({"kro.run/resource-graph-definition-name": "app"}, "not owned by KRO"),
        ({"app.kubernetes.io/managed-by": "helm"}, "not owned by KRO"),
    ],
)
def test_the_labels_of_a_crd_say_whose_it_is(labels: dict[str, str], message: str) -> None:
    found = conflict(crd(**labels), "app")

    assert (message in found) if message else not found


def test_a_generated_crd_is_cached_whole_and_another_one_without_its_schemas() -> None:
    own, foreign = crd(**{"kro.run/owned": "true"}), crd(team="a")

    assert reduced(own) == own
    assert is_generated(reduced(own))
    assert "schema" not in reduced(foreign)["spec"]["versions"][0]
    assert meta.labels(reduced(foreign)) == {"team": "a"}


def test_the_mark_of_a_crd_changes_with_its_schema_and_not_with_its_labels() -> None:
    one = crd(team="a")
    edited = crd(team="a")
    edited["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"spec": {"type": "object"}}

    assert schema_mark(one) == schema_mark(crd(team="b"))
    assert schema_mark(one) != schema_mark(edited)


def test_a_child_is_kept_with_its_managed_fields_so_that_it_is_known_to_be_applied() -> None:
    child = {
        "metadata": {
            "name": "queues.example.com",
            "labels": {NODE_ID: "queue"},
            "managedFields": [{"manager": "m"}],
        },
        "spec": {},
    }
    assert reduced(child) == whole_or_child(child) == child


def test_a_view_has_the_marks_of_the_kinds_of_its_resources_as_they_were_when_it_was_gathered() -> None:
    there = Definitions()
    there.apply(widget_crd())
    there.apply(app(widget()))
    world = there.cluster.world(there.controller)
    view = there.controller.gather(world, APP)
    assert view is not None

    name = meta.name(widget_crd())
    before = {name: schema_mark(there.get(meta.ref(widget_crd())))}
    [version] = widget_crd()["spec"]["versions"]
    edited = {**version, "schema": {"openAPIV3Schema": {"type": "object", "description": "edited"}}}
    there.cluster.patch(meta.ref(widget_crd()), {"spec": {"versions": [edited]}})

    assert view.marks == before
    assert marks_of(world, [("v1", "ConfigMap"), ("ex.example.com/v9", "Nothing")]) == {}
