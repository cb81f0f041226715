"""What a work becomes on its cluster: applied by a real agent, seen from the hub."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.agents import Spoke, spoke
from tests.scenarios.manifestwork.stage import Stage
from tests.unit.families.manifestwork.agent.story import config_for, config_map, strategy
from tests.unit.families.manifestwork.fleet import OK1, OK2, template

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def east(stage: Stage) -> AsyncIterator[Spoke]:
    """One cluster of the hub, with its agent at work."""
    name = stage.cluster("east")
    await stage.given_namespace(name)
    async with spoke(name, stage.client, stage.clock) as made:
        yield made


def namespace(name: str) -> Made:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@check("MW-61")
async def test_a_namespace_and_what_is_in_it_are_made_whatever_order_they_are_listed_in(east: Spoke) -> None:
    await east.want(config_map(namespace="fresh", a="1"), namespace("fresh"))
    report = await east.until_applied()

    assert await east.data(namespace="fresh") == {"a": "1"}
    assert report.of(0, "Applied") == ("True", "AppliedManifestComplete")
    assert [one["resourceMeta"]["kind"] for one in report.entries] == ["ConfigMap", "Namespace"]
    assert report.said("Progressing") == ("False", "Completed")


@check("MW-61")
async def test_an_unknown_kind_fails_alone(east: Spoke) -> None:
    unknown = {"apiVersion": "no.such/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}}
    await east.want(unknown, config_map(a="1"))
    report = await east.until(lambda now: now.denies("Applied"))

    assert await east.data() == {"a": "1"}
    assert report.message_of(0, "Applied") == (
        'Failed to apply manifest: the server doesn\'t have a resource type "Thing"'
    )
    assert report.of(1, "Applied") == ("True", "AppliedManifestComplete")


@check("MW-61")
async def test_update_replaces_and_corrects_drift(east: Spoke) -> None:
    await east.want(config_map(a="1", b="1"))
    await east.until_applied()
    await east.want(config_map(a="2"))
    await east.until_applied()
    assert await east.data() == {"a": "2"}

    ref = Ref("v1", "ConfigMap", "default", "cm1")
    await east.client.patch(ref, {"data": {"a": "drifted", "c": "more"}})
    assert await eventually(lambda: _has(east, {"a": "2"}))
    await east.client.delete(ref)
    assert await eventually(lambda: _has(east, {"a": "2"}))


async def _has(east: Spoke, data: Any) -> bool:
    return bool(await east.data() == data)


@check("MW-61")
async def test_create_only_makes_it_and_leaves_it(east: Spoke) -> None:
    how = [config_for(config_map(), **strategy("CreateOnly"))]
    await east.want(config_map(a="1"), manifestConfigs=how)
    await east.until_applied()
    await east.want(config_map(a="2"), manifestConfigs=how)
    await east.until_applied()

    assert await east.data() == {"a": "1"}


@check("MW-61")
async def test_a_field_of_another_manager_makes_it_fail_and_it_is_not_tried_over_and_over(
    east: Spoke,
) -> None:
    await east.client.apply(config_map(a="theirs"), manager="somebody")
    how = [config_for(config_map(), **strategy("ServerSideApply"))]
    await east.want(config_map(a="ours", b="1"), manifestConfigs=how)
    report = await east.until(lambda now: now.denies("Applied"))
    assert report.of(0, "Applied") == ("False", "AppliedManifestFailed")
    assert "conflict" in report.message_of(0, "Applied")
    assert await east.data() == {"a": "theirs"}

    before = meta.resource_version((await east.work()).obj)
    await east.settled()
    assert meta.resource_version((await east.work()).obj) == before

    forced = [config_for(config_map(), **strategy("ServerSideApply", force=True))]
    await east.want(config_map(a="ours", b="1"), manifestConfigs=forced)
    await east.until_applied()
    assert await east.data() == {"a": "ours", "b": "1"}


@check("MW-61")
async def test_what_is_only_read_is_told_as_it_changes(east: Spoke) -> None:
    await east.client.create(config_map("theirs", a="1"))
    how = config_for(
        config_map("theirs"),
        **strategy("ReadOnly"),
        feedbackRules=[{"type": "JSONPaths", "jsonPaths": [{"name": "a", "path": ".data.a"}]}],
    )
    await east.want(config_map("theirs", a="not written"), manifestConfigs=[how])
    report = await east.until(lambda now: now.holds("Applied") and now.values() == {"a": "1"})
    assert report.of(0, "StatusFeedbackSynced") == ("True", "StatusFeedbackSynced")

    await east.client.patch(Ref("v1", "ConfigMap", "default", "theirs"), {"data": {"a": "2"}})
    await east.until(lambda now: now.values() == {"a": "2"})

    await east.hub.delete(east.work_ref())
    await east.until_gone()
    assert await east.data("theirs") == {"a": "2"}


@check("MW-61")
async def test_what_is_orphaned_stays_and_the_rest_goes(east: Spoke) -> None:
    await east.want(config_map("all"), name="all", deleteOption={"propagationPolicy": "Orphan"})
    rule = {"group": "", "resource": "configmaps", "name": "stays", "namespace": "default"}
    chosen = {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": {"orphaningRules": [rule]},
    }
    await east.want(config_map("stays"), config_map("goes"), name="some", deleteOption=chosen)
    for name in ("all", "some"):
        await east.until_applied(name)
        await east.hub.delete(east.work_ref(name))
        await east.until_gone(name)

    assert await east.config_map("all") is not None
    assert await east.config_map("stays") is not None
    assert await east.config_map("goes") is None
    assert await east.there(east.record_ref("some")) is None


@check("MW-61")
async def test_what_two_works_share_survives_the_end_of_one(east: Spoke) -> None:
    for name in ("one", "two"):
        await east.want(config_map("shared", a="1"), name=name)
        await east.until_applied(name)
    await eventually(lambda: _owners(east, 2))
    await east.hub.delete(east.work_ref("one"))
    await east.until_gone("one")

    assert await east.data("shared") == {"a": "1"}
    assert await _owners(east, 1)
    await east.hub.delete(east.work_ref("two"))
    await east.until_gone("two")
    assert await east.config_map("shared") is None


@check("MW-61")
async def test_two_works_that_state_one_object_otherwise_do_not_fight(east: Spoke) -> None:
    await east.want(config_map(a="1"), name="a-first")
    await east.until_applied("a-first")
    await east.want(config_map(a="2"), name="b-second")
    now = await east.until(lambda now: now.denies("Applied"), "b-second")
    assert "has other content in the older ManifestWork a-first, which keeps it" in now.message_of(
        0, "Applied"
    )
    await east.until(
        lambda now: "other content of b-second does not replace it" in now.message_of(0, "Applied"), "a-first"
    )
    await east.settled()
    before = await east.config_map()
    assert east.running is not None
    east.running[0].resync()
    await east.settled()
    assert before == await east.config_map()
    assert (await east.data()) == {"a": "1"}

    await east.hub.delete(east.work_ref("a-first"))
    await east.until_applied("b-second")
    await eventually(lambda: _has(east, {"a": "2"}))


async def _owners(east: Spoke, count: int) -> bool:
    found = await east.config_map("shared")
    return found is not None and len(meta.owner_refs(found)) == count


@check("MW-61")
async def test_what_is_added_and_removed_at_once_leaves_nothing_behind(east: Spoke) -> None:
    await east.want(config_map("stays"))
    await east.until_applied()
    for _ in range(5):
        await east.want(config_map("stays"), config_map("brief"))
        await east.want(config_map("stays"))
    await east.until_applied()
    await east.settled()

    assert await east.config_map("brief") is None
    assert await east.config_map("stays") is not None


@check("MW-61")
async def test_after_a_work_is_deleted_nothing_is_applied_again(east: Spoke) -> None:
    await east.want(config_map(a="1"))
    await east.until_applied()
    # Held by another finalizer, so that the work stays visible while it is being deleted.
    finalizers = [*meta.finalizers((await east.work()).obj), "example.com/held"]
    await east.hub.patch(east.work_ref(), {"metadata": {"finalizers": finalizers}})
    await east.hub.delete(east.work_ref())
    await eventually(lambda: _is_missing(east))
    await east.settled()

    report = await east.work()
    assert report.said("Deleting") == ("True", "WorkDeleting")
    assert meta.finalizers(report.obj) == ["example.com/held"]
    assert await east.config_map() is None
    await east.hub.patch(east.work_ref(), {"metadata": {"finalizers": None}})
    await east.until_gone()


async def _is_missing(east: Spoke) -> bool:
    return await east.config_map() is None and await east.there(east.record_ref()) is None


@check("MW-61")
async def test_a_complete_work_is_left_alone_and_takes_a_new_revision(east: Spoke) -> None:
    rule = {"condition": "Complete", "type": "CEL", "celExpressions": ["object.data.done == 'yes'"]}
    how = [config_for(config_map(), conditionRules=[rule])]
    await east.want(config_map(done="yes", rev="1"), manifestConfigs=how)
    await east.until(lambda now: now.holds("Complete"))
    ref = Ref("v1", "ConfigMap", "default", "cm1")
    await east.client.patch(ref, {"data": {"note": "drift on something complete"}})
    await east.settled()
    assert (await east.data() or {})["note"] == "drift on something complete"

    await east.want(config_map(done="no", rev="2"), manifestConfigs=how)
    report = await east.until(lambda now: now.denies("Complete"))
    assert await east.data() == {"done": "no", "rev": "2"}
    assert report.holds("Applied")


@check("MW-61")
async def test_one_degraded_manifest_of_three_makes_the_work_degraded(east: Spoke) -> None:
    rule = {"condition": "Degraded", "type": "CEL", "celExpressions": ["object.data.phase == 'bad'"]}
    manifests = [config_map(f"cm{place}", phase="bad" if place == 2 else "fine") for place in (1, 2, 3)]
    how = [config_for(one, conditionRules=[rule]) for one in manifests]
    await east.want(*manifests, manifestConfigs=how)
    report = await east.until(lambda now: now.holds("Degraded"))

    assert report.said("Degraded") == ("True", "ConditionRulesAggregated")
    assert [report.of(place, "Degraded")[0] for place in range(3)] == ["False", "True", "False"]


@check("MW-61")
async def test_a_label_that_a_revision_brought_is_gone_when_it_goes(east: Spoke) -> None:
    await east.want(config_map(a="1"))
    await east.until_applied()
    await east.want(meta.with_metadata(config_map(a="2"), labels={"brought": "by-it"}))
    await east.until_applied()
    assert meta.labels(await east.config_map() or {}) == {"brought": "by-it"}
    await east.want(config_map(a="1"))
    await east.until_applied()

    assert meta.labels(await east.config_map() or {}) == {}


# The whole way


def both(rev: str, phase: str, *extra: str) -> Made:
    """A template that brings more objects than the one that decides how it does."""
    made = template(rev, phase)
    more = [meta.with_metadata(config_map(name, rev=rev), labels={"from": rev}) for name in extra]
    made["workload"]["manifests"] += more
    return made


@check("MW-42")
async def test_what_only_the_aborted_revision_had_goes_and_what_it_removed_is_back(
    stage: Stage, east: Spoke
) -> None:
    await stage.start()
    await stage.given(both("1", "done", "old"), ["east"])
    await stage.until(lambda now: now.is_done)
    assert await east.data("old") == {"rev": "1"}

    await stage.want(both("2", "bad", "new"))
    await eventually(lambda: east.config_map("new"))
    await eventually(lambda: _absent(east, "old"))
    await stage.until(lambda now: now.message().startswith("1 of 1 clusters failed"))
    stage.pass_time(66)
    await stage.until(lambda now: now.is_aborted and "1 of 1 clusters restored" in now.message())

    assert await eventually(lambda: east.config_map("old"))
    assert await eventually(lambda: _absent(east, "new"))
    assert (await east.data()) == {"phase": "done", "rev": "1"}
    assert await east.config_map("new") is None


async def _absent(east: Spoke, name: str) -> bool:
    return await east.config_map(name) is None


async def test_an_agent_that_was_away_applies_what_is_wanted_now_and_nothing_that_was_meanwhile(
    stage: Stage, east: Spoke
) -> None:
    await stage.start()
    await stage.given(OK1, ["east"])
    await stage.until(lambda now: now.is_done)
    await east.stop()
    await stage.want(both("2", "bad", "never"))
    await stage.until(lambda now: now.revs == {"east": "2"})
    await stage.want(OK2)
    await stage.until(lambda now: now.revs == {"east": "2"} and now.history[-1][1] == "2")
    await east.start()
    await stage.until(lambda now: now.is_done)

    assert await east.config_map("never") is None
    assert (await east.data()) == {"phase": "done", "rev": "2"}


async def test_what_vanished_from_the_hub_is_evicted_after_its_time(stage: Stage, east: Spoke) -> None:
    await east.want(config_map(a="1"))
    await east.until_applied()
    await east.stop()
    await east.hub.patch(east.work_ref(), {"metadata": {"finalizers": None}})
    await east.hub.delete(east.work_ref())
    await east.start()
    record = east.record_ref()

    async def is_marked() -> bool:
        return bool(((await east.there(record) or {}).get("status") or {}).get("evictionStartTime"))

    await eventually(is_marked)
    assert await east.config_map() is not None
    stage.clock.wind(timedelta(minutes=61))

    async def is_evicted() -> bool:
        return await east.there(record) is None and await east.config_map() is None

    assert await eventually(is_evicted)


async def test_the_writes_of_an_agent_are_compared_with_those_of_a_simulation(stage: Stage) -> None:
    name = stage.cluster("west")
    await stage.given_namespace(name)
    async with spoke(name, stage.client, stage.clock) as west:
        await west.want(config_map(a="1"))
        await west.until_applied()
        parity = west.parity

    # A record, an object and a status at the least; a real server's are those of the embedded one.
    assert (parity.compared >= 3) is (chosen_server() != "real")
