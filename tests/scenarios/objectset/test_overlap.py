"""Deployments with the same selector: each has to do with its own sets only."""

import asyncio

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import Stage, is_archived, is_available, state

pytestmark = pytest.mark.asyncio(loop_scope="session")

LABELS = {"app": "shared"}


async def given(stage: Stage, name: str, key: str) -> None:
    made = stage.deployment(name, stage.phase("p1", stage.config_map(f"cm-{name}", key=key)))
    made["spec"]["selector"] = {"matchLabels": LABELS}
    made["spec"]["template"]["metadata"]["labels"] = LABELS
    await stage.client.create(made)


async def roll_out(stage: Stage, name: str, key: str) -> None:
    phases = [stage.phase("p1", stage.config_map(f"cm-{name}", key=key))]

    def changed(old: dict[str, object]) -> dict[str, object]:
        wanted = stage.deployment(name, *phases)["spec"]["template"]
        wanted["metadata"]["labels"] = LABELS
        return {**old, "spec": {**old["spec"], "template": wanted}}  # type: ignore[dict-item]  # a spec is a mapping

    await stage.update(stage.deployment_ref(name), changed)


@check("OS-52")
async def test_deployments_with_one_selector_leave_the_sets_of_each_other_alone(stage: Stage) -> None:
    await check_overlap(stage)


@check("OS-52")
async def test_cluster_deployments_with_one_selector_leave_the_sets_of_each_other_alone(
    cluster_stage: Stage,
) -> None:
    await check_overlap(cluster_stage)


async def check_overlap(stage: Stage) -> None:
    async with stage.running():
        await asyncio.gather(given(stage, "one", "v1"), given(stage, "two", "v1"))
        for name in ("one", "two"):
            await stage.until_rolled_out(name, 1)
        other = (await stage.revisions("two"))[0]
        stands = meta.resource_version(other), meta.resource_version(await stage.live("cm-two"))

        await stage.edit(stage.deployment_ref("one"), {"spec": {"revisionHistoryLimit": 0}})
        await roll_out(stage, "one", "v2")
        found = await stage.until_revisions("one", lambda found: [has_number(one) for one in found] == [2])
        await stage.settled()
        assert is_available(found[0])
        other = (await stage.revisions("two"))[0]
        assert (meta.resource_version(other), meta.resource_version(await stage.live("cm-two"))) == stands

        await stage.edit(stage.deployment_ref("one"), {"spec": {"paused": True}})
        await stage.until_revisions("one", lambda found: state(found[0]) == "Paused")
        await stage.settled()
        assert state((await stage.revisions("two"))[0]) == "Active"

        await roll_out(stage, "two", "v2")
        first, second = await stage.until_rolled_out("two", 2)
        assert is_archived(first)
        assert is_available(second)
        assert [one["name"] for one in second["spec"]["previous"]] == [meta.name(first)]
        assert (await stage.live("cm-one"))["data"] == {"key": "v2"}

        await stage.client.delete(stage.deployment_ref("one"))
        await stage.until_gone(stage.object_ref("cm-one"))
        await stage.settled()

        assert is_available((await stage.revisions("two"))[1])
        assert await stage.object("cm-two") is not None


def has_number(obj: dict[str, object]) -> object:
    spec = obj["spec"]
    return spec.get("revision") if isinstance(spec, dict) else None
