"""Pins and update policies: which revision of its definition an instance is rendered with."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    Stage,
    condition,
    config_map,
    is_on,
    message,
    node,
    status,
)
from tests.scenarios.resourcegraph.versions import (
    given_instances,
    given_versions,
    history,
    publish,
    stamp,
    stamps,
    until_all_on,
    until_counted,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME: Made = {"name": "string"}
COLOURED = node("config", config_map("${schema.spec.name}-cm", color="${schema.spec.color}"))
PLAIN = node("config", config_map("${schema.spec.name}-cm", color="none"))


@check("RG-89")
async def test_a_pinned_instance_stays_on_its_revision_and_follows_its_own_spec(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        names = await given_instances(stage, 3)
        await stage.annotate(stage.instance_ref("a1"), rgd_revision="1")
        await stage.settled()
        before = await stage.until_object("a1-cm")
        await publish(stage, 2)
        await until_all_on(stage, names[1:], 2)
        await stage.settled()
        assert await stage.until_object("a1-cm") == before
        await until_counted(stage, (2, 2), (1, 1))

        await stage.edit_spec("a1", replicas=5)
        found = await stage.until_instance("a1", is_on(revision=1, input_revision=2))
        assert history(found) == [(2, 1, "Completed"), (1, 1, "Superseded")]
        after = await stage.until_object("a1-cm")
        assert (after["data"], stamp(after)) == ({"replicas": "5", "version": "1"}, "1")
        newest = (await stage.input_revisions("a1"))[-1]
        assert (newest["spec"]["rgdRevision"], newest["spec"]["instanceSpec"]["replicas"]) == (1, 5)


@check("RG-90")
@pytest.mark.parametrize(("pin", "reason"), [("99", "PinnedRevisionNotFound"), ("x", "InvalidPin")])
async def test_a_pin_to_no_revision_changes_nothing_until_it_is_removed(
    stage: Stage, pin: str, reason: str
) -> None:
    def is_refused(obj: Made) -> bool:
        return condition(obj, "RevisionResolved") == ("False", reason)

    async with stage.running():
        await given_versions(stage, 2)
        await stage.given_instance("a1")
        await stage.settled()
        before = await stage.until_object("a1-cm")
        await stage.annotate(stage.instance_ref("a1"), rgd_revision=pin)
        await stage.given_instance("a2", settles=False, annotations={"kro.run/rgd-revision": pin})
        for name in ("a1", "a2"):
            found = await stage.until_instance(name, is_refused)
            assert "available: 1, 2" in message(found, "RevisionResolved")
            assert status(found)["state"] == "ERROR"
            assert status(found)["propagation"]["status"] == "Blocked"
            assert condition(found, "GraphResolved") == ("False", "ResolutionFailed")
        await stage.settled()
        assert await stage.until_object("a1-cm") == before
        assert await stage.object("a2-cm") is None
        assert not await stage.input_revisions("a2")

        for name in ("a1", "a2"):
            await stage.annotate(stage.instance_ref(name), rgd_revision=None)
            found = await stage.until_instance(name, is_on(revision=2))
            assert condition(found, "RevisionResolved") == ("True", "Resolved")
            assert stamp(await stage.until_object(f"{name}-cm")) == "2"


@check("RG-90")
async def test_a_pin_to_a_revision_that_appears_later_takes_effect(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        await stage.given_instance("a1", settles=False, annotations={"kro.run/rgd-revision": "2"})
        await stage.until_instance(
            "a1", lambda obj: condition(obj, "RevisionResolved") == ("False", "PinnedRevisionNotFound")
        )
        await publish(stage, 2)
        await publish(stage, 3)
        await stage.until_instance("a1", is_on(revision=2))


@check("RG-91")
async def test_a_pinned_instance_keeps_a_field_that_a_newer_revision_lacks(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(COLOURED, spec={**NAME, "color": "string"})
        await stage.given_instance("a1", color="red", annotations={"kro.run/rgd-revision": "1"})
        await stage.given_instance("a2", color="green")
        await stage.annotate(stage.definition_ref(), allow_breaking_changes="true")
        await publish(stage, 2, PLAIN, spec=NAME)
        await stage.until_instance("a2", is_on(revision=2))
        assert (await stage.until_object("a2-cm"))["data"] == {"color": "none"}

        await stage.edit_spec("a1", color="blue")
        found = await stage.until_instance("a1", is_on(revision=1, input_revision=2))
        assert found["spec"]["color"] == "blue"
        assert (await stage.until_object("a1-cm"))["data"] == {"color": "blue"}
        before = await stage.input_revisions("a2")
        await stage.edit_spec("a2", color="yellow")
        await stage.settled()
        assert [meta.name(one) for one in await stage.input_revisions("a2")] == list(map(meta.name, before))
        assert (await stage.until_object("a2-cm"))["data"] == {"color": "none"}


@check("RG-91")
async def test_a_default_of_a_newer_revision_does_not_reach_a_pinned_instance(stage: Stage) -> None:
    def sized(default: str) -> Made:
        return {**NAME, "size": f"integer{default}"}

    shown = node(
        "config", config_map("${schema.spec.name}-cm", size="${string(schema.spec.?size.orValue(0))}")
    )
    async with stage.running():
        await stage.given_definition(shown, spec=sized(""))
        await stage.given_instance("a1", annotations={"kro.run/rgd-revision": "1"})
        await publish(stage, 2, shown, spec=sized(" | default=7"))
        await stage.given_instance("a2")
        assert (await stage.until_object("a2-cm"))["data"] == {"size": "7"}
        await stage.annotate(stage.instance_ref("a1"), note="x")
        await stage.given_instance("a3", annotations={"kro.run/rgd-revision": "1"})
        await stage.settled()
        assert [(await stage.until_object(f"{name}-cm"))["data"] for name in ("a1", "a3")] == [
            {"size": "0"}
        ] * 2
        assert len(await stage.input_revisions("a1")) == 1


@check("RG-92")
async def test_a_manual_instance_moves_when_a_revision_is_accepted(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        made = await stage.given_instance("a1", annotations={"kro.run/update-policy": "Manual"})
        await publish(stage, 2)
        found = await stage.until_instance(
            "a1", lambda obj: status(obj)["propagation"].get("pendingRGDRevision") == 2
        )
        assert status(found)["currentRGDRevision"] == 1
        assert await stamps(stage, ["a1"]) == ["1"]

        await stage.edit_spec("a1", replicas=5)
        found = await stage.until_instance("a1", is_on(revision=1, input_revision=2))
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "5", "version": "1"}
        assert status(found)["propagation"]["pendingRGDRevision"] == 2

        await stage.annotate(meta.ref(made), accept_rgd_revision="latest")
        found = await stage.until_instance(
            "a1",
            lambda obj: is_on(revision=2)(obj) and "kro.run/accept-rgd-revision" not in meta.annotations(obj),
        )
        assert "pendingRGDRevision" not in status(found)["propagation"]
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "5", "version": "2"}
        await publish(stage, 3)
        await stage.settled()
        assert await stamps(stage, ["a1"]) == ["2"]


@check("RG-93")
async def test_a_paused_instance_applies_nothing_new_and_corrects_what_others_change(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        made = await stage.given_instance("a1")
        await stage.annotate(meta.ref(made), update_policy="Paused")
        await stage.edit_spec("a1", replicas=5)
        await publish(stage, 2)
        found = await stage.until_instance(
            "a1", lambda obj: status(obj)["propagation"]["status"] == "Blocked"
        )
        await stage.settled()
        old = {"replicas": "1", "version": "1"}
        child = await stage.until_object("a1-cm")
        assert (child["data"], stamp(child), stamp(child, "input-revision")) == (old, "1", "1")
        assert "Paused" in status(found)["propagation"]["message"]
        pending = (await stage.input_revisions("a1"))[-1]
        assert (pending["spec"]["inputRevision"], pending["spec"]["instanceSpec"]["replicas"]) == (2, 5)
        assert status(pending)["propagationStatus"] == "Pending"

        await stage.edit(meta.ref(child), {"data": {"replicas": "9"}})
        await stage.until_object("a1-cm", lambda obj: obj["data"] == old)
        await stage.client.delete(meta.ref(child))
        await stage.until_object("a1-cm", lambda obj: meta.uid(obj) != meta.uid(child) and obj["data"] == old)
        await stage.settled()

        stage.journal.requests.clear()
        await stage.annotate(meta.ref(made), update_policy="Auto")
        await stage.until_instance("a1", is_on(revision=2))
        await stage.settled()
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "5", "version": "2"}
        assert len(stage.journal.written("ConfigMap")) == 1


@check("RG-94")
async def test_an_unknown_update_policy_is_reported_and_taken_as_manual(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        made = await stage.given_instance("a1")
        await stage.annotate(meta.ref(made), update_policy="foo")
        found = await stage.until_instance(
            "a1", lambda obj: condition(obj, "RevisionResolved") == ("False", "InvalidUpdatePolicy")
        )
        assert '"foo"' in message(found, "RevisionResolved")
        await publish(stage, 2)
        await stage.until_instance(
            "a1", lambda obj: status(obj)["propagation"].get("pendingRGDRevision") == 2
        )
        await stage.settled()
        assert await stamps(stage, ["a1"]) == ["1"]
        await stage.edit_spec("a1", replicas=5)
        await stage.until_object("a1-cm", lambda obj: obj["data"] == {"replicas": "5", "version": "1"})

        await stage.annotate(meta.ref(made), accept_rgd_revision="2")
        await stage.until_object("a1-cm", lambda obj: obj["data"] == {"replicas": "5", "version": "2"})
        found = await stage.until_instance(
            "a1", lambda obj: "kro.run/accept-rgd-revision" not in meta.annotations(obj)
        )
