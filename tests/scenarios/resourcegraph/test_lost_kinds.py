"""The kind of a resource is deleted, and the controllers are started again."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.scenarios.resourcegraph.stage import Stage, config_map, is_active, message, node, status

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = "${schema.spec.name}"


def _widgets(stage: Stage) -> Made:
    """The CRD of a kind with a typed field."""
    spec = {"type": "object", "properties": {"on": {"type": "boolean"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{stage.group}"},
        "spec": {"group": stage.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def test_other_resources_are_kept_after_a_restart_without_the_kind_of_one(stage: Stage) -> None:
    crd = _widgets(stage)
    made = await stage.client.create(crd)
    widget = {
        "apiVersion": f"{stage.group}/v1",
        "kind": "Widget",
        "metadata": {"name": NAME},
        "spec": {"on": True},
    }
    resources = (
        node("a", config_map(f"{NAME}-a", replicas="${string(schema.spec.replicas)}")),
        # The type of this condition is known from the schema of the kind alone.
        node("widget", widget, readyWhen=["${widget.spec.on}"]),
        node("after", config_map(f"{NAME}-after", of="${widget.metadata.name}")),
    )
    async with stage.running():
        await stage.given_definition(*resources)
        await stage.given_instance("a1", replicas=1)
        await stage.settled()
        kept = await stage.object("a1-after")
    await stage.client.delete(meta.ref(made))
    await stage.until_gone(meta.ref(made))
    async with stage.running():
        await stage.edit_spec("a1", replicas=2)
        await stage.until_object("a1-a", lambda obj: obj["data"] == {"replicas": "2"})
        found = await stage.until_instance("a1", lambda obj: status(obj).get("state") == "ERROR")
        said = message(found, "RevisionResolved")
        assert f"needs Widget of {stage.group}/v1, which is not served" in said
        assert "install the CustomResourceDefinition" in said
        assert await stage.object("a1-after") == kept

        await stage.client.create(crd)
        healed = await stage.until_passing_time("a1", is_active)
        assert message(healed, "RevisionResolved") == "RGD revision 1"
        await stage.until_object(
            "a1-after", lambda obj: meta.annotations(obj)["kro.run/input-revision"] == "2"
        )
    await stage.client.delete(meta.ref(made))
