"""Definitions on a server that may have some already: ours are brought up to date, others' are left alone."""

import copy

import pytest

from lamina.embedded import EmbeddedCluster
from lamina.errors import SettingsError
from lamina.families.manifestwork.family import family
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.product import install
from lamina.settings import Settings

FAMILY = family()
SETS = "manifestworkreplicasets.work.open-cluster-management.io"


def original() -> Made:
    """Return a definition as the original has it, which keeps no revisions."""
    found = next(one for one in FAMILY.definitions() if meta.name(one) == SETS)
    theirs: Made = copy.deepcopy(dict(found))
    theirs["spec"]["versions"] = [one for one in theirs["spec"]["versions"] if one["storage"]]
    status = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for field in ("currentRevision", "updateRevision", "abortedTime", "collisionCount"):
        del status[field]
    return theirs


async def test_a_family_does_not_run_where_it_could_not_keep_its_records() -> None:
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        before = await client.create(original(), manager="clusteradm")

        with pytest.raises(SettingsError) as refused:
            await install(client, [FAMILY])

        assert str(refused.value).startswith(
            f"{SETS} was made by clusteradm and has no status.updateRevision, "
        )
        assert "--force-conflicts" in (refused.value.hint or "")
        after = await client.get(meta.ref(before))
        assert after["spec"] == before["spec"]


async def test_a_definition_of_somebody_elses_that_has_what_is_needed_is_left_alone() -> None:
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
