"""Decorators: what they add to objects of other owners."""

from functools import partial
from typing import Any

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired
from tests.scenarios.metacontroller.wires import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARK = "metacontroller.k8s.io/decorator-controller"


def things(stage: Stage, **rule: Any) -> list[Made]:
    """A rule for Things as what is decorated."""
    return [{"apiVersion": f"{stage.group}/v1", "resource": "things", **rule}]


def webhook(stage: Stage, path: str) -> Made:
    return {"webhook": {"url": f"{stage.hook.url}{path}"}}


@check("MC-59")
async def test_what_matches_both_selectors_gets_attachments_and_what_others_attached_is_not_seen(
    stage: Stage,
) -> None:
    stage.hook.answer = lambda said: {"attachments": [desired("ConfigMap", f"{said['object']['metadata']['name']}-x")]}  # fmt: skip
    rule = {
        "labelSelector": {"matchLabels": {"decorate": "yes"}},
        "annotationSelector": {
            "matchAnnotations": {"size": "large one"},
            "matchExpressions": [{"key": "never", "operator": "DoesNotExist"}],
        },
    }
    both = {"labels": {"decorate": "yes"}, "annotations": {"size": "large one"}}
    others = {
        "label-only": {"labels": {"decorate": "yes"}},
        "annotation-only": {"annotations": {"size": "large one"}},
        "excluded": {**both, "annotations": {"size": "large one", "never": ""}},
    }
    async with stage.running():
        made = await stage.given_decorator("dec", resources=things(stage, **rule), attachments=config_maps())
        for name, metadata in others.items():
            await stage.given_parent(name, metadata=metadata)
        target = await stage.given_parent("both", metadata=both)
        attached = await stage.until_there(stage.at("ConfigMap", "both-x"))
        owner = meta.owner_ref(target, controller=True, blocks=True)
        foreign = desired("ConfigMap", "foreign", data={"k": "v"})
        foreign["metadata"] |= {"namespace": stage.namespace, "ownerReferences": [owner]}
        await stage.create(foreign)
        calls = stage.hook.count()
        await stage.client.patch(stage.parent("both"), {"spec": {"x": 1}})
        await stage.hook.called(calls + 1)
        await stage.settled()

    assert meta.annotations(attached)[MARK] == meta.name(made)
    assert meta.owner_refs(attached) == [owner]
    assert {said["object"]["metadata"]["name"] for said in stage.hook.requests} == {"both"}
    assert list(stage.hook.requests[-1]["attachments"]["ConfigMap.v1"]) == ["both-x"]
    assert stage.hook.requests[-1].keys() == {"controller", "object", "attachments", "related", "finalizing"}
    assert (await stage.client.get(stage.at("ConfigMap", "foreign")))["data"] == {"k": "v"}


@check("MC-59")
async def test_of_several_rules_for_one_kind_any_may_match(stage: Stage) -> None:
    rules = [
        *things(stage, labelSelector={"matchLabels": {"colour": "red"}}),
        *things(stage, labelSelector={"matchLabels": {"colour": "blue"}}),
    ]
    async with stage.running():
        await stage.given_decorator("dec", resources=rules)
        for colour in ("red", "green", "blue"):
            await stage.given_parent(colour, metadata={"labels": {"colour": colour}})
        await stage.hook.called(2)
        await stage.settled()

    assert {said["object"]["metadata"]["name"] for said in stage.hook.requests} == {"red", "blue"}


@check("MC-60")
async def test_labels_and_annotations_are_set_and_removed_and_the_same_answer_writes_nothing(
    stage: Stage,
) -> None:
    stage.hook.answer = lambda said: {
        "labels": {"new": "1", "old": None, "absent": None},
        "annotations": {"new": "2", "old": None},
        "attachments": [],
    }
    stage.own, wire = wired(stage.client)
    there = {"labels": {"old": "x", "theirs": "y"}, "annotations": {"old": "x", "theirs": "y"}}
    async with stage.running():
        await stage.given_decorator("dec", resources=things(stage))
        await stage.given_parent("a", metadata=there)
        found = await stage.until(
            stage.parent(), lambda obj: obj is not None and meta.labels(obj) == {"new": "1", "theirs": "y"}
        )
        assert found is not None
        assert meta.annotations(found) == {"new": "2", "theirs": "y"}
        await stage.settled()
        wire.sent.clear()
        calls = stage.hook.count()
        stage.pass_time(minutes=31)
        await stage.hook.called(calls + 1)
        await stage.settled()

    assert wire.writes == []


@check("MC-61")
async def test_of_two_decorators_each_sees_its_own_attachments(stage: Stage) -> None:
    def attaches(name: str, said: Said) -> Said:
        seen = ",".join(said["attachments"]["ConfigMap.v1"])
        return {"attachments": [desired("ConfigMap", name, data={"seen": seen})]}

    for name in ("one", "two"):
        stage.hook.paths[f"/{name}"] = partial(attaches, name)
    async with stage.running():
        for name in ("one", "two"):
            await stage.given_decorator(
                name, resources=things(stage), attachments=config_maps(), hooks={"sync": webhook(stage, f"/{name}")}
            )  # fmt: skip
        await stage.given_parent()
        await stage.until_listed(
            "ConfigMap",
            lambda those: (
                {meta.name(one): one["data"]["seen"] for one in those} == {"one": "one", "two": "two"}
            ),
        )
        await stage.settled()

    assert {meta.name(one) for one in await stage.listed("ConfigMap")} == {"one", "two"}


@check("MC-56")
@pytest.mark.parametrize("deleted", [False, True])
async def test_what_a_finalize_hook_wants_gone_goes_even_if_it_is_done_at_once(
    stage: Stage, deleted: bool
) -> None:
    """An object without the finalizer is not synced again, so its attachments are deleted before it."""
    stage.hook.paths["/sync"] = lambda said: {"attachments": [desired("ConfigMap", "x")]}
    stage.hook.paths["/finalize"] = lambda said: {
        "attachments": [],
        "finalized": True,
        "labels": {"bye": "1"},
    }
    rule = things(stage, labelSelector={"matchLabels": {"decorate": "yes"}})
    hooks = {name: webhook(stage, f"/{name}") for name in ("sync", "finalize")}
    async with stage.running():
        await stage.given_decorator("dec", resources=rule, attachments=config_maps(), hooks=hooks)
        await stage.given_parent(metadata={"labels": {"decorate": "yes"}})
        await stage.until_there(stage.at("ConfigMap", "x"))
        if deleted:
            await stage.client.delete(stage.parent())
            await stage.until_gone(stage.parent())
        else:
            await stage.client.patch(stage.parent(), {"metadata": {"labels": {"decorate": None}}})
            let_go = await stage.until(
                stage.parent(), lambda obj: obj is not None and not meta.finalizers(obj)
            )
            assert let_go is not None
            assert meta.labels(let_go) == {"bye": "1"}
        await stage.until_gone(stage.at("ConfigMap", "x"))


@check("MC-62")
@pytest.mark.parametrize("has_status", [True, False])
async def test_a_status_is_replaced_where_one_is_given_and_left_alone_where_none_is(
    stage: Stage, has_status: bool
) -> None:
    await stage.given_kind("Plain", status=has_status)
    answers: list[Made] = [
        {"status": {"a": 1, "b": {"c": 2}}},
        {"status": {"b": {"d": 3.0}}},
        {"status": None},
        {},
    ]
    stage.hook.answer = lambda said: answers[said["object"]["spec"]["step"]]
    at = stage.parent("a", "Plain")
    rule = [{"apiVersion": f"{stage.group}/v1", "resource": "plains"}]
    async with stage.running():
        await stage.given_parent("a", "Plain", spec={"step": 0})
        await stage.given_decorator("dec", resources=rule)
        await stage.until(at, lambda obj: obj is not None and obj.get("status") == {"a": 1, "b": {"c": 2}})
        for step in range(1, len(answers)):
            calls = stage.hook.count()
            await stage.client.patch(at, {"spec": {"step": step}})
            await stage.hook.called(calls + 1)
            await stage.until(at, lambda obj: obj is not None and obj.get("status") == {"b": {"d": 3}})
            await stage.settled()
        found = await stage.client.get(at)

    assert found["status"] == {"b": {"d": 3}}


@check("MC-62")
@pytest.mark.parametrize("has_status", [True, False])
async def test_an_empty_status_is_a_status(stage: Stage, has_status: bool) -> None:
    """A hook that wants an object to have one, if an empty one, sees next time that it does."""
    await stage.given_kind("Plain", status=has_status)
    stage.hook.answer = lambda said: {"status": {"seen": True} if "status" in said["object"] else {}}
    rule = [{"apiVersion": f"{stage.group}/v1", "resource": "plains"}]
    async with stage.running():
        await stage.given_decorator("dec", resources=rule)
        await stage.given_parent("a", "Plain")
        await stage.until(
            stage.parent("a", "Plain"), lambda obj: obj is not None and obj.get("status") == {"seen": True}
        )

    assert [said["object"].get("status") for said in stage.hook.requests[:2]] == [None, {}]


@check("MC-62")
@pytest.mark.parametrize("lost", [{"lost": True}, {}])
async def test_a_status_that_no_kind_keeps_is_not_sent_for_ever(stage: Stage, lost: Made) -> None:
    stage.hook.answer = lambda said: {"status": lost}
    stage.own, wire = wired(stage.client)
    rule = [{"apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"app": "x"}}}]
    async with stage.running():
        await stage.given_decorator("dec", resources=rule)
        made = desired("ConfigMap", "c", data={"k": "v"})
        await stage.create({**made, "metadata": {**made["metadata"], "namespace": stage.namespace}})
        await stage.hook.called(1)
        await stage.settled()
        wire.sent.clear()
        stage.pass_time(minutes=31)
        await stage.hook.called(2)
        await stage.settled()

    assert wire.writes == []


@check("MC-62")
async def test_a_concurrent_writer_is_no_reason_to_complain(stage: Stage) -> None:
    async def answer(said: Said) -> Said:
        seen = said["object"].get("status") or {}
        if len(stage.hook.requests) < 3:
            # Another client writes during the hook call.
            await stage.client.patch(
                stage.parent(), {"metadata": {"annotations": {"n": str(stage.hook.count())}}}
            )
        return {"status": {**seen, "ours": 1}, "labels": {"ours": "1"}}

    stage.hook.answer = answer
    async with stage.running():
        await stage.given_decorator("dec", resources=things(stage))
        await stage.given_parent(status={})
        found = await stage.until(
            stage.parent(),
            lambda obj: obj is not None and obj.get("status") == {"ours": 1} and meta.labels(obj) == {"ours": "1"},
        )  # fmt: skip
        await stage.settled()

    assert found is not None
    assert meta.annotations(found) == {"n": "2"}
    assert [one["reason"] for one in await stage.events(stage.parent())] == []


@check("MC-63")
async def test_a_change_of_status_alone_is_ignored_where_that_is_asked_for(stage: Stage) -> None:
    period = 3600
    async with stage.running():
        await stage.given_decorator(
            "dec", resources=things(stage, ignoreStatusChanges=True), resyncPeriodSeconds=period
        )
        await stage.given_parent("a")
        await stage.given_parent("b")
        await stage.hook.called(2)
        await stage.settled()
        stage.hook.forget()

        await stage.client.patch(stage.parent("a"), {"status": {"x": 1}}, subresource="status")
        await stage.client.patch(stage.parent("b"), {"metadata": {"labels": {"x": "1"}}})
        await stage.hook.called(1)
        await stage.settled()
        assert called_about(stage) == ["b"]

        await stage.client.patch(stage.parent("a"), {"spec": {"x": 1}})
        await stage.hook.called(2)
        await stage.settled()
        assert called_about(stage) == ["b", "a"]

        stage.pass_time(seconds=min(period, 1800) + 1)
        await stage.hook.called(4)
        assert sorted(called_about(stage)[2:]) == ["a", "b"]


@check("MC-63")
async def test_an_edit_of_a_kind_without_generations_is_no_change_of_status(stage: Stage) -> None:
    rule = {"labelSelector": {"matchLabels": {"app": "x"}}, "ignoreStatusChanges": True}
    made = desired("ConfigMap", "c", data={"k": "v"})
    async with stage.running():
        await stage.given_decorator("dec", resources=[{"apiVersion": "v1", "resource": "configmaps", **rule}])
        await stage.create({**made, "metadata": {**made["metadata"], "namespace": stage.namespace}})
        await stage.hook.called(1)
        await stage.settled()
        calls = stage.hook.count()
        await stage.client.patch(stage.at("ConfigMap", "c"), {"data": {"k": "w"}})
        await stage.hook.called(calls + 1)

    assert stage.hook.requests[-1]["object"]["data"] == {"k": "w"}


def called_about(stage: Stage) -> list[str]:
    """Return the names of the objects the hook was called about, in order."""
    return [said["object"]["metadata"]["name"] for said in stage.hook.requests]
