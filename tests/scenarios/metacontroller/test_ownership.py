"""Whose children are whose."""

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")


def orphan(stage: Stage, name: str = "orphan", **labels: str) -> Made:
    return {
        **desired("ConfigMap", name),
        "metadata": {"name": name, "namespace": stage.namespace, "labels": labels},
    }


def seen(said: Said) -> set[str]:
    return set(said["children"]["ConfigMap.v1"])


@check("MC-46")
async def test_an_orphan_with_the_right_labels_is_adopted_and_shown(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", name) for name in sorted(seen(said))]}
    await stage.create(orphan(stage, "early", app="x"))
    await stage.create(orphan(stage, "stranger", app="y"))

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        parent = await stage.given_parent()
        owner = meta.owner_ref(parent, controller=True, blocks=True)
        await stage.until(
            stage.at("ConfigMap", "early"), lambda obj: bool(obj and meta.owner_refs(obj) == [owner])
        )

        await stage.create(orphan(stage, "late", app="x"))
        await stage.until(
            stage.at("ConfigMap", "late"), lambda obj: bool(obj and meta.owner_refs(obj) == [owner])
        )
        await stage.settled()

    assert seen(stage.hook.requests[-1]) == {"early", "late"}
    assert meta.owner_refs(await stage.client.get(stage.at("ConfigMap", "stranger"))) == ()


@check("MC-46")
async def test_an_orphan_that_was_adopted_and_is_not_wanted_goes(stage: Stage) -> None:
    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.create(orphan(stage, app="x"))

        await stage.until_gone(stage.at("ConfigMap", "orphan"))

    assert any("orphan" in seen(said) for said in stage.hook.requests)


@check("MC-47")
async def test_a_child_with_other_labels_is_let_go(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c")] if not let_go else []}
    let_go: list[bool] = []
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until_there(at)
        await stage.settled()

        let_go.append(True)
        heard = stage.hook.count()
        await stage.client.patch(at, {"metadata": {"labels": {"app": "other"}}})

        await stage.until(at, lambda obj: bool(obj and not meta.owner_refs(obj)))
        await stage.hook.called(heard + 1)
        await stage.settled()

    assert seen(stage.hook.requests[-1]) == set()
    assert await stage.get(at) is not None


@check("MC-48")
async def test_a_child_of_another_controller_is_ignored_whatever_its_labels(stage: Stage) -> None:
    await stage.given_kind("Owner")
    owner = meta.owner_ref(await stage.given_parent("o", "Owner"), controller=True, blocks=True)
    theirs = orphan(stage, "theirs", app="x")
    theirs["metadata"]["ownerReferences"] = [owner]
    before = await stage.create(theirs)

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status")))
        await stage.settled()

    assert all(seen(said) == set() for said in stage.hook.requests)
    assert await stage.client.get(stage.at("ConfigMap", "theirs")) == before


@check("MC-49")
async def test_a_child_whose_labels_would_lose_it_again_is_not_made(stage: Stage) -> None:
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", "good"), desired("ConfigMap", "bad", labels={"app": "y"})]
    }

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        told = await stage.until_event(stage.parent(), "SyncError", "labels on desired child")
        await stage.settled()

    assert "don't match parent selector" in told["message"]
    assert "bad" in told["message"]
    assert await stage.listed("ConfigMap") == []


@check("MC-49")
@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}, {"matchLabels": "x"}, "app=x"])
async def test_a_parent_without_a_selector_that_selects_is_in_error(stage: Stage, selector: object) -> None:
    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent(spec={"selector": selector})
        await stage.until_event(stage.parent(), "SyncError", "spec.selector")

        await stage.client.patch(stage.parent(), {"spec": {"selector": None}})
        good = {"spec": {"selector": {"matchLabels": {"app": "x"}}}}
        await stage.client.patch(stage.parent(), good)
        await stage.hook.called(1)


@check("MC-50")
async def test_a_selector_that_is_made_up_needs_none_from_the_parent(stage: Stage) -> None:
    child = desired("ConfigMap", "c", labels={"own": "label"})
    stage.hook.answer = lambda said: {"children": [child]}

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), generateSelector=True)
        parent = await stage.given_parent(spec={"selector": None})
        made = await stage.until_there(stage.at("ConfigMap", "c"))
        assert meta.labels(made) == {"own": "label", "controller-uid": meta.uid(parent)}

        stage.hook.answer = lambda said: {
            "children": [child, desired("ConfigMap", "d", labels={"controller-uid": "other"})]
        }
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until_event(stage.parent(), "SyncError", "labels on desired child")
        await stage.settled()

    assert [meta.name(one) for one in await stage.listed("ConfigMap")] == ["c"]


@check("MC-51")
async def test_children_of_a_parent_that_is_gone_are_not_those_of_its_namesake(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"children": [desired("ConfigMap", "c")]}
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        first = await stage.given_parent()
        await stage.until_there(at)
        await stage.client.patch(at, {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(stage.parent())
        await stage.until_gone(stage.parent())

        second = await stage.given_parent()
        await stage.until_event(stage.parent(), "NameTaken")
        mine = [said for said in stage.hook.requests if said["parent"]["metadata"]["uid"] == meta.uid(second)]
        assert mine
        assert all(seen(said) == set() for said in mine)
        assert meta.is_controlled_by(await stage.client.get(at), meta.uid(first))

        # The garbage collector asks for its end; who holds it lets go.
        await stage.until(at, lambda obj: bool(obj and meta.is_deleting(obj)))
        await stage.client.patch(at, {"metadata": {"finalizers": None}})
        await stage.until(at, lambda obj: bool(obj and meta.is_controlled_by(obj, meta.uid(second))))


@check("MC-52")
async def test_a_parent_that_is_being_deleted_adopts_nothing(stage: Stage) -> None:
    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent(metadata={"finalizers": ["example.com/held"]})
        await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status")))
        await stage.client.delete(stage.parent())
        await stage.until(stage.parent(), lambda obj: bool(obj and meta.is_deleting(obj)))
        await stage.settled()

        heard = stage.hook.count()
        before = await stage.create(orphan(stage, app="x"))
        await stage.hook.called(heard + 1)
        await stage.settled()

        assert await stage.client.get(stage.at("ConfigMap", "orphan")) == before
        await stage.client.patch(stage.parent(), {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.parent())
