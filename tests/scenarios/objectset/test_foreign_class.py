"""Phases of a class that a controller outside of Lamina serves: only their status is read."""

import pytest

from lamina.families.objectset.labels import PHASE_CLASS
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    has_condition,
    is_archived,
    message,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def given_foreign_phase(stage: Stage) -> Made:
    """A set with a phase of another class, after which comes one without a class; returns the ObjectSetPhase."""
    foreign = {**stage.phase("p1", stage.config_map("cm-a")), "class": "other"}
    await stage.given_set("v1", foreign, stage.phase("p2", stage.config_map("cm-b")))
    return await stage.until(stage.phase_ref("v1", "p1"), bool)


def reported(obj: Obj, name: str, status: str, text: str = "as it is", generation: int = 0) -> Made:
    return {
        "type": name,
        "status": status,
        "reason": "Reported",
        "message": text,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": generation or meta.generation(obj),
    }


async def report(stage: Stage, *found: Obj, **fields: object) -> None:
    """Write the status of the ObjectSetPhase, as its controller does."""
    status = {"conditions": list(found), **fields}
    await stage.client.patch(stage.phase_ref("v1", "p1"), {"status": status}, subresource="status")


@check("OS-46")
async def test_the_next_phase_waits_until_a_foreign_controller_reports(stage: Stage) -> None:
    async with stage.running():
        phase = await given_foreign_phase(stage)
        assert meta.labels(phase)[PHASE_CLASS] == "other"
        assert [one["object"]["metadata"]["name"] for one in phase["spec"]["objects"]] == ["cm-a"]
        found = await stage.until_set("v1", lambda now: "no status reported" in message(now, "Available"))
        await stage.settled()
        assert condition(found, "Available") == ("False", "ProbeFailure")
        assert 'Phase "p1"' in message(found, "Available")
        assert await stage.listed(("v1", "ConfigMap")) == []
        assert meta.finalizers(phase) == meta.finalizers(await stage.client.get(meta.ref(phase))) == ()

        await report(stage, reported(phase, "Available", "True", generation=7))
        await stage.settled()
        found = await stage.set("v1")
        assert "no status reported" in message(found, "Available"), "it is about another generation"

        await report(stage, reported(phase, "Available", "False", "still working"))
        await stage.until_set("v1", lambda now: "still working" in message(now, "Available"))
        assert await stage.object("cm-b") is None

        held = {"kind": "ConfigMap", "group": "", "name": "cm-a", "namespace": stage.namespace, "version": ""}
        await report(
            stage,
            reported(phase, "Available", "True"),
            reported(phase, "my.org/Ready", "True"),
            controllerOf=[held],
        )
        found = await stage.until_set("v1")

        assert await stage.object("cm-b") is not None
        assert controlled(found) == ["cm-a", "cm-b"]
        assert condition(found, "my.org/Ready") == ("True", "Reported")


@check("OS-46")
async def test_a_foreign_phase_is_paused_and_deleted_with_its_set(stage: Stage) -> None:
    async with stage.running():
        phase = await given_foreign_phase(stage)
        await stage.edit(meta.ref(phase), {"metadata": {"finalizers": ["example.com/held"]}})
        await report(stage, reported(phase, "Available", "True"))
        await stage.until_object("cm-b")
        await stage.set_state("v1", "Paused")
        paused = await stage.until(meta.ref(phase), lambda now: now["spec"].get("paused") is True)
        await stage.until_set("v1", lambda now: condition(now, "Paused") == ("Unknown", "PartiallyPaused"))
        await report(stage, reported(paused, "Available", "True"), reported(paused, "Paused", "True"))
        await stage.until_set("v1", lambda now: condition(now, "Paused") == ("True", "Paused"))

        await stage.set_state("v1", "Archived")
        await stage.until(meta.ref(phase), meta.is_deleting)
        found = await stage.until_set("v1", lambda now: has_condition(now, "Archived"))
        await stage.settled()
        assert condition(found, "Archived") == ("False", "ArchivalInProgress")
        assert await stage.object("cm-b") is None, "the last phase goes first"

        await stage.edit(meta.ref(phase), {"metadata": {"finalizers": None}})
        await stage.until_set("v1", is_archived)


@check("OS-46")
async def test_a_class_that_no_controller_serves_is_named_with_the_remedy(stage: Stage) -> None:
    async with stage.running():
        await given_foreign_phase(stage)
        found = await stage.until_set("v1", lambda now: has_condition(now, "Available"))
        told = message(found, "Available")
        assert 'class "other"' in told
        assert "check that" in told

        stage.pass_time(35)
        found = await stage.until_set(
            "v1", lambda now: condition(now, "Available") == ("False", "PreflightError")
        )

        told = message(found, "Available")
        assert "spec.phases" in told
        assert "no status reported" in told
        assert await stage.listed(("v1", "ConfigMap")) == []
