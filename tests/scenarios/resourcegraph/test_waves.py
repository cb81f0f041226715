"""Propagation of a revision to the instances: waves, what stops them, and what they do not wait for."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import Stage, condition, is_on, message, status
from tests.scenarios.resourcegraph.versions import (
    EXPONENTIALLY,
    close_children,
    config,
    given_instances,
    given_versions,
    open_children,
    publish,
    reached,
    stamp,
    stamps,
    until_all_on,
    until_counted,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def waves(stage: Stage, names: list[str], revision: int, version: int) -> list[int]:
    """
    Return how many instances each wave moves to a revision.

    Their resources are ready once they are opened for a version: of each wave all but one at first, to see
    that the next one waits for the last.
    """
    found: list[int] = []
    done: list[str] = []
    while len(done) < len(names):
        there = await reached(stage, names, revision)
        wave = there[len(done) :]
        assert there == names[: len(there)], "instances move in their order"
        found.append(len(wave))
        await open_children(stage, wave[1:], version)
        if len(wave) > 1:
            assert await reached(stage, names, revision) == there
        await open_children(stage, wave[:1], version)
        for name in wave:
            await stage.until_instance(name, is_on(revision=revision))
        done = there
    return found


async def _inputs(stage: Stage, name: str) -> list[int]:
    """Return the revisions of the definition that an instance has had input revisions of."""
    return [one["spec"]["rgdRevision"] for one in await stage.input_revisions(name)]


@check("RG-95")
async def test_exponential_waves_double_what_is_updated(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=EXPONENTIALLY)
        names = await given_instances(stage, 8)
        await stage.redefine(config(2, gated=True), propagateWhen=EXPONENTIALLY)
        await stage.until_published(2)
        found = await stage.until_definition(
            lambda obj: condition(obj, "Propagated") == ("False", "PropagationInProgress")
        )
        assert message(found, "Propagated").startswith("0/8 instances on revision 2")

        # At most 1, then 2, 4 and 8 are updated or updating.
        assert await waves(stage, names, 2, 2) == [1, 1, 2, 4]
        found = await stage.until_definition(
            lambda obj: condition(obj, "Propagated") == ("True", "AllInstancesUpdated")
        )
        assert message(found, "Propagated") == "8/8 instances on revision 2"
        assert [await _inputs(stage, name) for name in names] == [[1, 2]] * 8


@check("RG-96")
async def test_linear_waves_have_the_size_that_is_stated(stage: Stage) -> None:
    linearly = ["${linearlyUpdated(instances, each, 3)}"]
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=linearly)
        names = await given_instances(stage, 7)
        await stage.redefine(config(2, gated=True), propagateWhen=linearly)
        await stage.until_published(2)
        assert await waves(stage, names, 2, 2) == [3, 3, 1]


@check("RG-97")
async def test_a_wave_that_does_not_become_ready_stops_the_next_ones(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=EXPONENTIALLY)
        names = await given_instances(stage, 4)
        await stage.redefine(config(2, gated=True), propagateWhen=EXPONENTIALLY)
        await stage.until_published(2)
        assert await reached(stage, names, 2) == ["a1"]
        # What is closed is evaluated again without an event.
        for _ in range(5):
            stage.pass_time(60)
            assert await reached(stage, names, 2) == ["a1"]
        found = await stage.definition_now()
        assert condition(found, "Propagated") == ("False", "PropagationInProgress")
        assert f"{stage.namespace}/a1" in message(found, "Propagated")
        await until_counted(stage, (2, 1), (1, 3))

        for name in names[1:]:
            held = await stage.instance_now(name)
            assert status(held)["propagation"]["status"] == "Pending"
            assert status(held)["propagation"]["pendingRGDRevision"] == 2
            await stage.edit_spec(name, replicas=5)
        for name in names[1:]:
            await stage.until_instance(name, is_on(revision=1, input_revision=2))
            assert (await stage.until_object(f"{name}-cm"))["data"] == {"replicas": "5", "version": "1"}
        assert await reached(stage, names, 2) == ["a1"]


@check("RG-98")
async def test_a_pinned_instance_does_not_block_the_waves(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=EXPONENTIALLY)
        names = await given_instances(stage, 4)
        await stage.annotate(stage.instance_ref("a1"), rgd_revision="1")
        await publish(stage, 2, propagateWhen=EXPONENTIALLY)
        await until_all_on(stage, names[1:], 2)
        await stage.settled()
        assert await stamps(stage, names) == ["1", "2", "2", "2"]
        found = await stage.definition_now()
        assert condition(found, "Propagated") == ("True", "AllInstancesUpdated")


@check("RG-99")
async def test_a_new_instance_starts_on_the_current_revision_during_a_propagation(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=EXPONENTIALLY)
        names = await given_instances(stage, 3)
        await stage.redefine(config(2, gated=True), propagateWhen=EXPONENTIALLY)
        await stage.until_published(2)
        assert await reached(stage, names, 2) == ["a1"]

        await stage.given_instance("a9", settles=False)
        await stage.until_object("a9-cm", lambda obj: stamp(obj) == "2")
        await open_children(stage, ["a9"], 2)
        await stage.until_instance("a9", is_on(revision=2))
        assert await _inputs(stage, "a9") == [2]


@check("RG-100")
async def test_a_newer_revision_takes_over_a_propagation(stage: Stage) -> None:
    linearly = ["${linearlyUpdated(instances, each, 3)}"]
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=linearly)
        names = await given_instances(stage, 8)
        await stage.redefine(config(2, gated=True), propagateWhen=linearly)
        await stage.until_published(2)
        assert await reached(stage, names, 2) == names[:3]
        await open_children(stage, names[:1], 2)
        await stage.until_instance("a1", is_on(revision=2))

        await stage.redefine(config(3, gated=True), propagateWhen=linearly)
        await stage.until_published(3)
        assert await waves(stage, names, 3, 3) == [3, 3, 2]
        assert [await _inputs(stage, name) for name in names] == [[1, 2, 3]] * 3 + [[1, 3]] * 5
        found = await stage.until_definition(
            lambda obj: condition(obj, "Propagated") == ("True", "AllInstancesUpdated")
        )
        assert message(found, "Propagated") == "8/8 instances on revision 3"


@check("RG-101")
async def test_an_error_of_a_gate_lets_nobody_through_until_it_is_mended(stage: Stage) -> None:
    wrong = ["${instances[99].updated()}"]
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=wrong)
        names = await given_instances(stage, 3)
        await publish(stage, 2, propagateWhen=wrong)
        found = await stage.until_definition(
            lambda obj: condition(obj, "Propagated") == ("Unknown", "PropagateWhenError")
        )
        assert "99" in message(found, "Propagated")
        assert await reached(stage, names, 2) == []
        assert status(found)["state"] == "Active"

        await stage.edit(stage.definition_ref(), {"spec": {"propagateWhen": EXPONENTIALLY}})
        await until_all_on(stage, names, 2)
        await stage.until_definition(
            lambda obj: condition(obj, "Propagated") == ("True", "AllInstancesUpdated")
        )
        assert await stage.numbers() == [1, 2]


@check("RG-104")
async def test_a_restart_in_the_middle_of_a_propagation_skips_and_repeats_no_instance(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=EXPONENTIALLY)
        names = await given_instances(stage, 4)
        await stage.redefine(config(2, gated=True), propagateWhen=EXPONENTIALLY)
        await stage.until_published(2)
        await reached(stage, names, 2)
        await open_children(stage, ["a1"], 2)
        await stage.until_instance("a1", is_on(revision=2))
        assert await reached(stage, names, 2) == ["a1", "a2"]

        stage.journal.requests.clear()
        await stage.restart()
        assert await reached(stage, names, 2) == ["a1", "a2"]
        assert not stage.journal.written("ConfigMap")
        assert not stage.journal.written("ResourceGraphInputRevision")

        await open_children(stage, ["a2"], 2)
        assert await reached(stage, names, 2) == names
        await open_children(stage, names[2:], 2)
        await until_all_on(stage, names, 2)
        assert [await _inputs(stage, name) for name in names] == [[1, 2]] * 4


@check("RG-104")
async def test_crashes_in_a_propagation_repeat_no_instance(stage: Stage) -> None:
    keeping_all: Made = {"propagateWhen": EXPONENTIALLY, "revisionManagement": {"historyLimit": 100}}
    async with stage.running():
        await given_versions(stage, 1, **keeping_all)
        names = await given_instances(stage, 2)
    await stage.redefine(config(2), **keeping_all)
    for writes in (1, 2, 4, 6):
        assert await stage.crash(writes)
    async with stage.running():
        await until_all_on(stage, names, 2)
        assert [await _inputs(stage, name) for name in names] == [[1, 2]] * 2
        assert await stage.numbers() == [1, 2]


@check("RG-107")
async def test_a_settled_cluster_counts_every_instance_once(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 2)
        names = await given_instances(stage, 5)
        await stage.annotate(stage.instance_ref("a1"), rgd_revision="1")
        await stage.until_instance("a1", is_on(revision=1))
        await stage.annotate(stage.instance_ref("a2"), update_policy="Manual")
        await publish(stage, 3)
        await until_all_on(stage, names[2:], 3)
        await stage.client.delete(stage.instance_ref("a5"))
        await stage.until_gone(stage.instance_ref("a5"))
        await stage.edit_spec("a3", replicas=5)
        await stage.until_instance("a3", is_on(revision=3, input_revision=3))

        found = await until_counted(stage, (3, 2), (2, 1), (1, 1))
        await stage.settled()
        live = (await stage.client.list((f"{stage.group}/v1alpha1", "App"), stage.namespace)).items
        assert sum(one["instanceCount"] for one in status(found)["revisionHistory"]) == len(live) == 4
        revisions = await stage.revisions()
        assert sum(status(one)["instanceCount"] for one in revisions) == len(live)
        for one in live:
            said = status(one)
            assert said["propagation"]["resourcesAtTarget"] == said["propagation"]["totalResources"] == 1
            assert said["observedRGDRevision"] == said["currentRGDRevision"], meta.name(one)
            assert said["observedInputRevision"] == said["currentInputRevision"]


@check("RG-112")
async def test_a_gated_rollback_moves_in_waves_and_any_other_at_once(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(config(1, gated=True), propagateWhen=EXPONENTIALLY)
        names = [f"a{number}" for number in range(1, 9)]
        for name in names:
            await stage.given_instance(name, settles=False)
        for name in names:
            await stage.until_object(f"{name}-cm")
        await open_children(stage, names, 1)
        await until_all_on(stage, names, 1)
        await publish(stage, 2, propagateWhen=EXPONENTIALLY)
        await until_all_on(stage, names, 2)

        await close_children(stage, names, 1)
        await stage.annotate(stage.definition_ref(), rollback_to_revision="1", rollback_mode="Gated")
        await stage.until_published(3)
        assert await waves(stage, names, 3, 1) == [1, 1, 2, 4]
        (found,) = [one for one in await stage.revisions() if one["spec"]["revision"] == 3]
        assert meta.annotations(found)["kro.run/rollback-mode"] == "Gated"
        assert not meta.annotations(await stage.definition_now())

        await publish(stage, 4, config(2), propagateWhen=EXPONENTIALLY)
        await until_all_on(stage, names, 4)
        await close_children(stage, names, 1)
        await stage.annotate(stage.definition_ref(), rollback_to_revision="1")
        await stage.until_published(5)
        # None is ready, and all have moved.
        assert await reached(stage, names, 5) == names
        await open_children(stage, names, 1)
        await until_all_on(stage, names, 5)
