"""Rollback of definitions and of instances: what it restores, what it is refused for, and what it leaves alone."""

import asyncio
from typing import Any

import pytest

from lamina.errors import Conflict
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    CONFIG,
    Predicate,
    Stage,
    config_map,
    is_active,
    is_on,
    message,
    node,
    status,
)
from tests.scenarios.resourcegraph.versions import (
    EXPONENTIALLY,
    config,
    given_instances,
    given_versions,
    history,
    publish,
    reached,
    stamp,
    stamps,
    until_all_on,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALLOWED = {"kro.run/allow-breaking-changes": "true"}
NAME: Made = {"name": "string"}
COLOURED = node("config", config_map("${schema.spec.name}-cm", color="${schema.spec.?color.orValue('')}"))
PLAIN = node("config", config_map("${schema.spec.name}-cm", a="1"))


def rolled_back(obj: Obj) -> tuple[str, str] | None:
    """Return the result of the last rollback; it is about the generation that asked for it."""
    found = conditions.find(conditions.of(obj), "RollbackSucceeded")
    return (found["status"], found.get("reason", "")) if found is not None else None


async def roll_back(stage: Stage, ref: Ref, to: object, **annotations: str) -> Made:
    """Ask for a rollback, and return the object once the annotations are gone and the result is reported."""
    name = "rollback_to_revision" if ref.kind == "ResourceGraphDefinition" else "rollback_to_input_revision"
    before = await stage.annotate(ref, **{name: str(to), **annotations})

    def has_ended(obj: Made) -> bool:
        asked = [key for key in meta.annotations(obj) if key.startswith("kro.run/rollback-")]
        found = rolled_back(obj)
        return not asked and found is not None and found[0] != "Unknown"

    assert meta.annotations(before)
    return await stage.until(ref, has_ended)


# Of a definition


@check("RG-79")
async def test_a_rollback_publishes_old_content_as_a_new_revision(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 3)
        names = await given_instances(stage, 2)
        await stage.annotate(stage.definition_ref(), rollback_to_revision="2")
        found = await stage.until_published(4)
        await until_all_on(stage, names, 4)

        _, second, _, fourth = await stage.revisions()
        assert {key: found["spec"][key] for key in ("schema", "resources")} == {
            key: second["spec"][key] for key in ("schema", "resources")
        }
        assert fourth["spec"] == {**second["spec"], "revision": 4}
        assert meta.annotations(fourth)["kro.run/content-from-revision"] == "2"
        found = await stage.until_definition(lambda obj: not meta.annotations(obj) and is_active(obj))
        assert rolled_back(found) == ("True", "RolledBack")
        assert message(found, "RollbackSucceeded") == "Created revision 4 (content from revision 2)"
        assert [(one["revision"], one["current"]) for one in status(found)["revisionHistory"]] == [
            (4, True),
            (3, False),
            (2, False),
            (1, False),
        ]
        assert await stamps(stage, names) == ["4", "4"]
        assert (await stage.until_object("a1-cm"))["data"]["version"] == "2"


def _has_ended_with(said: str) -> Predicate:
    return lambda obj: said in message(obj, "RollbackSucceeded") and not meta.annotations(obj)


@check("RG-80")
async def test_a_rollback_to_no_revision_is_refused_and_changes_nothing(stage: Stage) -> None:
    ref = stage.definition_ref()
    async with stage.running():
        await given_versions(stage, 2)
        names = await given_instances(stage, 1)
        await stage.settled()
        before, child = await stage.client.get(ref), await stage.until_object("a1-cm")
        for value, reason in {
            "99": "RevisionNotFound",
            "0": "InvalidRevision",
            "-1": "InvalidRevision",
            "abc": "InvalidRevision",
            "": "InvalidRevision",
        }.items():
            await stage.annotate(ref, rollback_to_revision=value)
            said = "there is no revision 99" if value == "99" else f'got "{value}"'
            found = await stage.until_definition(_has_ended_with(said))
            assert rolled_back(found) == ("False", reason), value
            assert meta.generation(found) == meta.generation(before)
            assert is_active(found)
        await stage.settled()
        assert await stage.numbers() == [1, 2]
        assert await stage.until_object("a1-cm") == child
        assert await stamps(stage, names) == ["2"]


@check("RG-81")
async def test_a_rollback_to_the_current_revision_issues_none_and_reverts_an_edit(stage: Stage) -> None:
    ref = stage.definition_ref()
    async with stage.running():
        await given_versions(stage, 2)
        found = await roll_back(stage, ref, 2)
        assert rolled_back(found) == ("True", "NoChange")
        before = found["spec"]

        await stage.redefine(node("config", config_map("${schema.spec.nope}")))
        await stage.until_refused()
        await roll_back(stage, ref, 2)
        found = await stage.until_definition()
        assert found["spec"] == before
        assert rolled_back(found) == ("True", "NoChange")
        await stage.settled()
        assert await stage.numbers() == [1, 2]


@check("RG-82")
async def test_a_rollback_past_a_field_keeps_it_for_those_that_need_it(stage: Stage) -> None:
    coloured = {**NAME, "color": "string"}
    async with stage.running():
        await stage.given_definition(PLAIN, spec=NAME)
        second = node("config", config_map("${schema.spec.name}-cm", a="2"))
        await publish(stage, 2, second, spec=NAME)
        await publish(stage, 3, COLOURED, spec=coloured)
        await stage.given_instance("a1", color="red")
        await stage.given_instance("a2", color="blue", annotations={"kro.run/rgd-revision": "3"})
        assert (await stage.until_object("a1-cm"))["data"] == {"color": "red"}

        await stage.annotate(stage.definition_ref(), rollback_to_revision="2")
        found = await stage.until_published(4)
        assert rolled_back(found) == ("True", "RolledBack")
        assert not meta.annotations(found).get("kro.run/allow-breaking-changes")
        await stage.until_instance("a1", is_on(revision=4))
        assert (await stage.until_object("a1-cm"))["data"] == {"a": "2"}
        await stage.settled()
        assert "color" in await _served_fields(stage)
        pinned = await stage.instance_now("a2")
        assert (pinned["spec"]["color"], status(pinned)["currentRGDRevision"]) == ("blue", 3)
        assert (await stage.until_object("a2-cm"))["data"] == {"color": "blue"}

        await stage.annotate(stage.instance_ref("a2"), rgd_revision=None)
        await stage.until_instance("a2", is_on(revision=4))
        await stage.until(stage.crd_ref(), lambda crd: "color" not in _fields(crd))


def _fields(crd: Obj) -> Any:
    (version,) = crd["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


async def _served_fields(stage: Stage) -> Any:
    return _fields(await stage.client.get(stage.crd_ref()))


@check("RG-83")
async def test_a_rollback_past_a_changed_type_is_refused(stage: Stage) -> None:
    ref = stage.definition_ref()
    async with stage.running():
        await stage.given_definition(PLAIN, spec={**NAME, "size": "integer"})
        await publish(stage, 2, COLOURED, spec={**NAME, "size": "integer", "color": "string"})
        await stage.annotate(ref, allow_breaking_changes="true")
        await publish(stage, 3, PLAIN, spec={**NAME, "size": "string", "color": "string"})
        await stage.annotate(ref, allow_breaking_changes=None)
        await stage.given_instance("a1", size="3")
        await stage.settled()
        before, crd = await stage.client.get(ref), await stage.client.get(stage.crd_ref())

        found = await roll_back(stage, ref, 2)
        assert rolled_back(found) == ("False", "BreakingChange")
        assert "spec.size: type conflict" in message(found, "RollbackSucceeded")
        await stage.settled()
        assert (found["spec"], meta.generation(found)) == (before["spec"], meta.generation(before))
        assert await stage.numbers() == [1, 2, 3]
        assert (await stage.client.get(stage.crd_ref()))["spec"] == crd["spec"]
        assert is_on(revision=3)(await stage.instance_now("a1"))


@check("RG-84")
async def test_a_rollback_in_the_middle_of_a_propagation_reaches_all_instances(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1, propagateWhen=EXPONENTIALLY)
        names = await given_instances(stage, 4)
        before = {name: await stage.until_object(f"{name}-cm") for name in names}
        await stage.redefine(config(2, gated=True), propagateWhen=EXPONENTIALLY)
        assert await reached(stage, names, 2) == ["a1"]
        stage.journal.requests.clear()

        await stage.annotate(stage.definition_ref(), rollback_to_revision="1")
        await stage.until_published(3)
        await until_all_on(stage, names, 3)
        assert await reached(stage, names, 3) == names
        for name in names:
            after = await stage.until_object(f"{name}-cm")
            assert (meta.uid(after), after["data"]) == (meta.uid(before[name]), before[name]["data"])
        # One write each, which for those that never were on revision 2 changes the stamps alone.
        assert len(stage.journal.written("ConfigMap")) == len(names)
        for name in names[1:]:
            after = await stage.until_object(f"{name}-cm")
            changed = {
                key
                for key, value in meta.annotations(after).items()
                if meta.annotations(before[name])[key] != value
            }
            assert changed == {"kro.run/rgd-revision", "kro.run/input-revision"}
            assert meta.labels(after) == meta.labels(before[name])


@check("RG-85")
async def test_a_rollback_and_an_edit_at_once_end_in_one_content(stage: Stage) -> None:
    ref = stage.definition_ref()
    async with stage.running():
        await given_versions(stage, 2)
        await stage.given_instance("a1")
        last = 2
        for round in range(3):
            stale = await stage.client.get(ref)
            edit = stage.redefine(config(f"edit-{round}"))
            await asyncio.gather(stage.annotate(ref, rollback_to_revision="1"), edit)
            await stage.until_definition(lambda obj: not meta.annotations(obj))
            await stage.settled()
            # Of two writes that were decided on one version only the first is taken.
            with pytest.raises(Conflict):
                await stage.client.update(stale, manager="user")

            found = await stage.until_definition()
            assert meta.annotations(found) == {}
            revisions = await stage.revisions()
            current = revisions[-1]
            assert status(found)["currentRevision"] == current["spec"]["revision"] >= last
            assert current["spec"]["resources"] == found["spec"]["resources"]
            assert [one["spec"]["revision"] for one in revisions] == list(range(1, len(revisions) + 1))
            # A condition is about the current revision: where the edit has replaced the content that was restored,
            # before or after it was published, the edit is what is reported.
            results = ("True", "RolledBack"), ("True", "NoChange")
            is_restored = "kro.run/content-from-revision" in meta.annotations(current)
            assert rolled_back(found) in (results if is_restored else (None, *results))
            last = current["spec"]["revision"]
            await stage.until_instance("a1", is_on(revision=last))
            version = current["spec"]["resources"][0]["template"]["data"]["version"]
            assert (await stage.until_object("a1-cm"))["data"]["version"] == version


# Of an instance


@check("RG-86")
async def test_an_instance_is_rolled_back_to_an_older_input(stage: Stage) -> None:
    ref = None
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1", replicas=1)
        ref = stage.instance_ref("a1")
        await stage.edit_spec("a1", replicas=5)
        await stage.until_instance("a1", is_on(input_revision=2))

        await roll_back(stage, ref, 1)
        found = await stage.until_instance("a1", is_on(input_revision=3))
        assert found["spec"]["replicas"] == 1
        assert history(found) == [(3, 1, "Completed"), (2, 1, "Superseded"), (1, 1, "Superseded")]
        assert status(found)["propagation"]["status"] == "Completed"
        assert not [key for key in meta.annotations(found) if "rollback" in key]
        assert rolled_back(found) == ("True", "RolledBack")
        assert "kro.run/rgd-revision" not in meta.annotations(found)
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "1"}
        assert [status(one)["superseded"] for one in await stage.input_revisions("a1")] == [True, True, False]


@check("RG-87")
async def test_a_rollback_of_an_instance_restores_the_pair_or_the_spec_alone(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        names = await given_instances(stage, 2, replicas=1)
        await publish(stage, 2)
        await until_all_on(stage, names, 2)
        for name in names:
            await stage.edit_spec(name, replicas=5)
            await stage.until_instance(name, is_on(input_revision=3))

        await roll_back(stage, stage.instance_ref("a1"), 1)
        found = await stage.until_instance("a1", is_on(revision=1, input_revision=4))
        assert found["spec"]["replicas"] == 1
        assert meta.annotations(found)["kro.run/rgd-revision"] == "1"
        child = await stage.until_object("a1-cm")
        assert (stamp(child), child["data"]) == ("1", {"replicas": "1", "version": "1"})

        await roll_back(stage, stage.instance_ref("a2"), 1, rollback_scope="spec")
        found = await stage.until_instance("a2", is_on(revision=2, input_revision=4))
        assert found["spec"]["replicas"] == 1
        assert "kro.run/rgd-revision" not in meta.annotations(found)
        child = await stage.until_object("a2-cm")
        assert (stamp(child), child["data"]) == ("2", {"replicas": "1", "version": "2"})


async def _refused(stage: Stage, to: object, **annotations: str) -> tuple[str, str]:
    """Ask for a rollback of a1 that is refused, and return the reason and the message."""
    ref = stage.instance_ref("a1")
    before = await stage.client.get(ref)
    found = await roll_back(stage, ref, to, **annotations)
    verdict = rolled_back(found)
    assert verdict is not None and verdict[0] == "False"
    assert (found["spec"], meta.generation(found)) == (before["spec"], meta.generation(before))
    assert meta.annotations(found).get("kro.run/rgd-revision") is None
    return verdict[1], message(found, "RollbackSucceeded")


@check("RG-88")
async def test_a_rollback_of_an_instance_to_what_is_missing_is_refused(stage: Stage) -> None:
    limited: Made = {"revisionManagement": {"historyLimit": 1}}
    async with stage.running():
        await given_versions(stage, 1, **limited)
        made = await stage.given_instance("a1", annotations={"kro.run/update-policy": "Manual"})
        for number in (2, 3):
            await publish(stage, number, **limited)
        await stage.annotate(meta.ref(made), accept_rgd_revision="latest")
        await stage.until_instance("a1", is_on(revision=3, input_revision=2))
        await stage.annotate(meta.ref(made), update_policy=None)
        (first, *_) = await stage.revisions()
        if first["spec"]["revision"] == 1:
            await stage.until_gone(meta.ref(first))

        assert (await _refused(stage, "abc"))[0] == "InvalidRevision"
        reason, text = await _refused(stage, 99)
        assert (reason, "available: 1, 2" in text) == ("InputRevisionNotFound", True), text
        reason, text = await _refused(stage, 1)
        assert (reason, "RGD revision 1 of input revision 1" in text) == ("RGDRevisionPruned", True), text
        await stage.settled()
        assert len(await stage.input_revisions("a1")) == 2


@check("RG-88")
async def test_a_rollback_of_an_instance_that_the_server_refuses_is_reported(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(CONFIG, spec={**NAME, "replicas": "integer | default=1", "id": "string"})
        await stage.given_instance("a1", id="x")
        await stage.edit_spec("a1", id="y")
        await stage.until_instance("a1", is_on(input_revision=2))
        await stage.annotate(stage.definition_ref(), allow_breaking_changes="true")
        fixed = {**NAME, "replicas": "integer | default=1", "id": "string | immutable=true"}
        await publish(stage, 2, CONFIG, spec=fixed)
        await stage.until_instance("a1", is_on(revision=2))

        reason, text = await _refused(stage, 1)
        assert (reason, "field is immutable" in text) == ("SpecRejected", True), text
        assert (await stage.instance_now("a1"))["spec"]["id"] == "y"
