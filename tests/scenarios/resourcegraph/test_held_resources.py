"""Resources whose propagateWhen holds back a change."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import Stage, config_map, is_on, node, status
from tests.scenarios.resourcegraph.versions import stamp

pytestmark = pytest.mark.asyncio(loop_scope="session")

REFERENCE: Made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${schema.spec.name}-gate"}}
GATED = (
    {"id": "gate", "externalRef": REFERENCE},
    node(
        "first",
        config_map("${schema.spec.name}-first", replicas="${string(schema.spec.replicas)}"),
        propagateWhen=['${gate.data.open == "true"}'],
    ),
    node(
        "second",
        config_map(
            "${schema.spec.name}-second",
            replicas="${string(schema.spec.replicas)}",
            first="${first.data.replicas}",
        ),
    ),
)


async def given_gated_instance(stage: Stage) -> None:
    """Create an instance whose gate is open, and close it."""
    await stage.client.create(
        {**config_map("a1-gate", open="true"), "metadata": {"name": "a1-gate", "namespace": stage.namespace}}
    )
    await stage.given_definition(*GATED)
    await stage.given_instance("a1")
    await set_gate(stage, "false")
    await stage.settled()


async def set_gate(stage: Stage, value: str) -> None:
    await stage.edit(stage.object_ref("a1-gate"), {"data": {"open": value}})


def propagation(obj: Obj) -> str:
    return str((status(obj).get("propagation") or {}).get("status"))


def pods(version: int, *, gated: bool) -> Made:
    """A collection of three items that move one at a time, each ready once it is opened for a version."""
    made = node(
        "pods",
        config_map("${schema.spec.name}-${string(index)}", version=str(version)),
        forEach=[{"index": "${lists.range(3)}"}],
    )
    if not gated:
        return made
    return {
        **made,
        "propagateWhen": ["${linearlyUpdated(each, pods, 1)}"],
        "readyWhen": [f'${{"open{version}" in each.data}}'],
    }


@check("RG-102")
async def test_items_of_a_collection_are_updated_one_after_the_other(stage: Stage) -> None:
    async def on_second() -> list[str]:
        await stage.settled()
        return [meta.name(one) for one in await stage.children() if one["data"]["version"] == "2"]

    async with stage.running():
        await stage.given_definition(pods(1, gated=False))
        await stage.given_instance("a1")
        await stage.redefine(pods(2, gated=True))
        await stage.until_published(2)
        for number in range(3):
            assert await on_second() == [f"a1-{index}" for index in range(number + 1)]
            held = [one for one in await stage.children() if one["data"]["version"] == "1"]
            assert {stamp(one) for one in held} <= {"1"}
            found = await stage.instance_now("a1")
            if number < 2:
                assert propagation(found) == "Blocked"
                assert status(found)["propagation"]["resourcesAtTarget"] == number + 1
            await stage.edit(stage.object_ref(f"a1-{number}"), {"data": {"open2": "true"}})
        found = await stage.until_instance("a1", is_on(revision=2))
        assert propagation(found) == "Completed"


@check("RG-103")
async def test_a_resource_that_is_held_back_holds_back_its_dependents(stage: Stage) -> None:
    async with stage.running():
        await given_gated_instance(stage)
        before = {name: await stage.until_object(f"a1-{name}") for name in ("first", "second")}
        await stage.edit_spec("a1", replicas=5)
        found = await stage.until_instance("a1", lambda obj: propagation(obj) == "Blocked")
        await stage.settled()
        for name, child in before.items():
            assert await stage.until_object(f"a1-{name}") == child
        assert 'node "first"' in status(found)["propagation"]["message"]
        assert "propagateWhen does not hold" in status(found)["propagation"]["message"]
        assert status(found)["observedInputRevision"] == 1

        await set_gate(stage, "true")
        await stage.until_instance("a1", is_on(input_revision=2))
        assert (await stage.until_object("a1-first"))["data"] == {"replicas": "5"}
        assert (await stage.until_object("a1-second"))["data"] == {"replicas": "5", "first": "5"}


@check("RG-110")
async def test_what_is_blocked_is_in_progress_and_has_one_transition_time(stage: Stage) -> None:
    async with stage.running():
        await given_gated_instance(stage)
        completed = status(await stage.instance_now("a1"))["propagation"]
        await stage.edit_spec("a1", replicas=5)
        found = await stage.until_instance("a1", lambda obj: propagation(obj) == "Blocked")
        blocked = status(found)["propagation"]
        newest = (await stage.input_revisions("a1"))[-1]
        await stage.until(meta.ref(newest), lambda obj: status(obj).get("propagationStatus") == "InProgress")

        # Time passes, and the rest of the status changes with another edit.
        stage.pass_time(3600)
        await stage.edit_spec("a1", replicas=6)
        found = await stage.until_instance(
            "a1", lambda obj: status(obj)["propagation"].get("targetInputRevision") == 3
        )
        await stage.settled()
        found = await stage.instance_now("a1")
        assert status(found)["propagation"]["status"] == "Blocked"
        assert status(found)["propagation"]["lastTransitionTime"] == blocked["lastTransitionTime"]

        await set_gate(stage, "true")
        found = await stage.until_instance("a1", is_on(input_revision=3))
        assert propagation(found) == "Completed"
        times = [one["lastTransitionTime"] for one in (completed, status(found)["propagation"])]
        assert times[1] > blocked["lastTransitionTime"] >= times[0]
        newest = (await stage.input_revisions("a1"))[-1]
        assert status(newest)["propagationStatus"] == "Completed"
