"""Conditions of objects that a set shows as its own, and a deployment as those of its latest revision."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.objects import conditions
from lamina.objects.types import Condition, Made, Obj, Ref
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import Stage, condition, has_condition, message
from tests.scenarios.objectset.widgets import served_widgets, widget

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHOWN = "my.org/Ready"
MAPPING = {"conditionMappings": [{"sourceType": "Ready", "destinationType": SHOWN}]}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def group(served: tuple[Client, Path]) -> AsyncIterator[str]:
    """The group of a kind with a status."""
    async with served_widgets(served[0]) as group:
        yield group


def mapped_phase(stage: Stage, made: Made, *others: Made) -> Made:
    """A phase whose first object has its condition Ready mapped."""
    phase = stage.phase("p1", made, *others)
    return {**phase, "objects": [{**phase["objects"][0], **MAPPING}, *phase["objects"][1:]]}


async def report(stage: Stage, ref: Ref, *reported: Condition) -> None:
    await stage.client.patch(ref, {"status": {"conditions": list(reported)}}, subresource="status")


def ready(status: str, reason: str = "Because", text: str = "as it is", **fields: int) -> Condition:
    made: Condition = {"type": "Ready", "status": status, "reason": reason, "message": text, **fields}  # type: ignore[typeddict-item]  # the generation is one of its fields
    return made


def shows(obj: Obj, status: str) -> bool:
    found = condition(obj, SHOWN)
    return found is not None and found[0] == status


@check("OS-38")
async def test_a_mapped_condition_follows_its_source_and_goes_with_it(stage: Stage, group: str) -> None:
    await check_mapping(stage, group)


async def check_mapping(stage: Stage, group: str) -> None:
    async with stage.running():
        await stage.given_deployment("web", mapped_phase(stage, widget(group, "w")), probed=False)
        await stage.until_rolled_out("web", 1)
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        first = (await stage.revisions("web"))[0]
        where = stage.set_ref("")._replace(name=first["metadata"]["name"])
        assert not has_condition(first, SHOWN)

        await report(stage, ref, ready("False", "Starting", "not yet"))
        await stage.until(where, lambda now: shows(now, "False"))
        found = await stage.until_deployment("web", lambda now: shows(now, "False"))
        shown = conditions.find(conditions.of(found), SHOWN)
        assert shown is not None
        assert (shown["reason"], shown["message"]) == ("Starting", "not yet")

        await report(stage, ref, ready("True"))
        await stage.until(where, lambda now: shows(now, "True"))
        await stage.until_deployment("web", lambda now: shows(now, "True"))

        await report(stage, ref)
        await stage.until(where, lambda now: not has_condition(now, SHOWN))
        await stage.until_deployment("web", lambda now: not has_condition(now, SHOWN))


@check("OS-38")
async def test_a_condition_of_an_older_generation_is_not_shown(stage: Stage, group: str) -> None:
    async with stage.running():
        await stage.given_set("v1", mapped_phase(stage, widget(group, "w")), probed=False)
        await stage.until_set("v1")
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        await report(stage, ref, ready("True", observedGeneration=1))
        await stage.until_set("v1", lambda now: shows(now, "True"))

        await stage.edit(ref, {"spec": {"edited": "yes"}})
        await stage.until_set("v1", lambda now: not has_condition(now, SHOWN))

        await report(stage, ref, ready("False", observedGeneration=2))
        await stage.until_set("v1", lambda now: shows(now, "False"))


@check("OS-38")
async def test_a_mapped_condition_is_kept_and_followed_while_the_set_is_paused(
    stage: Stage, group: str
) -> None:
    await check_mapping_while_paused(stage, group)


async def check_mapping_while_paused(stage: Stage, group: str) -> None:
    async with stage.running():
        await stage.given_deployment("web", mapped_phase(stage, widget(group, "w")), probed=False)
        await stage.until_rolled_out("web", 1)
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        await report(stage, ref, ready("True"))
        await stage.until_deployment("web", lambda now: shows(now, "True"))

        deployments, sets = stage.deployment_ref(""), stage.set_ref("")
        kinds = [(one.api_version, one.kind) for one in (deployments, sets)]
        async with stage.recording(*kinds) as record:
            await stage.edit(stage.deployment_ref("web"), {"spec": {"paused": True}})
            await stage.until_revisions(
                "web", lambda found: condition(found[0], "Paused") == ("True", "Paused")
            )
            await stage.settled()
            await record.caught_up()
        assert all(has_condition(one.obj, SHOWN) for one in record.changes)
        assert shows((await stage.revisions("web"))[0], "True")
        await stage.until_deployment(
            "web", lambda now: shows(now, "True") and condition(now, "Paused") == ("True", "Paused")
        )

        await report(stage, ref, ready("False"))
        await stage.until_deployment("web", lambda now: shows(now, "False"))


@check("OS-38")
async def test_only_the_condition_of_the_object_with_the_mapping_is_shown(stage: Stage, group: str) -> None:
    async with stage.running():
        named_alike = stage.config_map("w")
        await stage.given_set("v1", mapped_phase(stage, widget(group, "w"), named_alike), probed=False)
        await stage.until_set("v1")
        await report(stage, stage.object_ref("w", f"{group}/v1", "Widget"), ready("True"))

        await stage.until_set("v1", lambda now: shows(now, "True"))


@check("OS-38")
async def test_a_condition_without_a_reason_is_shown_all_the_same(stage: Stage, group: str) -> None:
    async with stage.running():
        await stage.given_set("v1", mapped_phase(stage, widget(group, "w")), probed=False)
        await stage.until_set("v1")
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        await stage.client.patch(
            ref, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, subresource="status"
        )

        found = await stage.until_set("v1", lambda now: shows(now, "True"))

        shown = conditions.find(conditions.of(found), SHOWN)
        assert shown is not None
        assert shown["reason"], "a condition has to have a reason"


@check("OS-38")
async def test_a_type_that_no_condition_can_have_is_reported(stage: Stage, group: str) -> None:
    phase = mapped_phase(stage, widget(group, "w"))
    mapping = {"sourceType": "Ready", "destinationType": "My.Org/Ready"}
    phase["objects"][0]["conditionMappings"] = [mapping]
    async with stage.running():
        await stage.given_set("v1", phase, probed=False)
        found = await stage.until_set("v1", lambda now: has_condition(now, "Available"))

        assert condition(found, "Available") == ("False", "PreflightError")
        assert "conditionMappings" in message(found, "Available")
