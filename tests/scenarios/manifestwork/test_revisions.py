"""What is kept of templates: which revisions there are, what they are called, and how long they stay."""

from typing import Any

import pytest

from lamina.core.rollout.revision_object import CONTROLLER_REVISION_VERSION
from lamina.families.manifestwork.labels import HASH, OWNER, WORK_VERSION
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.stage import Stage, progressive
from tests.unit.families.manifestwork.fleet import OK1, OK2, OK3, all_at_once, template

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MW-1")
async def test_a_new_replica_set_has_one_revision(stage: Stage) -> None:
    async with stage.running():
        app = await stage.given(OK1, 2)
        now = await stage.until_done()

    (kept,) = now.revisions
    assert meta.name(kept) == f"app-{now.update}"
    assert kept["revision"] == 1
    assert kept["data"] == {"spec": {"manifestWorkTemplate": app["spec"]["manifestWorkTemplate"]}}
    assert meta.labels(kept) == {OWNER: f"{stage.namespace}.app", HASH: now.update}
    (owner,) = meta.owner_refs(kept)
    assert owner == {
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "name": "app",
        "uid": meta.uid(app),
        "controller": True,
        "blockOwnerDeletion": True,
    }


@check("MW-2")
async def test_another_template_is_a_second_revision_and_the_first_stays_as_it_was(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        first = (await stage.until_done()).revisions[0]
        await stage.want(OK2)
        now = await stage.until_done()

    assert now.history == [(1, "1"), (2, "2")]
    assert first in now.revisions


@check("MW-3")
async def test_limits_labels_and_placements_make_no_revision(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        before = await stage.until_done()
        await stage.set(revisionHistoryLimit=7)
        await stage.client.patch(stage.app, {"metadata": {"labels": {"team": "red"}}})
        await stage.place("other", {0: ["c3"]})
        await stage.set(
            placementRefs=[
                {"name": "place", "rolloutStrategy": all_at_once()},
                {"name": "other", "rolloutStrategy": all_at_once()},
            ]
        )
        now = await stage.until(lambda now: now.is_done and len(now.works) == 3)

    assert now.update == before.update
    assert now.history == [(1, "1")]


@check("MW-4")
async def test_the_order_of_keys_and_an_empty_time_of_creation_change_nothing(stage: Stage) -> None:
    other = template("1")
    manifest = other["workload"]["manifests"][0]
    turned = dict(reversed(manifest.items()))
    turned["metadata"] = {"creationTimestamp": None, **dict(reversed(manifest["metadata"].items()))}
    other["workload"]["manifests"] = [turned]
    async with stage.running():
        await stage.given(OK1, 2)
        before = await stage.until_done()
        await stage.want(other)
        now = await stage.settled()

    assert now.history == [(1, "1")]
    assert now.generations == before.generations == {"c1": 1, "c2": 1}
    assert now.update == before.update


@check("MW-5")
async def test_what_is_wanted_again_is_renumbered(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2, all_at_once())
        first = (await stage.until_done()).update
        for content in (OK2, OK3):
            await stage.want(content)
            await stage.until_done()
        await stage.want(OK1)
        now = await stage.until_done()

    assert now.history == [(2, "2"), (3, "3"), (4, "1")]
    assert now.update == now.current == first


@check("MW-6")
async def test_so_many_old_revisions_are_kept_and_the_newest_of_them(stage: Stage) -> None:
    async with stage.running():
        await stage.given(template("1"), 2, all_at_once(), revisionHistoryLimit=2)
        for number in range(2, 8):
            await stage.until_done()
            await stage.want(template(str(number)))
        await stage.until_done()
        now = await stage.until(lambda now: len(now.history) == 3)

    assert now.history == [(5, "5"), (6, "6"), (7, "7")]


@check("MW-7")
async def test_a_limit_of_none_keeps_what_lives_no_limit_keeps_ten_and_a_lower_one_counts_at_once(
    stage: Stage,
) -> None:
    async with stage.running():
        await stage.given(template("1"), 1, all_at_once())
        for number in range(2, 13):
            await stage.until(lambda now: now.is_done)
            await stage.want(template(str(number)))
        await stage.until_done()
        assert (await stage.until(lambda now: len(now.history) == 11)).history[0] == (2, "2")

        await stage.set(revisionHistoryLimit=1)
        assert (await stage.until(lambda now: len(now.history) == 2)).history == [(11, "11"), (12, "12")]

        await stage.set(revisionHistoryLimit=0)
        assert (await stage.until(lambda now: len(now.history) == 1)).history == [(12, "12")]


@check("MW-8")
async def test_what_some_clusters_still_have_is_kept_whatever_the_limit(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 3, progressive(maxConcurrency=1), revisionHistoryLimit=0)
        await stage.until_done()
        stage.spokes.away = {"c2"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs == {"c1": "2", "c2": "2", "c3": "1"})
        assert (await stage.settled()).history == [(1, "1"), (2, "2")]

        stage.spokes.away = set()
        stage.reconcile_everything()
        await stage.until_done()
        assert (await stage.until(lambda now: len(now.history) == 1)).history == [(2, "2")]


@check("MW-9")
async def test_a_taken_name_leads_to_another(stage: Stage) -> None:
    twin = Stage(stage.client, f"{stage.id}t", stage.clock)
    async with twin.running():
        await twin.given(OK2, 1)
        learnt = (await twin.until_done()).update
    await twin.end()
    await stage.given(OK1, 2)
    foreign = await stage.create(_revision(stage, f"app-{learnt}", {"who": "somebody else"}))
    async with stage.running():
        await stage.until_done()
        await stage.want(OK2)
        now = await stage.until_done()

    assert now.status["collisionCount"] == 1
    assert now.update != learnt
    assert set(now.hashes.values()) == {now.update}
    assert now.revs == {"c1": "2", "c2": "2"}
    assert await stage.client.get(meta.ref(foreign)) == foreign


def _revision(stage: Stage, name: str, data: Any, labels: Made | None = None, number: int = 1) -> Made:
    metadata: Made = {"name": name, "namespace": stage.namespace}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": CONTROLLER_REVISION_VERSION,
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
        "revision": number,
    }


@check("MW-10")
async def test_a_revision_without_a_controller_is_adopted(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        (kept,) = (await stage.until_done()).revisions
        await stage.stop()
        await stage.client.patch(meta.ref(kept), {"metadata": {"ownerReferences": None}})
        await stage.start()
        now = await stage.until(lambda now: bool(meta.owner_refs(now.revisions[0])))

    assert meta.uid(now.revisions[0]) == meta.uid(kept)
    assert "collisionCount" not in now.status
    assert now.history == [(1, "1")]


@check("MW-11")
async def test_of_two_revisions_that_hold_the_same_the_newer_stays(stage: Stage) -> None:
    async with stage.running():
        app = await stage.given(OK1, 2)
        before = await stage.until_done()
        labels = {OWNER: f"{stage.namespace}.app", HASH: "twin"}
        data = {"spec": {"manifestWorkTemplate": app["spec"]["manifestWorkTemplate"]}}
        await stage.create(_revision(stage, "app-twin", data, labels, number=5))
        now = await stage.until(lambda now: now.update == "twin" and len(now.revisions) == 1)
        now = await stage.until(lambda now: set(now.hashes.values()) == {"twin"} and now.is_done)

    assert now.history == [(5, "1")]
    assert now.generations == before.generations
    assert now.current == "twin"


@check("MW-12")
async def test_a_deleted_set_takes_works_and_revisions_along(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        await stage.until_done()
        await stage.client.delete(stage.app)
        await stage.until_gone(stage.app)
        await _until_nothing_is_left(stage)

        app = await stage.given_set(OK1, {"place": all_at_once()}, cascadeDeletionPolicy="Foreground")
        now = await stage.until_done()
        held = meta.ref(now.works[0])
        await stage.client.patch(held, {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(stage.app)
        await stage.until(lambda now: len(now.works) == 1 and meta.is_deleting(now.app))
        await stage.settled()
        still = await stage.client.get(stage.app)
        assert (meta.uid(still), meta.is_deleting(still)) == (meta.uid(app), True)

        await stage.client.patch(held, {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.app)
        await _until_nothing_is_left(stage)


async def _until_nothing_is_left(stage: Stage) -> None:
    labels = f"{OWNER}={stage.namespace}.app"
    for kind in ((WORK_VERSION, "ManifestWork"), (CONTROLLER_REVISION_VERSION, "ControllerRevision")):
        for one in (await stage.client.list(kind, labels=labels)).items:
            await stage.until_gone(Ref(*kind, meta.namespace(one), meta.name(one)))


@check("MW-13")
async def test_clusters_are_told_apart_by_the_mark_of_what_they_have(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        first = await stage.until_done()
        assert set(first.hashes.values()) == {first.update}
        stage.spokes.away = {"c1", "c2"}
        await stage.want(OK2)
        now = await stage.until(lambda now: now.revs["c2"] == "2")
        now = await stage.settled()

    labels = f"{HASH}={now.update}"
    found = (await stage.client.list((WORK_VERSION, "ManifestWork"), labels=labels)).items
    mine = {meta.namespace(one) for one in found if meta.namespace(one).endswith(stage.suffix)}
    assert mine == {stage.cluster("c1"), stage.cluster("c2")}
    assert (now.hashes["c3"], now.hashes["c4"]) == (first.update, first.update)
