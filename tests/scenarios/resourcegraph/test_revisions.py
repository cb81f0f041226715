"""Revisions of a definition: when one is issued, what it records, which are kept, and what a crash leaves."""

import asyncio
from contextlib import suppress
from itertools import count

import pytest

from lamina.errors import Invalid, NotFound
from lamina.families.resourcegraph.hashes import revision_name
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    CONFIG,
    TIMEOUT,
    Predicate,
    Stage,
    condition,
    config_map,
    is_active,
    is_on,
    message,
    node,
    status,
)
from tests.scenarios.resourcegraph.versions import (
    MANUAL,
    config,
    given_instances,
    given_versions,
    publish,
    stamps,
    until_all_on,
    until_counted,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIXED = node("fixed", config_map("${schema.spec.name}-fixed", a="1"))


# What a revision records


@check("RG-63")
async def test_the_first_revision_records_the_content_of_the_definition(stage: Stage) -> None:
    async with stage.running():
        found = await stage.given_definition()
        (listed,) = await stage.revisions()
        revision = await stage.until(meta.ref(listed), lambda obj: "specHash" in status(obj))

        name = stage.named("app")
        assert meta.name(revision) == f"{name}-rev-1"
        assert revision["spec"] == {
            "revision": 1,
            "schema": found["spec"]["schema"],
            "resources": found["spec"]["resources"],
        }
        assert meta.metadata(revision)["ownerReferences"] == [
            {
                "apiVersion": "kro.run/v1alpha1",
                "kind": "ResourceGraphDefinition",
                "name": name,
                "uid": meta.uid(found),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert meta.labels(revision) == {"kro.run/rgd-name": name, "kro.run/revision-number": "1"}
        assert status(revision)["specHash"] == status(found)["currentRevisionHash"]
        assert status(revision)["createdAt"]
        assert status(revision)["superseded"] is False
        assert status(found)["currentRevision"] == status(found)["lastIssuedRevision"] == 1
        assert status(found)["currentRevisionName"] == meta.name(revision)


def _is_observed(generation: int) -> Predicate:
    return lambda obj: is_active(obj) and status(obj)["observedGeneration"] >= generation


@check("RG-64")
async def test_what_does_not_change_the_content_makes_no_revision(stage: Stage) -> None:
    ready = ["${config.data.replicas != ''}", "${size(config.data) > 0}"]
    first = {**CONFIG, "readyWhen": ready}
    # The default group: the kind needs a name that no other scenario has.
    kind = f"App{stage.id}"
    ref = stage.definition_ref()
    crd = Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", f"{kind.lower()}s.kro.run")
    made = stage.definition(first, FIXED, kind=kind)
    del made["spec"]["schema"]["group"]
    async with stage.running(Options(deletes_definitions=True)):
        await stage.client.create(made)
        before = await stage.until_published(1)

        schema = dict(reversed(before["spec"]["schema"].items()))
        backwards = {**first, "readyWhen": ready[::-1]}
        for spec in (
            {"schema": {**schema, "group": "kro.run"}},
            {"resources": [FIXED, dict(reversed(backwards.items()))]},
            {"revisionManagement": {"historyLimit": 3}},
            {"propagateWhen": ["${each.index < 3}"]},
        ):
            edited = await stage.edit(ref, {"spec": spec})
            await stage.until(ref, _is_observed(meta.generation(edited)))
        await stage.edit(ref, {"metadata": {"labels": {"team": "blue"}, "annotations": {"note": "x"}}})
        await stage.settled()

        after = await stage.client.get(ref)
        assert meta.generation(after) > meta.generation(before)
        assert await stage.numbers() == [1]
        assert status(after)["currentRevisionHash"] == status(before)["currentRevisionHash"]
        await stage.client.delete(ref)
        await stage.until_gone(crd)


@check("RG-65")
async def test_a_change_of_a_template_makes_a_revision_and_moves_the_instances(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        names = await given_instances(stage, 2)
        await publish(stage, 2)
        await until_all_on(stage, names, 2)

        assert await stamps(stage, names) == ["2", "2"]
        assert (await stage.until_object("a1-cm"))["data"]["version"] == "2"
        found = await until_counted(stage, (2, 2), (1, 0))
        assert [one["current"] for one in status(found)["revisionHistory"]] == [True, False]
        assert all(one["createdAt"] for one in status(found)["revisionHistory"])
        assert [status(one)["superseded"] for one in await stage.revisions()] == [True, False]


@check("RG-65")
async def test_a_field_that_a_revision_adds_is_used_at_once(stage: Stage) -> None:
    coloured = node("config", config_map("${schema.spec.name}-cm", color="${schema.spec.?color.orValue('')}"))
    async with stage.running():
        await stage.given_definition(FIXED, spec={"name": "string"})
        await stage.given_instance("a1")
        await publish(stage, 2, coloured, spec={"name": "string", "color": "string"})
        # For a second, a watch that began before shows objects without the field.
        await stage.edit_spec("a1", color="red")
        await stage.given_instance("a2", color="blue")
        await stage.until_object("a1-cm", lambda obj: obj["data"] == {"color": "red"})
        await stage.until_object("a2-cm", lambda obj: obj["data"] == {"color": "blue"})
        assert [one["spec"]["instanceSpec"].get("color") for one in await stage.input_revisions("a2")] == [
            "blue"
        ]


@check("RG-66")
async def test_an_invalid_edit_makes_no_revision_and_the_last_one_goes_on(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1")

        broken = await stage.redefine(node("config", config_map("${schema.spec.nope}")))
        assert "undefined field 'nope'" in await stage.until_refused()
        found = await stage.definition_now()
        assert condition(found, "GraphAccepted") == ("False", "InvalidResourceGraph")
        assert meta.generation(found) == meta.generation(broken)
        assert status(found)["state"] == "Inactive"
        for name in ("KindReady", "ControllerReady", "GraphRevisionsResolved"):
            assert (condition(found, name) or "")[0] == "True", name
        assert await stage.numbers() == [1]

        await stage.edit_spec("a1", replicas=5)
        await stage.until_instance("a1", is_on(revision=1, input_revision=2))
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "5"}

        await publish(stage, 2)
        await stage.until_instance("a1", is_on(revision=2))
        assert await stage.numbers() == [1, 2]


@check("RG-66")
@pytest.mark.parametrize(
    ("field", "said"),
    [
        ('string | validation="self.nope(1)"', "x-kubernetes-validations"),
        ("integer | default=0 minimum=1", "default"),
        ("[]Item | listType=map", "x-kubernetes-list-map-keys"),
    ],
)
async def test_a_schema_that_only_the_server_refuses_makes_no_revision(
    stage: Stage, field: str, said: str
) -> None:
    types = {"Item": {"key": "string"}}
    async with stage.running():
        text = await stage.refused_definition(
            FIXED, condition="KindReady", spec={"name": "string", "field": field}, schema={"types": types}
        )
        assert said in text, text
        assert await stage.numbers() == []
        assert await stage.get(stage.crd_ref()) is None

        await stage.redefine(FIXED, spec={"name": "string", "field": "string"})
        await stage.until_published(1)
        await stage.redefine(
            FIXED, spec={"name": "string", "field": "string", "added": field}, schema={"types": types}
        )
        assert said in await stage.until_refused("KindReady")
        assert await stage.numbers() == [1]
        await stage.given_instance("a1")


@check("RG-67")
async def test_a_return_to_older_content_is_a_revision_of_its_own(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 2)
        await publish(stage, 3, config(1))

        found = await stage.revisions()
        assert [one["spec"]["revision"] for one in found] == [1, 2, 3]
        first, second, third = [
            status(await stage.until(meta.ref(one), lambda obj: "specHash" in status(obj)))["specHash"]
            for one in found
        ]
        assert first == third != second


@check("RG-68")
async def test_a_revision_is_immutable(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition()
        (revision,) = await stage.revisions()
        edits: tuple[Made, ...] = ({"revision": 2}, {"resources": []}, {"schema": {"kind": "Other"}})
        for spec in edits:
            with pytest.raises(Invalid, match="spec is immutable"):
                await stage.edit(meta.ref(revision), {"spec": spec})


# Which are kept


@check("RG-69")
async def test_as_many_revisions_are_kept_as_the_limit_says(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 13)
        await _until_numbers(stage, *range(3, 14))
        await publish(stage, 14)
        await _until_numbers(stage, *range(4, 15))
        found = await stage.definition_now()
        assert [one["revision"] for one in status(found)["revisionHistory"]] == list(range(14, 3, -1))


@check("RG-70")
async def test_a_revision_that_an_instance_is_pinned_to_is_kept(stage: Stage) -> None:
    limited: Made = {"revisionManagement": {"historyLimit": 1}}
    async with stage.running():
        await given_versions(stage, 1, **limited)
        await stage.given_instance("a1", annotations={"kro.run/rgd-revision": "1"})
        for number in range(2, 10):
            await publish(stage, number, **limited)
        await _until_numbers(stage, 1, 8, 9)
        await stage.settled()
        assert await stage.numbers() == [1, 8, 9]

        await stage.annotate(stage.instance_ref("a1"), rgd_revision=None)
        await stage.until_instance("a1", is_on(revision=9))
        await _until_numbers(stage, 8, 9)


@check("RG-71")
async def test_without_a_history_only_the_current_revision_and_those_in_use_are_kept(stage: Stage) -> None:
    limited: Made = {"revisionManagement": {"historyLimit": 0}}
    async with stage.running():
        await given_versions(stage, 2, **limited)
        await _until_numbers(stage, 2)
        await stage.given_instance("a1", annotations={"kro.run/rgd-revision": "2"})
        await publish(stage, 3, **limited)
        await publish(stage, 4, **limited)
        await _until_numbers(stage, 2, 4)
        await stage.settled()
        assert await stage.numbers() == [2, 4]


async def _until_numbers(stage: Stage, *numbers: int) -> None:
    await eventually(stage.numbers, lambda found: found == list(numbers), seconds=TIMEOUT)


@check("RG-74")
async def test_a_revision_in_use_that_is_deleted_by_hand_stays_until_it_is_not_needed(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 1)
        await stage.given_instance("a1", annotations={"kro.run/rgd-revision": "1"})
        await publish(stage, 2)
        first, _ = await stage.revisions()
        await stage.client.delete(meta.ref(first))
        await stage.settled()
        assert meta.is_deleting(await stage.client.get(meta.ref(first)))

        await stage.edit_spec("a1", replicas=5)
        await stage.until_instance("a1", is_on(revision=1, input_revision=2))
        assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "5", "version": "1"}

        await stage.annotate(stage.instance_ref("a1"), rgd_revision=None)
        await stage.until_instance("a1", is_on(revision=2))
        await stage.until_gone(meta.ref(first))


# Crashes, other definitions, and names


@check("RG-72")
async def test_a_crash_between_any_two_writes_issues_no_revision_twice(stage: Stage) -> None:
    keeping_all = {"revisionManagement": {"historyLimit": 100}}
    async with stage.running():
        await given_versions(stage, 1, **keeping_all)
        await stage.given_instance("a1")
    number, between = 1, 0
    for writes in count():
        number += 1
        await stage.redefine(config(number), **keeping_all)
        crashed = await stage.crash(writes)
        found = await stage.definition_now()
        between += max(await stage.numbers()) == number > status(found)["currentRevision"]
        async with stage.running():
            await stage.until_published(number)
            await stage.until_instance("a1", is_on(revision=number))
        assert await stage.numbers() == list(range(1, number + 1))
        if not crashed:
            break
    assert between, "no crash was between the creation of a revision and the status"
    for one in await stage.revisions():
        assert one["spec"]["resources"][0]["template"]["data"]["version"] == str(one["spec"]["revision"])


@check("RG-73")
async def test_a_definition_that_is_created_again_adopts_orphans_and_goes_on_with_their_numbers(
    stage: Stage,
) -> None:
    async with stage.running():
        await given_versions(stage, 2)
        await stage.settled()
    # Orphans, as the garbage collector leaves them.
    for one in await stage.revisions():
        await stage.edit(meta.ref(one), {"metadata": {"ownerReferences": None}})
    await _delete(stage)
    async with stage.running():
        found = await stage.given_definition(config(3))
        assert status(found)["currentRevision"] == 3
        assert await stage.numbers() == [1, 2, 3]
        for one in await stage.revisions():
            assert meta.is_controlled_by(one, meta.uid(found))


@check("RG-73")
async def test_a_definition_that_is_created_again_without_revisions_starts_at_one(stage: Stage) -> None:
    async with stage.running():
        await given_versions(stage, 2)
        await stage.client.delete(stage.definition_ref())
        await stage.until_gone(stage.definition_ref())
        for one in await stage.revisions():
            # As the garbage collector does; that of a real server may have been quicker.
            with suppress(NotFound):
                await stage.client.delete(meta.ref(one))
            await stage.until_gone(meta.ref(one))
        found = await stage.given_definition(config(3))
        assert status(found)["currentRevision"] == status(found)["lastIssuedRevision"] == 1
        assert await stage.numbers() == [1]


async def _delete(stage: Stage) -> None:
    """Delete a definition that no controller holds."""
    ref = stage.definition_ref()
    await stage.edit(ref, {"metadata": {"finalizers": None}})
    await stage.client.delete(ref)
    await stage.until_gone(ref)


@check("RG-75")
async def test_a_definition_with_a_long_name_has_revisions_with_a_shortened_one(stage: Stage) -> None:
    name = "a" * (250 - len(stage.named("")))
    async with stage.running():
        found = await stage.given_definition(name=name)
        assert len(meta.name(found)) == 250
        (revision,) = await stage.revisions(name)
        assert meta.name(revision) == revision_name(meta.name(found), "rev", 1)
        assert len(meta.name(revision)) <= 253
        assert meta.name(revision).endswith("-rev-1")
        assert len(meta.labels(revision)["kro.run/rgd-name"]) == 63
        made = await stage.given_instance("a1")
        assert len(meta.labels(made)["kro.run/resource-graph-definition-name"]) == 63


# When one is issued


@check("RG-76")
async def test_a_breaking_edit_is_refused_unless_it_is_allowed(stage: Stage) -> None:
    narrow: Made = {"name": "string"}
    async with stage.running():
        await stage.given_definition()
        await stage.given_instance("a1", replicas=3)
        before = await stage.until_object("a1-cm")

        await stage.redefine(FIXED, spec=narrow)
        text = await stage.until_refused("KindReady")
        assert "breaking changes detected" in text
        assert "Property replicas was removed" in text
        assert condition(await stage.definition_now(), "KindReady") == ("False", "Failed")
        assert await stage.numbers() == [1]
        await stage.edit_spec("a1", replicas=4)
        await stage.until_instance("a1", is_on(revision=1, input_revision=2))
        after = await stage.until_object("a1-cm")
        assert (after["data"], meta.uid(after)) == ({"replicas": "4"}, meta.uid(before))

        await stage.annotate(stage.definition_ref(), allow_breaking_changes="true")
        await stage.until_published(2)
        await stage.until_instance("a1", is_on(revision=2))
        await stage.until(
            stage.crd_ref(),
            lambda obj: "replicas" not in _spec_fields(obj),
        )


def _spec_fields(crd: Made) -> Made:
    (version,) = crd["spec"]["versions"]
    found: Made = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


@check("RG-77")
async def test_a_manual_definition_publishes_an_edit_once_it_is_approved(stage: Stage) -> None:
    manual = {"revisionManagement": MANUAL}
    ref = stage.definition_ref()
    async with stage.running():
        await given_versions(stage, 1, **manual)
        await stage.given_instance("a1")
        edited = await stage.redefine(config(2), **manual)
        await stage.until_definition(_says("RevisionCurrent", "AwaitingApproval"))
        await stage.settled()
        assert condition(await stage.definition_now(), "GraphAccepted") == ("True", "Valid")
        assert await stage.numbers() == [1]
        assert await stamps(stage, ["a1"]) == ["1"]

        await stage.annotate(ref, create_revision=str(meta.generation(edited) + 7))
        found = await stage.until_definition(
            lambda obj: _says("RevisionCurrent", "StaleApproval")(obj) and not meta.annotations(obj)
        )
        assert f"generation {meta.generation(edited) + 7} was approved" in message(found, "RevisionCurrent")
        await stage.settled()
        assert await stage.numbers() == [1]

        await stage.annotate(ref, create_revision="true")
        await stage.until_published(2)
        await stage.until_instance("a1", is_on(revision=2))
        await stage.until_definition(lambda obj: not meta.annotations(obj))
        await stage.settled()
        assert await stage.numbers() == [1, 2]

        edited = await stage.redefine(config(3), **manual)
        await stage.annotate(ref, create_revision=str(meta.generation(edited)))
        await stage.until_published(3)
        await stage.until_definition(lambda obj: not meta.annotations(obj))


def _says(name: str, reason: str) -> Predicate:
    return lambda obj: (condition(obj, name) or ("", ""))[1] == reason


@check("RG-78")
async def test_a_restart_of_many_definitions_issues_no_revision(stage: Stage) -> None:
    # A real server needs long until it serves fifty new kinds.
    many, each = (50, 10) if chosen_server() == "embedded" else (10, 10)
    kinds = [f"App{number}" for number in range(many)]
    async with stage.running():
        await asyncio.gather(
            *(stage.client.create(stage.definition(name=kind.lower(), kind=kind)) for kind in kinds)
        )
        for kind in kinds:
            await stage.until_definition(name=kind.lower())
        for kind in kinds:
            await asyncio.gather(
                *(
                    stage.client.create(stage.instance(f"{kind.lower()}-{number}", kind=kind))
                    for number in range(each)
                )
            )
        for kind in kinds:
            await _until_all_active(stage, kind, each)
        await stage.settled()
    before = await _versions(stage)
    stage.journal.requests.clear()
    async with stage.running():
        await stage.settled()
        for kind in kinds:
            assert is_active(await stage.definition_now(kind.lower()))
            await _until_all_active(stage, kind, each)
    assert await _versions(stage) == before
    for kind in ("ResourceGraphDefinitionRevision", "ResourceGraphInputRevision", "ConfigMap"):
        assert not stage.journal.written(kind)


async def _until_all_active(stage: Stage, kind: str, number: int) -> None:
    version = stage.instance_ref("x", kind).api_version

    async def active() -> int:
        return sum(map(is_active, (await stage.client.list((version, kind), stage.namespace)).items))

    await eventually(active, lambda found: found == number, seconds=6 * TIMEOUT)


async def _versions(stage: Stage) -> list[tuple[str, str]]:
    """Return the revisions of the scenario with their versions."""
    found = (await stage.client.list(("kro.run/v1alpha1", "ResourceGraphDefinitionRevision"))).items
    return sorted((meta.name(one), meta.resource_version(one)) for one in found if stage.is_mine(one))
