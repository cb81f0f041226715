"""The requests to a hook, byte for byte, and what its responses mean."""

import json
from datetime import timedelta

import orjson
import pytest

from lamina.errors import HookError
from lamina.families.metacontroller.hooks.endpoint import Endpoint
from lamina.families.metacontroller.hooks.protocol import (
    Response,
    encode,
    read_composite,
    read_customize,
    read_decorator,
)
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation.cluster.kinds import NAMESPACE, POD

LOOSE = Endpoint(purpose="sync", url="http://hook/", seconds=1.0, version="v1", strict=False)
STRICT = Endpoint(purpose="sync", url="http://hook/", seconds=1.0, version="v2", strict=True)


def pod(name: str, namespace: str = "home") -> Made:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}


def shown(parent: Made, version: str, *pods: Made, namespaces: tuple[str, ...] = ()) -> dict[str, list[str]]:
    there = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces]
    text = orjson.dumps(encode({POD: pods, NAMESPACE: there}, meta.namespace(parent), version))
    return {kind: list(objects) for kind, objects in json.loads(text).items()}


def test_objects_are_sent_in_the_order_of_their_names_whenever_they_came() -> None:
    """Hooks that take the first of them get the same one each time, as from the original."""
    home: Made = {"metadata": {"name": "p", "namespace": "home"}}

    assert shown(home, "v1", pod("c"), pod("a"), pod("b"))["Pod.v1"] == ["a", "b", "c"]
    one, other = shown(home, "v2", pod("b"), pod("a")), shown(home, "v2", pod("a"), pod("b"))
    assert one == other == {"Namespace.v1": [], "Pod.v1": ["home/a", "home/b"]}


@pytest.mark.parametrize(
    ("home", "version", "keys"),
    [
        ("home", "v1", {"Pod.v1": ["a"], "Namespace.v1": ["far"]}),
        ("home", "v2", {"Pod.v1": ["far/a", "home/a"], "Namespace.v1": ["far"]}),
        ("", "v1", {"Pod.v1": ["far/a", "home/a"], "Namespace.v1": ["far"]}),
        ("", "v2", {"Pod.v1": ["far/a", "home/a"], "Namespace.v1": ["far"]}),
    ],
)
def test_what_an_object_is_called_and_whether_it_is_shown(home: str, version: str, keys: Made) -> None:
    parent: Made = {"metadata": {"name": "p", **({"namespace": home} if home else {})}}

    assert shown(parent, version, pod("a"), pod("a", "far"), namespaces=("far",)) == keys


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ({}, Response(status={})),
        (
            {"status": None, "children": None, "finalized": None, "resyncAfterSeconds": None},
            Response(status={}),
        ),
        ({"resyncAfterSeconds": 0}, Response(status={})),
        ({"resyncAfterSeconds": -1}, Response(status={})),
        ({"resyncAfterSeconds": 0.25}, Response(status={}, resync_after=timedelta(milliseconds=250))),
        ({"resyncAfterSeconds": 1e-9}, Response(status={}, resync_after=timedelta(milliseconds=1))),
        ({"resyncAfterSeconds": 1e300}, Response(status={}, resync_after=timedelta(days=365))),
        ({"finalized": True, "status": {"a": 1}}, Response(status={"a": 1}, finalized=True)),
        ({"Status": {"a": 1}, "Children": [3]}, Response(status={})),
    ],
    ids=str,
)
def test_what_a_composites_hook_means(said: Made, means: Response) -> None:
    assert read_composite(LOOSE, json.dumps(said).encode()) == means


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ({}, Response()),
        ({"status": None, "labels": None, "annotations": None, "attachments": None}, Response()),
        ({"status": {}}, Response(status={})),
        ({"labels": {"a": None, "b": ""}}, Response(labels={"a": None, "b": ""})),
    ],
    ids=str,
)
def test_what_a_decorators_hook_means(said: Made, means: Response) -> None:
    assert read_decorator(LOOSE, json.dumps(said).encode()) == means


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xff{}", "cannot be read as JSON"),
        (b'{"children": [], "children": []}', 'duplicate field "children"'),
        (b'{"extra": 1}', 'unknown field "extra"'),
        (b'{"finalized": "yes"}', "text in finalized"),
        (b'{"finalized": 1}', "a number in finalized"),
        (b'{"resyncAfterSeconds": true}', "true or false in resyncAfterSeconds"),
        (b'{"children": [3]}', "a number at children[0]"),
        (b'{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}}]}', "no metadata.name"),
        (b'{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}]}', "no metadata.name"),
        (b'{"children": [{"apiVersion": "", "kind": "Pod", "metadata": {"name": "a"}}]}', "no apiVersion"),
        (b'{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": 1}}}]}',
         "no text in metadata.labels"),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_understood_is_refused_whole(body: bytes, why: str) -> None:
    with pytest.raises(HookError) as refused:
        read_composite(STRICT, body)

    assert why in str(refused.value)


@pytest.mark.parametrize("body", [b'{"relatedResources": {}}', b'{"rules": []}', b"[]"])
def test_a_customize_hook_is_read_as_strictly(body: bytes) -> None:
    with pytest.raises(HookError):
        read_customize(STRICT, body)


def test_below_the_first_level_every_field_is_the_users_own() -> None:
    body = b'{"status": {"a": 2, "anything": true}, "children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "own": 1}, "own": {}}]}'

    assert read_composite(STRICT, body).status == {"a": 2, "anything": True}


STRICT_V1 = Endpoint(purpose="customize", url="http://hook/", seconds=1.0, version="v1", strict=True)
RULE = '"apiVersion": "v1", "resource": "pods"'


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (f'{{"relatedResources": [{{{RULE}, "labelSelector": {{"matchLabel": {{}}}}}}]}}',
         'unknown field "relatedResources[0].labelSelector.matchLabel"'),
        (f'{{"relatedResources": [{{{RULE}}}, {{{RULE}, "name": "a"}}]}}', 'unknown field "relatedResources[1].name"'),
        (f'{{"relatedResources": [{{{RULE}, "namespaceSelector": {{"matchExpressions": [{{"key": "a", "op": "In"}}]}}}}]}}',
         'unknown field "relatedResources[0].namespaceSelector.matchExpressions[0].op"'),
        (f'{{"relatedResources": [{{{RULE}, "labelSelector": {{"matchLabels": {{"a": "b", "a": "b"}}}}}}]}}',
         'duplicate field "relatedResources[0].labelSelector.matchLabels.a"'),
        (f'{{"relatedResources": [{{{RULE}, "resource": "pods"}}]}}', 'duplicate field "relatedResources[0].resource"'),
        (f'{{"rules": [{{"a": 1, "a": 2}}], "relatedResources": [{{{RULE}, "name": "a"}}, {{{RULE}}}], "rules": []}}',
         '[unknown field "rules", unknown field "relatedResources[0].name"]'),
    ],
)  # fmt: skip
def test_every_level_of_a_strict_answer_is_checked_in_the_words_of_the_original(
    body: str, errors: str
) -> None:
    with pytest.raises(HookError) as refused:
        read_customize(STRICT_V1, body.encode())

    said = "strict validation failed for v1 webhookResponse (type: customize, mode: strict): "
    assert str(refused.value) == said + errors


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"status": {"a": 1, "a": 2}}', "status.a"),
        (b'{"status": {"list": [0, {"a": 1, "a": 2}]}}', "status.list[1].a"),
        (b'{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "name": "a"}}]}',
         "children[0].metadata.name"),
    ],
)  # fmt: skip
def test_a_field_given_twice_at_any_level_is_refused_by_strict_hooks_only(body: bytes, where: str) -> None:
    said = "strict validation failed for v2 webhookResponse (type: sync, mode: strict)"
    with pytest.raises(HookError) as refused:
        read_composite(STRICT, body)

    assert str(refused.value) == f'{said}: duplicate field "{where}"'
    assert read_composite(LOOSE, body)
