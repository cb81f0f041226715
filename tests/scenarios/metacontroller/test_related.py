"""Related objects: what a hook asked to see."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import TIMEOUT, Stage, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")

MAPS = {"apiVersion": "v1", "resource": "configmaps"}


def hooks(stage: Stage, sync: str = "v2", customize: str = "v2") -> Made:
    return {
        "sync": {"version": sync, "webhook": {"url": f"{stage.hook.url}/sync"}},
        "customize": {"version": customize, "webhook": {"url": f"{stage.hook.url}/customize"}},
    }


def as_the_parent_says(stage: Stage) -> None:
    """Have the customize hook answer with the rules in the parent's spec, and the sync hook want nothing."""
    stage.hook.paths["/customize"] = lambda said: {"relatedResources": said["parent"]["spec"]["rules"]}


async def given_map(stage: Stage, name: str, namespace: str = "", **labels: str) -> Made:
    made = desired("ConfigMap", name, labels=labels, data={"n": "0"})
    made["metadata"]["namespace"] = namespace or stage.namespace
    return await stage.create(made)


async def given_namespace(stage: Stage, **labels: str) -> str:
    name = f"s-{uuid4().hex[:10]}"
    await stage.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )
    return name


def related(stage: Stage, name: str = "a") -> Any:
    """Return what a parent's hook was shown last, or None if it has not been called."""
    about = [one for one in stage.hook.on("/sync") if one["parent"]["metadata"]["name"] == name]
    return about[-1]["related"] if about else None


async def until_shown(stage: Stage, keys: set[str], name: str = "a", kind: str = "ConfigMap.v1") -> None:
    """Wait until the hook was shown exactly these for a parent, besides what every namespace has."""
    await eventually(lambda: _own(related(stage, name), kind), lambda found: found == keys, seconds=TIMEOUT)


def _own(found: Said | None, kind: str) -> set[str] | None:
    if found is None:
        return None
    return {key for key in found.get(kind, ()) if not key.endswith("kube-root-ca.crt")}


@check("MC-64")
async def test_each_kind_of_rule_selects_exactly_what_it_says(stage: Stage) -> None:
    as_the_parent_says(stage)
    red, blue = (
        await given_namespace(stage, colour=stage.namespace),
        await given_namespace(stage, colour="blue"),
    )
    for place in (stage.namespace, red, blue):
        await given_map(stage, "one", place, size=stage.namespace)
        await given_map(stage, "two", place, size="small")
    here = stage.namespace
    size = {"matchLabels": {"size": here}}
    rules: dict[str, tuple[Made, set[str]]] = {
        "names": ({"names": ["one"], "namespace": here}, {f"{here}/one"}),
        "labels": ({"labelSelector": size}, {f"{here}/one", f"{red}/one", f"{blue}/one"}),
        "both": ({"labelSelector": size, "namespace": red}, {f"{red}/one"}),
        "namespace": ({"namespace": blue}, {f"{blue}/one", f"{blue}/two"}),
        "selector": (
            {"namespaceSelector": {"matchLabels": {"colour": here}}, "labelSelector": size},
            {f"{red}/one"},
        ),
        "selected": ({"namespaceSelector": {"matchLabels": {"colour": here}}}, {f"{red}/one", f"{red}/two"}),
        "absent": ({"names": ["none"], "namespace": here}, set()),
    }
    async with stage.running():
        await stage.given_composite("cc", hooks=hooks(stage))
        for name, (rule, _) in rules.items():
            await stage.given_parent(name, spec={"rules": [{**MAPS, **rule}]})
        for name, (_, keys) in rules.items():
            await until_shown(stage, keys, name)


@check("MC-64")
async def test_a_change_of_a_related_object_enqueues_only_the_parents_that_asked_for_it(
    stage: Stage,
) -> None:
    as_the_parent_says(stage)
    where = await given_namespace(stage)
    here = stage.namespace
    async with stage.running():
        await stage.given_composite("cc", hooks=hooks(stage))
        await stage.given_parent("a", spec={"rules": [{**MAPS, "labelSelector": {"matchLabels": {"of": f"a-{here}"}}}]})  # fmt: skip
        await stage.given_parent("b", spec={"rules": [{**MAPS, "namespace": here, "names": ["b"]}]})
        chosen = {"matchLabels": {"chosen": here}}
        await stage.given_parent("c", spec={"rules": [{**MAPS, "namespaceSelector": chosen}]})
        await stage.hook.called(3, "/sync")
        await stage.settled()

        stage.hook.forget()
        await given_map(stage, "x", where, of=f"a-{here}")
        await until_shown(stage, {f"{where}/x"}, "a")
        await stage.client.patch(stage.at("ConfigMap", "x", namespace=where), {"data": {"n": "1"}})
        await stage.hook.called(2, "/sync")
        assert related(stage)["ConfigMap.v1"][f"{where}/x"]["data"] == {"n": "1"}
        await stage.client.patch(
            stage.at("ConfigMap", "x", namespace=where), {"metadata": {"labels": {"of": "z"}}}
        )
        await until_shown(stage, set(), "a")
        await given_map(stage, "b")
        await until_shown(stage, {f"{here}/b"}, "b")
        await stage.client.delete(stage.at("ConfigMap", "b"))
        await until_shown(stage, set(), "b")
        await stage.settled()
        heard = [one["parent"]["metadata"]["name"] for one in stage.hook.on("/sync")]
        assert heard == ["a", "a", "a", "b", "b"]

        await stage.client.patch(
            stage.at("Namespace", where, namespace=""), {"metadata": {"labels": {"chosen": here}}}
        )
        await until_shown(stage, {f"{where}/x"}, "c")
        await stage.settled()
        assert {one["parent"]["metadata"]["name"] for one in stage.hook.on("/sync")[5:]} == {"c"}
    assert stage.hook.on("/customize") == []


@check("MC-64")
async def test_a_decorator_may_ask_too_and_every_kind_it_names_is_there(stage: Stage) -> None:
    rules = [{**MAPS, "names": ["m"]}, {"apiVersion": "v1", "resource": "secrets", "names": ["none"]}]
    stage.hook.paths["/customize"] = lambda said: {"relatedResources": rules}
    await given_map(stage, "m")
    async with stage.running():
        resources = [{"apiVersion": f"{stage.group}/v1", "resource": "things"}]
        await stage.given_decorator("dec", resources=resources, hooks=hooks(stage, "v1", "v1"))
        await stage.given_parent()
        await stage.hook.called(1, "/sync")

    (said,) = stage.hook.on("/sync")[:1]
    assert {kind: set(those) for kind, those in said["related"].items()} == {"ConfigMap.v1": {"m"}, "Secret.v1": set()}  # fmt: skip
    assert stage.hook.on("/customize")[0].keys() == {"controller", "parent"}


@check("MC-65")
async def test_version_one_looks_no_further_than_the_parents_namespace_and_version_two_anywhere(
    stage: Stage,
) -> None:
    as_the_parent_says(stage)
    where, here = await given_namespace(stage), stage.namespace
    await given_map(stage, "m", where)
    rules = [{**MAPS, "namespace": where, "names": ["m"]}]
    async with stage.running():
        made = await stage.given_composite("cc", hooks=hooks(stage, "v1", "v1"))
        await stage.given_parent(spec={"rules": rules})
        await stage.until_event(
            stage.parent(),
            "SyncError",
            f"requested related object namespace {where} differs from parent object namespace {here}",
        )
        assert stage.hook.on("/sync") == []

        # What version 2 selects, version 1 does not show.
        await stage.client.patch(meta.ref(made), {"spec": {"hooks": hooks(stage, "v1", "v2")}})
        await stage.hook.called(1, "/sync")
        assert related(stage) == {"ConfigMap.v1": {}}

        await stage.client.patch(meta.ref(made), {"spec": {"hooks": hooks(stage, "v2", "v2")}})
        await until_shown(stage, {f"{where}/m"}, kind="ConfigMap.v1")


@check("MC-65")
async def test_a_namespaced_parent_sees_objects_without_a_namespace_in_both_versions(stage: Stage) -> None:
    as_the_parent_says(stage)
    where = await given_namespace(stage, of=stage.namespace)
    rule = {
        "apiVersion": "v1",
        "resource": "namespaces",
        "labelSelector": {"matchLabels": {"of": stage.namespace}},
    }
    async with stage.running():
        made = await stage.given_composite("cc", hooks=hooks(stage, "v2", "v2"))
        await stage.given_parent(spec={"rules": [rule]})
        await until_shown(stage, {where}, kind="Namespace.v1")
        calls = stage.hook.count("/sync")
        await stage.client.patch(meta.ref(made), {"spec": {"hooks": hooks(stage, "v1", "v1")}})
        await stage.hook.called(calls + 1, "/sync")
        await until_shown(stage, {where}, kind="Namespace.v1")


EVERYTHING: Made = {"matchLabels": {}}
SENSELESS: dict[str, tuple[Made, str]] = {
    "names and labels": ({**MAPS, "names": ["a"], "labelSelector": {"matchLabels": {"a": "b"}}}, "names cannot be combined"),
    "names and an empty selector": ({**MAPS, "names": ["a"], "labelSelector": {}}, "names cannot be combined"),
    "names and namespaces": ({**MAPS, "names": ["a"], "namespaceSelector": EVERYTHING}, "names cannot be combined"),
    "namespace twice": ({**MAPS, "namespace": "default", "namespaceSelector": EVERYTHING}, "namespace cannot be combined"),
    "namespaces of what has none": ({"apiVersion": "v1", "resource": "nodes", "namespaceSelector": EVERYTHING}, "cluster-scoped"),
    "an unknown kind": ({"apiVersion": "v1", "resource": "nonsenses"}, "can't find resource nonsenses"),
    "no kind": ({"apiVersion": "v1"}, "resource"),
    "a selector without a meaning": ({**MAPS, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, "selector"),
}  # fmt: skip


@check("MC-66")
@pytest.mark.parametrize("case", SENSELESS)
async def test_a_rule_without_a_meaning_is_named(stage: Stage, case: str) -> None:
    as_the_parent_says(stage)
    rule, text = SENSELESS[case]
    async with stage.running():
        await stage.given_composite("cc", hooks=hooks(stage))
        await stage.given_parent(spec={"rules": [{**MAPS, "names": ["fine"]}, rule]})
        told = await stage.until_event(stage.parent(), "SyncError", text)

    assert "relatedResources[1]" in told["message"]
    assert stage.hook.on("/sync") == []


@check("MC-66")
async def test_version_one_cannot_select_namespaces_for_a_namespaced_parent(stage: Stage) -> None:
    as_the_parent_says(stage)
    async with stage.running():
        await stage.given_composite("cc", hooks=hooks(stage, "v1", "v1"))
        await stage.given_parent(spec={"rules": [{**MAPS, "namespaceSelector": EVERYTHING}]})
        await stage.until_event(stage.parent(), "SyncError", "relatedResources[0]: namespaceSelector needs")


@check("MC-67")
async def test_other_labels_of_a_parent_fetch_other_rules(stage: Stage) -> None:
    stage.hook.paths["/customize"] = lambda said: {
        "relatedResources": [{**MAPS, "names": [said["parent"]["metadata"]["labels"]["wants"]]}]
    }
    for name in ("m", "n"):
        await given_map(stage, name)
    async with stage.running():
        await stage.given_composite("cc", hooks=hooks(stage, "v1", "v1"))
        await stage.given_parent(metadata={"labels": {"wants": "m"}})
        await until_shown(stage, {"m"}, kind="ConfigMap.v1")
        asked = len(stage.hook.on("/customize"))
        await stage.client.patch(stage.parent(), {"metadata": {"labels": {"wants": "n"}}})
        await until_shown(stage, {"n"}, kind="ConfigMap.v1")
        # A status is no reason to ask again.
        calls = stage.hook.count("/sync")
        await stage.client.patch(stage.parent(), {"status": {"x": 1}}, subresource="status")
        await stage.hook.called(calls + 1, "/sync")
        await stage.settled()

    assert len(stage.hook.on("/customize")) == asked + 1


@check("MC-68")
async def test_a_burst_of_related_changes_calls_no_customize_hook_again(stage: Stage) -> None:
    parents, bursts = 200, 1000
    stage.hook.paths["/customize"] = lambda said: {"relatedResources": [{**MAPS, "names": ["shared"]}]}
    await given_map(stage, "shared")
    async with stage.running():
        await stage.given_composite("cc", hooks=hooks(stage, "v1", "v1"))
        await asyncio.gather(*(stage.given_parent(f"p{number}") for number in range(parents)))
        await stage.hook.called(parents, "/sync")
        await stage.settled()
        for number in range(1, bursts + 1):
            await stage.client.patch(stage.at("ConfigMap", "shared"), {"data": {"n": str(number)}})
        await stage.settled()

    asked = [said["parent"]["metadata"]["uid"] for said in stage.hook.on("/customize")]
    assert len(asked) == len(set(asked)) == parents
    last: dict[str, str] = {}
    for said in stage.hook.on("/sync"):
        last[said["parent"]["metadata"]["uid"]] = said["related"]["ConfigMap.v1"]["shared"]["data"]["n"]
    assert set(last.values()) == {str(bursts)}
    assert len(stage.hook.on("/sync")) < parents * bursts / 10
