"""A deployment that is deleted: its sets and their objects go with it, and so do the metrics."""

import re

import pytest

from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import TIMEOUT, Stage, has_condition, is_archived

pytestmark = pytest.mark.asyncio(loop_scope="session")

CREATED = "package_operator_object_set_created_timestamp_seconds"
SUCCEEDED = "package_operator_object_set_succeeded_timestamp_seconds"


def series(stage: Stage, metric: str) -> dict[str, float]:
    """Return the values of a metric by the names of sets."""
    found = re.findall(
        rf'^{metric}\{{pko_name="([^"]+)",[^}}]*\}} (\S+)$', stage.metrics.text().decode(), re.M
    )
    return {name: float(value) for name, value in found}


async def until_measured(stage: Stage, metric: str, *names: str) -> None:
    await eventually(
        lambda: sorted(series(stage, metric)), lambda found: found == sorted(names), seconds=TIMEOUT
    )


async def check_deleted(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("a")))
        await stage.until_rolled_out("web", 1)
        phases = (
            stage.phase("p1", stage.config_map("a", key="v2")),
            stage.phase("p2", stage.config_map("b")),
        )
        await stage.want("web", *phases)
        first, second = await stage.until_rolled_out("web", 2)
        await stage.want("web", phases[0], stage.phase("p2", stage.config_map("c", healthy=False)))
        await stage.until_object("c")
        await stage.until_revisions(
            "web", lambda found: len(found) == 3 and has_condition(found[2], "Available")
        )
        await stage.settled()
        third = (await stage.revisions("web"))[2]
        assert is_archived(first)
        await until_measured(stage, CREATED, meta.name(second), meta.name(third))
        await until_measured(stage, SUCCEEDED, meta.name(second))
        found = conditions.find(conditions.of(second), "Succeeded")
        since = moment(found["lastTransitionTime"]) if found is not None else None
        assert since is not None
        assert series(stage, SUCCEEDED)[meta.name(second)] == since.timestamp()

        await stage.client.delete(stage.deployment_ref("web"))
        await stage.until_gone(stage.deployment_ref("web"))
        for one in (first, second, third):
            await stage.until_gone(meta.ref(one))
        await stage.settled()

        assert await stage.listed(("v1", "ConfigMap")) == []
        assert await stage.revisions("web") == []
        await until_measured(stage, CREATED)
        await until_measured(stage, SUCCEEDED)


@check("OS-55")
async def test_a_deleted_deployment_takes_its_sets_their_objects_and_their_metrics_along(
    stage: Stage,
) -> None:
    await check_deleted(stage)


@check("OS-55")
async def test_a_deleted_cluster_deployment_takes_everything_along(cluster_stage: Stage) -> None:
    await check_deleted(cluster_stage)


@check("OS-55")
async def test_a_deleted_deployment_takes_its_phases_with_a_class_along(class_stage: Stage) -> None:
    await check_deleted(class_stage)
    for one in ("ObjectSetPhase", "ObjectSet"):
        assert await class_stage.listed(("package-operator.run/v1alpha1", one)) == []


@check("OS-55")
async def test_a_deployment_that_is_deleted_in_the_foreground_waits_for_its_objects(stage: Stage) -> None:
    async with stage.running():
        await stage.given_deployment(
            "web", stage.phase("p1", stage.config_map("a")), stage.phase("p2", stage.config_map("b"))
        )
        await stage.until_rolled_out("web", 1)
        await stage.edit(stage.object_ref("b"), {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(stage.deployment_ref("web"), propagation="Foreground")
        await stage.until_object("b", meta.is_deleting)
        await stage.settled()
        assert await stage.get(stage.deployment_ref("web")) is not None
        await stage.edit(stage.object_ref("b"), {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.deployment_ref("web"))

        assert await stage.listed(("v1", "ConfigMap")) == []
