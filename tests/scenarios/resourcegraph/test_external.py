"""External objects, objects that several instances want, and what the server does not accept."""

from typing import Any

import pytest

from lamina.errors import Invalid
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    TIMEOUT,
    Stage,
    condition,
    config_map,
    is_active,
    message,
    node,
    status,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = "${schema.spec.name}"
ADMISSION = "admissionregistration.k8s.io/v1"


def external(id: str, **metadata: Any) -> Made:
    return {"id": id, "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}


def is_in(state: str) -> Any:
    return lambda obj: status(obj).get("state") == state


@check("RG-50")
async def test_an_external_object_is_waited_for_followed_and_never_deleted(stage: Stage) -> None:
    reads = node("reads", config_map(f"{NAME}-reads", token="${shared.data.token}"))
    ref = stage.object_ref("shared")
    async with stage.running():
        await stage.given_definition(external("shared", name="${schema.spec.from}"), reads, spec={"name": "string", "from": "string"})  # fmt: skip
        made = await stage.given_instance("a1", settles=False, **{"from": "shared"})
        found = await stage.until_instance("a1", is_in("IN_PROGRESS"))
        await stage.settled()
        assert await stage.children() == []
        text = message(found, "ResourcesReady")
        assert '"shared"' in text and "not found" in text, text

        theirs = await stage.client.create(stage.placed(config_map("shared", token="one")))
        await stage.until_object("a1-reads", lambda obj: obj["data"] == {"token": "one"})
        await stage.until_instance("a1")
        await stage.edit(ref, {"data": {"token": "two"}})
        await stage.until_object("a1-reads", lambda obj: obj["data"] == {"token": "two"})
        await stage.until_instance("a1")

        await stage.client.delete(meta.ref(made))
        await stage.until_gone(meta.ref(made))
        kept = await stage.client.get(ref)
        assert (meta.uid(kept), kept["data"]) == (meta.uid(theirs), {"token": "two"})
        assert not meta.labels(kept) and not meta.annotations(kept) and not meta.finalizers(kept)
        assert await stage.children() == []
        assert not [one for one in stage.journal.requests if one.ref == ref]


@check("RG-51")
async def test_an_external_collection_has_what_its_selector_matches(stage: Stage) -> None:
    found = external("found", selector={"matchLabels": {"team": "${schema.spec.team}"}})
    lists = node("lists", config_map(f"{NAME}-lists", names="${found.map(one, one.metadata.name).join(',')}"))

    async def until_listed(names: str) -> None:
        await stage.until_object("a1-lists", lambda obj: obj["data"] == {"names": names})
        await stage.until_instance("a1")

    def labelled(name: str, team: str) -> Made:
        made = stage.placed(config_map(name))
        made["metadata"]["labels"] = {"team": team}
        return made

    blue, red = f"blue-{stage.id}", f"red-{stage.id}"
    async with stage.running():
        await stage.client.create(labelled("one", blue))
        await stage.client.create(labelled("other", red))
        await stage.given_definition(found, lists, spec={"name": "string", "team": "string"})
        await stage.given_instance("a1", team=blue)
        await until_listed("one")

        await stage.client.create(labelled("two", blue))
        await until_listed("one,two")
        await stage.edit(stage.object_ref("one"), {"metadata": {"labels": {"team": red}}})
        await until_listed("two")
        await stage.edit(stage.object_ref("other"), {"metadata": {"labels": {"team": blue}}})
        await until_listed("other,two")
        await stage.client.delete(stage.object_ref("two"))
        await until_listed("other")
        await stage.edit_spec("a1", team=red)
        await until_listed("one")


@check("RG-52")
async def test_an_object_that_two_instances_want_stays_with_the_first(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(node("config", config_map("${schema.spec.target}", of=NAME)), spec={"name": "string", "target": "string"})  # fmt: skip
        first = await stage.given_instance("a1", target="shared")
        await stage.given_instance("a2", settles=False, target="shared")
        second = await stage.until_instance("a2", is_in("ERROR"))
        text = message(second, "ResourcesReady")
        assert "belongs to ApplySet" in text and "cannot reassign" in text and "shared" in text, text
        assert condition(second, "Ready") == ("False", "NotReady")
        await stage.settled()
        kept = await stage.until_object("shared")
        assert kept["data"] == {"of": "a1"}
        assert meta.labels(kept)["kro.run/instance-id"] == meta.uid(first)
        assert is_active(await stage.instance_now("a1"))

        # Once the first gives it up, the second has it.
        await stage.client.delete(meta.ref(first))
        await stage.until_gone(meta.ref(first))
        await stage.until_object("shared", lambda obj: obj["data"] == {"of": "a2"})
        await stage.until_instance("a2")


@check("RG-60")
async def test_the_pods_of_a_job_that_is_pruned_go_with_it(stage: Stage) -> None:
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME},
        "spec": {"suspend": True, "template": {"spec": pod_spec}},
    }
    optional = {**node("job", job), "includeWhen": ["${schema.spec.enabled}"]}
    kind = "Pod"
    async with stage.running():
        await stage.given_definition(optional, spec={"name": "string", "enabled": "boolean"})
        await stage.given_instance("a1", enabled=True)
        owner = await stage.until(stage.object_ref("a1", api_version="batch/v1", kind="Job"))
        pod = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {
                "name": "a1-x",
                "namespace": stage.namespace,
                "ownerReferences": [meta.owner_ref(owner)],
            },
            "spec": pod_spec,
        }
        await stage.until_accepted(pod)

        await stage.edit_spec("a1", enabled=False)
        await stage.until_gone(meta.ref(owner))
        await stage.until_instance("a1")
        await stage.until_ending(stage.object_ref("a1-x", kind=kind))


def _policy(stage: Stage) -> tuple[Made, Made]:
    """A policy that denies ConfigMaps of the scenario whose data say so, and its binding."""
    name = f"rg-{stage.id}"
    here = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
    }
    validation = {
        "expression": "!has(object.data) || !('replicas' in object.data) || object.data.replicas != '7'",
        "message": "seven is too many",
    }
    policy = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
            "validations": [validation],
        },
    }
    binding = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding


async def _is_denied(stage: Stage) -> bool:
    try:
        await stage.client.create(stage.placed(config_map("probe", replicas="7")), dry_run=True)
    except Invalid:
        return True
    return False


def _revisions(obj: Obj) -> tuple[int, int, str, int]:
    """Return what an instance moves to: the revisions, and the status and the target of its propagation."""
    found = status(obj)
    propagation = found["propagation"]
    return (
        found["currentRGDRevision"],
        found["currentInputRevision"],
        propagation["status"],
        propagation["targetInputRevision"],
    )


async def _lift(stage: Stage, *objects: Obj) -> None:
    for one in objects:
        await stage.client.delete(Ref(one["apiVersion"], one["kind"], "", meta.name(one)))


@check("RG-61")
async def test_what_a_policy_denies_is_reported_and_heals_when_the_policy_is_lifted(stage: Stage) -> None:
    policy, binding = _policy(stage)
    for one in (policy, binding):
        await stage.client.create(one)
    try:
        await eventually(lambda: _is_denied(stage), seconds=TIMEOUT)
        async with stage.running():
            await stage.given_definition()
            await stage.given_instance("a1")
            await stage.edit_spec("a1", replicas=7)
            found = await stage.until_instance("a1", is_in("ERROR"))
            assert "seven is too many" in message(found, "ResourcesReady")
            assert "a1-cm" in message(found, "ResourcesReady")
            assert condition(found, "Ready") == ("False", "NotReady")
            (_, newest) = await stage.input_revisions("a1")
            await stage.until(meta.ref(newest), lambda obj: status(obj).get("propagationStatus") == "Failed")
            assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "1"}
            await stage.until_instance("a1", lambda obj: _revisions(obj) == (1, 2, "InProgress", 2))

            data = {"replicas": "${string(schema.spec.replicas)}", "version": "2"}
            await stage.redefine(node("config", config_map(f"{NAME}-cm", **data)))
            found = await stage.until_instance("a1", lambda obj: _revisions(obj) == (2, 3, "InProgress", 3))
            assert is_in("ERROR")(found) and "pendingRGDRevision" not in status(found)["propagation"]
            assert status(found)["observedRGDRevision"] == 1

            await _lift(stage, binding, policy)
            await stage.until_passing_time("a1", is_active)
            assert (await stage.until_object("a1-cm"))["data"] == {"replicas": "7", "version": "2"}
            assert len(await stage.input_revisions("a1")) == 3
    finally:
        for one in (binding, policy):
            if await stage.get(Ref(one["apiVersion"], one["kind"], "", meta.name(one))) is not None:
                await _lift(stage, one)
