"""The first definition and its first instance."""

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import Stage, is_active, is_on, status

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("RG-1")
async def test_a_definition_generates_a_kind_and_becomes_active(stage: Stage) -> None:
    async with stage.running():
        found = await stage.given_definition()
        crd = await stage.client.get(stage.crd_ref())

        assert status(found)["topologicalOrder"] == ["config"]
        assert all(one["status"] == "True" for one in status(found)["conditions"])
        (version,) = crd["spec"]["versions"]
        assert version["name"] == "v1alpha1"
        assert version["subresources"] == {"status": {}}
        assert [one["name"] for one in version["additionalPrinterColumns"]] == ["State", "Ready", "Age"]
        assert meta.labels(crd)["kro.run/resource-graph-definition-name"] == stage.named("app")


@check("RG-40")
async def test_an_instance_gets_its_children_and_becomes_active(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1", replicas=3)
        child = await stage.until_object("a1-cm")

        assert child["data"] == {"replicas": "3"}
        assert meta.labels(child)["kro.run/node-id"] == "config"
        await stage.edit_spec("a1", replicas=5)
        await stage.until_instance("a1", is_on(input_revision=2))
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "5"}
        await stage.settled()
        assert is_active(await stage.instance_now("a1"))
