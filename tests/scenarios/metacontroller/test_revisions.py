"""The revisions of a rollout: how they are named, and which parents have none."""

import hashlib
from collections.abc import Sequence

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.rolls import (
    Roll,
    image_of,
)
from tests.scenarios.metacontroller.stage import API, Stage, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-82")
async def test_a_revision_is_named_and_labelled_so_that_it_is_found_again(stage: Stage) -> None:
    roll = Roll(stage)
    stage.group = ".".join((60 * "x", 60 * "y", 60 * "z", stage.group))
    async with stage.running():
        await stage.given_kind("Thing")
        await stage.given_kind("Part")
        roll.kind = (f"{stage.group}/v1", "Part")
        await roll.given_controller()
        labels = {"component": "backend", "app": "x"}
        template = {"image": "one", "note": "<&>", "metadata": {"labels": labels}}
        parent = await stage.given_parent(spec={"parts": ["a"], "template": template})
        await roll.until_revisions("one")

    (revision,) = await roll.revisions()
    patch = (
        r'{"spec":{"template":{"image":"one","metadata":{"labels":{"app":"x","component":"backend"}},'
        r'"note":"\u003c\u0026\u003e"}}}'
    )
    digest = hashlib.sha1((meta.uid(parent) + patch).encode()).hexdigest()
    assert meta.name(revision) == f"things.{stage.group}"[:212] + f"-{digest}"
    assert revision["parentPatch"] == {"spec": {"template": template}}
    # A label holds 63 characters, and a group may have more.
    short = f"{stage.group[:52]}-{hashlib.sha1(stage.group.encode()).hexdigest()[:10]}"
    assert meta.labels(revision) == {
        **labels,
        "metacontroller.k8s.io/apiGroup": short,
        "metacontroller.k8s.io/resource": "things",
    }
    assert meta.owner_refs(revision) == [meta.owner_ref(parent, controller=True, blocks=True)]
    assert revision["children"] == [{"apiGroup": stage.group, "kind": "Part", "names": ["a"]}]
    assert image_of(revision) == "one"


@check("MC-82")
async def test_a_parent_of_the_core_group_has_revisions_too(stage: Stage) -> None:
    def answer(said: Said) -> Said:
        image = said["parent"]["metadata"]["annotations"]["image"]
        return {"status": {}, "children": [desired("ConfigMap", "c", data={"image": image})]}

    stage.hook.answer = answer
    parent = {
        "apiVersion": "v1",
        "resource": "replicationcontrollers",
        "labelSelector": {"matchLabels": {"story": stage.namespace}},
        "revisionHistory": {"fieldPaths": ["spec.template"]},
    }
    rolling = {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}}
    async with stage.running():
        await stage.given_composite("rc", parentResource=parent, childResources=[rolling], generateSelector=True)  # fmt: skip
        template = {
            "metadata": {"labels": {"app": "nginx"}},
            "spec": {"containers": [{"name": "c", "image": "one"}]},
        }
        made = await stage.create(
            {
                "apiVersion": "v1",
                "kind": "ReplicationController",
                "metadata": {
                    "name": "rc",
                    "namespace": stage.namespace,
                    "labels": {"story": stage.namespace},
                    "annotations": {"image": "one"},
                },
                "spec": {"replicas": 0, "selector": {"app": "nginx"}, "template": template},
            }
        )
        await stage.until_listed("ControllerRevision", lambda those: len(those) == 1, API)

    (revision,) = await revisions_of(stage)
    assert meta.name(revision).startswith("replicationcontrollers.core-")
    assert len(meta.name(revision).removeprefix("replicationcontrollers.core-")) == 40
    assert meta.labels(revision) == {
        "controller-uid": meta.uid(made),
        "metacontroller.k8s.io/apiGroup": "",
        "metacontroller.k8s.io/resource": "replicationcontrollers",
    }


async def revisions_of(stage: Stage) -> Sequence[Made]:
    return await stage.listed("ControllerRevision", API)


@check("MC-83")
async def test_children_of_a_parent_without_a_namespace_cannot_roll_and_it_is_said_why(stage: Stage) -> None:
    await stage.given_kind("World", namespaced=False)
    rolling = {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}}
    parent = {"apiVersion": f"{stage.group}/v1", "resource": "worlds"}
    async with stage.running():
        made = await stage.given_composite("cc", parentResource=parent, childResources=[rolling])
        told = await stage.until_event(meta.ref(made), "CreateError", "cannot roll")

    assert told["message"].startswith("Cannot create new controller: ")
    assert "worlds are cluster-scoped" in told["message"]
    assert stage.hook.requests == []
