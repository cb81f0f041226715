"""How parents go: when they are deleted, and when they opt out."""

import pytest
from aiohttp import web

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")


def hooks(stage: Stage, *names: str) -> Made:
    return {name: {"webhook": {"url": f"{stage.hook.url}/{name}"}} for name in names}


def finalizer(stage: Stage, kind: str = "compositecontroller") -> str:
    return f"metacontroller.io/{kind}-{stage.named('cc')}"


def held(obj: Made | None, name: str) -> bool:
    return obj is not None and name in meta.finalizers(obj)


@check("MC-53")
async def test_a_parent_goes_once_its_finalize_hook_has_taken_its_children_down_in_order(
    stage: Stage,
) -> None:
    stage.hook.paths["/sync"] = lambda said: {"children": [desired("ConfigMap", name) for name in "abc"]}

    def finalize(said: Said) -> Said:
        left = sorted(said["children"]["ConfigMap.v1"])[:-1]
        gone = not said["children"]["ConfigMap.v1"]
        return {"children": [desired("ConfigMap", name) for name in left], "finalized": gone}

    stage.hook.paths["/finalize"] = finalize
    async with stage.running():
        await stage.given_composite(
            "cc", childResources=config_maps(), hooks=hooks(stage, "sync", "finalize")
        )
        await stage.given_parent()
        await stage.until_listed("ConfigMap", lambda those: len(those) == 3)
        await stage.settled()
        assert all(
            finalizer(stage) in said["parent"]["metadata"]["finalizers"] for said in stage.hook.requests
        )

        await stage.client.delete(stage.parent())
        await stage.until_gone(stage.parent())
        await stage.settled()

    assert await stage.listed("ConfigMap") == []
    asked = stage.hook.on("/finalize")
    assert all(said["finalizing"] and "deletionTimestamp" in said["parent"]["metadata"] for said in asked)
    shown = [len(said["children"]["ConfigMap.v1"]) for said in asked]
    assert shown == sorted(shown, reverse=True)
    assert set(shown) >= {3, 2, 1, 0}
    assert not any(said["finalizing"] for said in stage.hook.on("/sync"))


@check("MC-54")
async def test_a_parent_stays_while_its_finalize_hook_fails_and_is_let_go_with_the_hook(stage: Stage) -> None:
    stage.hook.paths["/finalize"] = lambda said: web.Response(status=500)

    async with stage.running():
        controller = meta.ref(
            await stage.given_composite(
                "cc", childResources=config_maps(), hooks=hooks(stage, "sync", "finalize")
            )
        )
        await stage.given_parent()
        await stage.until(stage.parent(), lambda obj: held(obj, finalizer(stage)))
        await stage.client.delete(stage.parent())
        await stage.hook.called(3, "/finalize")
        await stage.until_event(stage.parent(), "SyncError", "unsupported status code: 500")
        assert held(await stage.get(stage.parent()), finalizer(stage))

        await stage.client.patch(controller, {"spec": {"hooks": {"finalize": None}}})
        await stage.until_gone(stage.parent())


@check("MC-54")
async def test_a_finalize_hook_without_a_webhook_is_none(stage: Stage) -> None:
    async with stage.running():
        await stage.given_composite("cc", hooks={**hooks(stage, "sync"), "finalize": {"version": "v1"}})
        await stage.given_parent()
        parent = await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status")))
        assert parent is not None
        assert meta.finalizers(parent) == ()


@check("MC-55")
@pytest.mark.parametrize("finalizes", [False, True], ids=["sync", "finalize"])
async def test_children_that_the_garbage_collector_deletes_are_not_made_again(
    stage: Stage, finalizes: bool
) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", name) for name in "ab"]}
    names = ("sync", "finalize") if finalizes else ("sync",)
    first, second = stage.at("ConfigMap", "a"), stage.at("ConfigMap", "b")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), hooks=hooks(stage, *names))
        await stage.given_parent()
        await stage.until_there(first)
        await stage.until_there(second)
        await stage.client.patch(first, {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.settled()

        await stage.client.delete(stage.parent(), propagation="Foreground")
        await stage.until_gone(second)
        heard = stage.hook.count()
        await stage.client.patch(stage.parent(), {"metadata": {"annotations": {"poke": "1"}}})
        await stage.hook.called(heard + 1)
        await stage.settled()
        assert await stage.get(second) is None

        stage.hook.answer = lambda said: {"finalized": True}
        await stage.client.patch(first, {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.parent())
    assert await stage.listed("ConfigMap") == []


@check("MC-56")
async def test_a_parent_that_opts_out_is_finalized_alive_and_may_come_back(stage: Stage) -> None:
    stage.hook.paths["/sync"] = lambda said: {"children": [desired("ConfigMap", "c")]}
    stage.hook.paths["/finalize"] = lambda said: {"finalized": not said["children"]["ConfigMap.v1"]}
    chosen = {"matchLabels": {"managed": "yes"}}

    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={
                "apiVersion": f"{stage.group}/v1",
                "resource": "things",
                "labelSelector": chosen,
            },
            childResources=config_maps(),
            hooks=hooks(stage, "sync", "finalize"),
        )
        await stage.given_parent(metadata={"labels": {"managed": "yes"}})
        await stage.until_there(stage.at("ConfigMap", "c"))

        await stage.client.patch(stage.parent(), {"metadata": {"labels": {"managed": None}}})
        await stage.until(stage.parent(), lambda obj: obj is not None and not meta.finalizers(obj))
        assert await stage.get(stage.at("ConfigMap", "c")) is None
        said = stage.hook.on("/finalize")[-1]
        assert said["finalizing"]
        assert "deletionTimestamp" not in said["parent"]["metadata"]

        await stage.client.patch(stage.parent(), {"metadata": {"labels": {"managed": "yes"}}})
        await stage.until_there(stage.at("ConfigMap", "c"))
        assert held(await stage.get(stage.parent()), finalizer(stage))


@check("MC-56")
@pytest.mark.parametrize("opts_out_by", ["labels", "annotations"])
async def test_a_target_that_opts_out_is_finalized_alive_and_may_come_back(
    stage: Stage, opts_out_by: str
) -> None:
    stage.hook.paths["/sync"] = lambda said: {"attachments": [desired("ConfigMap", "c")]}
    stage.hook.paths["/finalize"] = lambda said: {
        "finalized": not said["attachments"]["ConfigMap.v1"],
        "annotations": {"was": "here"},
    }
    resource = {
        "apiVersion": f"{stage.group}/v1",
        "resource": "things",
        "labelSelector": {"matchLabels": {"managed": "yes"}},
        "annotationSelector": {"matchAnnotations": {"managed": "yes"}},
    }
    both = {"labels": {"managed": "yes"}, "annotations": {"managed": "yes"}}
    own = finalizer(stage, "decoratorcontroller")

    async with stage.running():
        await stage.given_decorator(
            "cc", resources=[resource], attachments=config_maps(), hooks=hooks(stage, "sync", "finalize")
        )
        await stage.given_parent(metadata=both)
        await stage.until_there(stage.at("ConfigMap", "c"))
        assert held(await stage.get(stage.parent()), own)

        await stage.client.patch(stage.parent(), {"metadata": {opts_out_by: {"managed": None}}})
        left = await stage.until(stage.parent(), lambda obj: obj is not None and not meta.finalizers(obj))
        assert left is not None
        assert meta.annotations(left)["was"] == "here"
        assert await stage.get(stage.at("ConfigMap", "c")) is None

        await stage.client.patch(stage.parent(), {"metadata": {opts_out_by: {"managed": "yes"}}})
        await stage.until_there(stage.at("ConfigMap", "c"))


@check("MC-56")
@pytest.mark.parametrize("kind", ["composite", "decorator", "decorator of a kind without an endpoint"])
async def test_the_last_status_of_a_parent_that_opts_out_is_written(stage: Stage, kind: str) -> None:
    """It is looked at no more, so what the finalize hook says of it is said then or never."""
    await stage.given_kind("Leaver", status="without" not in kind)
    stage.hook.paths["/sync"] = lambda said: {"status": {"phase": "in", "since": 1}}
    stage.hook.paths["/finalize"] = lambda said: {"status": {"phase": "out"}, "finalized": True}
    rule = {
        "apiVersion": f"{stage.group}/v1",
        "resource": "leavers",
        "labelSelector": {"matchLabels": {"managed": "yes"}},
    }
    at = stage.parent("a", "Leaver")

    async with stage.running():
        if kind == "composite":
            await stage.given_composite("cc", parentResource=rule, hooks=hooks(stage, "sync", "finalize"))
        else:
            await stage.given_decorator("cc", resources=[rule], hooks=hooks(stage, "sync", "finalize"))
        await stage.given_parent("a", "Leaver", metadata={"labels": {"managed": "yes"}})
        await stage.until(at, lambda obj: bool(obj and (obj.get("status") or {}).get("phase") == "in"))
        await stage.settled()

        await stage.client.patch(at, {"metadata": {"labels": {"managed": None}}})
        await stage.until(at, lambda obj: obj is not None and not meta.finalizers(obj))
        await stage.until(at, lambda obj: bool(obj and obj["status"].get("phase") == "out"))
        await stage.settled()

    left = await stage.client.get(at)
    expected = {"phase": "out"} | ({"observedGeneration": 1} if kind == "composite" else {})
    assert left["status"] == expected
    assert len(stage.hook.on("/finalize")) == 1


@check("MC-54")
async def test_a_parent_whose_selector_selects_nothing_can_still_be_let_go(stage: Stage) -> None:
    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent(spec={"selector": {}}, metadata={"finalizers": [finalizer(stage)]})

        await stage.until(stage.parent(), lambda obj: obj is not None and not meta.finalizers(obj))
        await stage.until_event(stage.parent(), "SyncError", "spec.selector")


@check("MC-57")
async def test_a_sync_hook_cannot_say_that_a_living_parent_is_finalized(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c")], "finalized": True}

    async with stage.running():
        await stage.given_composite(
            "cc", childResources=config_maps(), hooks=hooks(stage, "sync", "finalize")
        )
        await stage.given_parent()
        await stage.until_there(stage.at("ConfigMap", "c"))
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until(stage.parent(), lambda obj: bool(obj and obj["status"]["observedGeneration"] == 2))
        await stage.settled()

    parent = await stage.client.get(stage.parent())
    assert held(parent, finalizer(stage))
    versions = [one for one in meta.metadata(parent)["managedFields"] if not one.get("subresource")]
    assert any(one["manager"] == "metacontroller" for one in versions)
    assert all(finalizer(stage) in said["parent"]["metadata"]["finalizers"] for said in stage.hook.requests)


@check("MC-58")
async def test_a_controller_that_only_finalizes_leaves_the_living_alone(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"finalized": True}

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), hooks=hooks(stage, "finalize"))
        await stage.given_parent()
        await stage.until(stage.parent(), lambda obj: held(obj, finalizer(stage)))
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.settled()
        assert stage.hook.requests == []
        assert await stage.events(stage.parent()) == []
        assert "status" not in await stage.client.get(stage.parent())

        await stage.client.delete(stage.parent())
        await stage.until_gone(stage.parent())
    assert len(stage.hook.on("/finalize")) == 1
