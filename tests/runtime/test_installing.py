"""Definitions on a server that may have some already: ours are brought up to date, others' are left alone."""

import asyncio
import copy

import pytest

from lamina.clock import WallClock
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.control_plane.install import build_manager, install, without_lost_status
from lamina.errors import SettingsError
from lamina.families.manifestwork.family import family
from lamina.families.objectset import family as objectset
from lamina.families.objectset.labels import GROUP
from lamina.families.registry import agents
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.runtime.hooks.client import HookClient
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.unit.families.objectset.revisions import config_map, deployment, phase, template

FAMILY = family()
SETS = "manifestworkreplicasets.work.open-cluster-management.io"
RECORDS = "appliedmanifestworks.work.open-cluster-management.io"


def original() -> Made:
    """Return a definition as the original has it, which keeps no revisions."""
    found = next(one for one in FAMILY.definitions() if meta.name(one) == SETS)
    theirs: Made = copy.deepcopy(dict(found))
    theirs["spec"]["versions"] = [one for one in theirs["spec"]["versions"] if one["storage"]]
    status = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for field in ("currentRevision", "updateRevision", "abortedTime", "collisionCount"):
        del status[field]
    return theirs


async def test_an_agent_does_not_run_where_it_could_not_keep_its_records() -> None:
    provider = agents()
    (theirs,) = [copy.deepcopy(dict(one)) for one in provider.definitions() if meta.name(one) == RECORDS]
    for version in theirs["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["appliedResources"]
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        before = await client.create(theirs, manager="clusteradm")

        with pytest.raises(SettingsError) as refused:
            await install(client, [provider])

        assert str(refused.value).startswith(
            f"{RECORDS} was created by clusteradm and lacks status.appliedResources: "
        )
        assert "--force-conflicts" in (refused.value.hint or "")
        after = await client.get(meta.ref(before))
        assert after["spec"] == before["spec"]


async def test_a_hub_does_without_the_status_fields_of_another_definition() -> None:
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        before = await client.create(original(), manager="clusteradm")

        await install(client, [FAMILY])
        (found,) = await without_lost_status(client, [FAMILY])

        assert found != FAMILY
        after = await client.get(meta.ref(before))
        assert after["spec"] == before["spec"]


async def test_a_definition_of_another_manager_that_has_what_is_needed_is_not_changed() -> None:
    whole = next(one for one in FAMILY.definitions() if meta.name(one) == SETS)
    theirs: Made = copy.deepcopy(dict(whole))
    theirs["spec"]["versions"] = [one for one in theirs["spec"]["versions"] if one["storage"]]
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        before = await client.create(theirs, manager="kubectl")

        await install(client, [FAMILY])

        after = await client.get(meta.ref(before))
        assert after["spec"] == before["spec"]
        assert (await client.discover()).find("cluster.open-cluster-management.io/v1beta1", "Placement")


async def test_a_definition_of_ours_is_brought_up_to_date() -> None:
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        await client.apply(original(), manager="lamina")

        await install(client, [FAMILY])

        after = await client.get(meta.ref(original()))
        assert [one["name"] for one in after["spec"]["versions"]] == ["v1alpha1", "v1"]


NEW_FIELDS = {
    "objectdeployments": "spec.template.spec.collisionProtection, spec.progressDeadlineSeconds",
    "clusterobjectdeployments": "spec.template.spec.collisionProtection, spec.progressDeadlineSeconds",
    "objectsets": "spec.previous[].kind, spec.previous[].group, spec.collisionProtection, spec.progressDeadlineSeconds",
    "clusterobjectsets": "spec.previous[].kind, spec.previous[].group, spec.collisionProtection, spec.progressDeadlineSeconds",
    "objectsetphases": "spec.previous[].kind, spec.previous[].group",
    "clusterobjectsetphases": "spec.previous[].kind, spec.previous[].group",
}
"""What the definitions of Package Operator lack."""


def without_new_fields(schema: Made) -> Made:
    """Return a schema as Package Operator has it; the rules about fields that it does not have are not there, either."""
    left = {name: value for name, value in schema.items() if name != "x-kubernetes-validations"}
    if rules := [
        one
        for one in schema.get("x-kubernetes-validations") or ()
        if "collisionProtection" not in one["rule"]
    ]:
        left["x-kubernetes-validations"] = rules
    if isinstance(inner := schema.get("items"), dict):
        left["items"] = without_new_fields(inner)
    fields = schema.get("properties") or {}
    if fields:
        unknown = {"progressDeadlineSeconds"}
        unknown |= {"collisionProtection"} if "object" not in fields else set()
        unknown |= {"kind", "group"} if fields.keys() == {"name", "kind", "group"} else set()
        left["properties"] = {
            name: without_new_fields(value) for name, value in fields.items() if name not in unknown
        }
    return left


async def test_the_definitions_of_package_operator_are_kept_and_what_they_prune_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    revisions = objectset.family()
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        for one in revisions.definitions():
            theirs: Made = copy.deepcopy(dict(one))
            for version in theirs["spec"]["versions"]:
                version["schema"]["openAPIV3Schema"] = without_new_fields(
                    version["schema"]["openAPIV3Schema"]
                )
            await client.create(theirs, manager="package-operator-manager")

        capsys.readouterr()
        await install(client, [revisions])

        logged = capsys.readouterr().err
        for plural, fields in NEW_FIELDS.items():
            kept = f"{plural}.{GROUP} is managed by package-operator-manager and is not updated"
            assert f'"{kept}; fields that it does not declare are pruned: {fields}"' in logged
        assert logged.count("level=warning") == len(NEW_FIELDS)
        web = deployment("web", template(phase("p1", config_map("cm"))), progressDeadlineSeconds=60)
        stored = await client.create(web)
        assert "progressDeadlineSeconds" not in stored["spec"]
        manager = build_manager(client, [revisions], WallClock(), HookClient())
        running = asyncio.create_task(manager.run())
        try:
            await manager.ready()
            await eventually(
                lambda: client.get(meta.ref(stored)),
                lambda now: (
                    (now.get("status") or {}).get("revision") == 1
                    and conditions.is_true(conditions.of(now), "Available")
                ),
            )
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
