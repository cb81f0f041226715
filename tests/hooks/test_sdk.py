"""The declarations of a hooks file, as values."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import lamina
from lamina.families.metacontroller import api, labels
from lamina.families.metacontroller.crds import definitions
from lamina.hooks import sdk
from lamina.hooks.call import arguments, reply

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def composite(function: Callable[..., Any]) -> lamina.Hook:
    return lamina.sync("ex.com/v1/things", children=["v1/pods"])(function)


def decorator(function: Callable[..., Any]) -> lamina.Hook:
    return lamina.decorate("apps/v1/statefulsets", attachments=["v1/services"])(function)


def said(hook: lamina.Hook, purpose: str, result: Any) -> Any:
    return json.loads(reply(hook, purpose, result))


def nothing(parent: lamina.Obj) -> list[lamina.Obj]:
    return []


# ── public names ──


def test_every_public_name_is_there_and_nothing_else_is_offered() -> None:
    assert dir(lamina) == sorted(lamina.__all__)
    for name in lamina.__all__:
        assert getattr(lamina, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'sink'"):
        lamina.sink  # noqa: B018


def test_importing_the_package_loads_none_of_it() -> None:
    loaded = "import lamina, sys; print([name for name in sys.modules if name.startswith('lamina.')])"

    assert subprocess.check_output([sys.executable, "-c", loaded], text=True).strip() == "[]"


# ── declarations ──


def test_what_a_file_declares_is_of_the_kinds_that_the_family_defines() -> None:
    hooks = [composite(nothing).finalize(nothing), decorator(nothing)]
    declared = {(one.manifest()["apiVersion"], one.manifest()["kind"]) for one in hooks}
    known = {one["spec"]["names"]["kind"]: one["spec"]["names"]["plural"] for one in definitions()}

    assert declared == {(labels.API_VERSION, kind.kind) for kind in (labels.COMPOSITE, labels.DECORATOR)}
    assert (sdk.GROUP, sdk.API) == (labels.GROUP, labels.API_VERSION)
    assert sorted(sdk.PLURALS) == sorted(known[kind] for _, kind in declared)
    assert hooks[0].manifest()["metadata"]["annotations"] == {labels.ON_DELETE: "release"}


def test_a_composite_says_what_it_is_about() -> None:
    hook = lamina.sync(
        "ctl.example.com/v1/catsets",
        children={"v1/pods": lamina.Update("RollingRecreate", {"Ready": "True"}, max_unavailable="20%"),
                  "v1/persistentvolumeclaims": "OnDelete"},
        labels={"team": "cats"}, revision_fields=["spec.template"], revisions_kept=5, timeout="3s", resync=60,
        generate_selector=True, ignore_status_changes=True,
    )(nothing)  # fmt: skip

    spec = api.composite(hook.manifest())

    assert hook.manifest()["metadata"] == {"name": "nothing"}
    assert (spec.parent_resource.api_version, spec.parent_resource.resource) == (
        "ctl.example.com/v1",
        "catsets",
    )
    assert spec.parent_resource.label_selector == api.LabelSelector(match_labels={"team": "cats"})
    assert spec.parent_resource.revision_history == api.RevisionHistory(
        field_paths=("spec.template",), limit=5
    )
    pods, claims = spec.child_resources
    assert pods.update_strategy is not None and pods.update_strategy.rolling_update is not None
    assert pods.update_strategy.method == "RollingRecreate"
    assert pods.update_strategy.rolling_update.max_unavailable == "20%"
    assert claims.update_strategy is not None and claims.update_strategy.method == "OnDelete"
    assert spec.hooks is not None and spec.hooks.sync is not None and spec.hooks.sync.webhook is not None
    assert spec.hooks.sync.webhook.url == "hook:nothing/sync"
    assert spec.hooks.sync.webhook.timeout == "3s"
    assert spec.generate_selector and spec.resync_period_seconds == 60


def test_a_decorator_says_what_it_is_about() -> None:
    hook = lamina.decorate(
        "v1/pods", "apps/v1/statefulsets", attachments=["v1/services"], name="extras", version="v2",
        labels={"a": "b"}, annotations={"c": "d"}, annotation_exists=["e"],
    )(nothing)  # fmt: skip

    spec = api.decorator(hook.manifest("http://hooks.default/"))

    assert [one.resource for one in spec.resources] == ["pods", "statefulsets"]
    assert spec.resources[1].label_selector == api.LabelSelector(match_labels={"a": "b"})
    assert spec.resources[1].annotation_selector == api.AnnotationSelector(
        match_annotations={"c": "d"}, match_expressions=(api.Requirement(key="e", operator="Exists"),)
    )
    assert spec.hooks is not None and spec.hooks.sync is not None and spec.hooks.sync.webhook is not None
    assert spec.hooks.sync.version == "v2"
    assert spec.hooks.sync.webhook.url == "http://hooks.default/extras/sync"


def test_finalize_and_customize_return_another_value_and_leave_the_first_as_it_was() -> None:
    first = composite(nothing)

    second = first.finalize(nothing).customize(nothing)

    assert list(first.functions) == ["sync"]
    assert list(second.manifest()["spec"]["hooks"]) == ["sync", "finalize", "customize"]
    assert second.manifest()["metadata"]["annotations"] == {"metacontroller.k8s.io/on-delete": "release"}
    assert "annotations" not in second.manifest("http://hooks/")["metadata"]
    assert second.name == first.name


def test_a_hook_can_be_called_like_the_function_it_is() -> None:
    @composite
    def web(parent: lamina.Obj) -> list[lamina.Obj]:
        return [{**POD, "metadata": {"name": parent["metadata"]["name"]}}]

    assert web({"metadata": {"name": "a"}})[0]["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (
            lambda: composite(lambda sibling: []),
            "has a parameter 'sibling'; a sync hook can have parent, object",
        ),
        (lambda: composite(lambda **all: []), "name the parameters instead of using"),
        (lambda: composite(nothing).customize(lambda children: []), "a customize hook can have parent"),
        (lambda: lamina.sync("pods"), "expected a resource with its version, as apps/v1/deployments"),
        (lambda: lamina.sync("v1/pods", children="v1/pods"), "expected a list of kinds"),
        (lambda: lamina.decorate(), "expected at least one resource"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(
    written: Callable[[], Any], complaint: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        written()


# ── arguments of functions ──


class Spec(msgspec.Struct):
    size: int = 1


class Thing(msgspec.Struct):
    spec: Spec


@dataclass
class Plain:
    spec: dict[str, int]


def test_a_function_is_told_what_it_asks_for_in_the_words_it_uses() -> None:
    composite_words = json.dumps({"parent": {"spec": {"size": 3}}, "children": {"Pod.v1": {}}}).encode()
    decorator_words = json.dumps({"object": {"spec": {"size": 4}}, "attachments": {}}).encode()

    def plain(object: lamina.Obj, children: lamina.Objects) -> None: ...
    def typed(parent: Thing) -> None: ...
    def simple(parent: Plain, extra: int = 1) -> None: ...

    assert arguments(plain, composite_words) == {
        "object": {"spec": {"size": 3}},
        "children": {"Pod.v1": {}},
    }
    assert arguments(typed, composite_words) == {"parent": Thing(Spec(3))}
    assert arguments(typed, decorator_words) == {"parent": Thing(Spec(4))}
    assert arguments(simple, composite_words) == {"parent": Plain({"size": 3})}


def test_a_parent_that_is_not_of_the_type_asked_for_is_named_by_its_field() -> None:
    def typed(parent: Thing) -> None: ...

    with pytest.raises(msgspec.ValidationError, match=r"Expected `int`, got `str` - at `\$.spec.size`"):
        arguments(typed, b'{"parent": {"spec": {"size": "few"}}}')


# ── results of functions ──


def test_a_list_is_the_children() -> None:
    def generated() -> Iterator[Any]:
        yield POD

    assert said(composite(nothing), "sync", [POD]) == {"children": [POD]}
    assert said(decorator(nothing), "sync", (POD,)) == {"attachments": [POD]}
    assert said(composite(nothing), "sync", generated()) == {"children": [POD]}


def test_a_response_says_the_rest() -> None:
    full = lamina.Response(
        children=[POD], status={"n": 1}, resync_after=2.5, finalized=True, labels={"a": None}
    )

    assert said(decorator(nothing), "sync", full) == {
        "attachments": [POD], "status": {"n": 1}, "resyncAfterSeconds": 2.5, "finalized": True,
        "labels": {"a": None},
    }  # fmt: skip
    assert said(composite(nothing), "sync", {"status": {"a": 1}}) == {"status": {"a": 1}}


def test_finalize_may_just_say_whether_it_is_done() -> None:
    assert said(composite(nothing), "finalize", True) == {"children": [], "finalized": True}
    assert said(composite(nothing), "finalize", False) == {"children": []}


def test_customize_lists_what_it_wants_to_see() -> None:
    hook = composite(nothing)
    wanted = [
        lamina.Related("v1/configmaps", names=["a"], namespace="n"),
        lamina.Related("v1/secrets", labels={"x": "y"}, namespace_labels={}),
        {"apiVersion": "v1", "resource": "pods"},
    ]

    assert said(hook, "customize", wanted)["relatedResources"] == [
        {"apiVersion": "v1", "resource": "configmaps", "names": ["a"], "namespace": "n"},
        {"apiVersion": "v1", "resource": "secrets", "labelSelector": {"matchLabels": {"x": "y"}},
         "namespaceSelector": {"matchLabels": {}}},
        {"apiVersion": "v1", "resource": "pods"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("purpose", "result"), [("sync", None), ("sync", True), ("sync", "x"), ("customize", None)]
)
def test_an_answer_that_means_nothing_is_refused_and_deletes_nothing(purpose: str, result: Any) -> None:
    with pytest.raises(TypeError, match="returned"):
        reply(composite(nothing), purpose, result)
