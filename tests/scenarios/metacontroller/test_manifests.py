"""What a manifest may say: what the server refuses, and what only makes sense together."""

from typing import Any

import pytest

from lamina.client.client import Client
from lamina.errors import Invalid
from lamina.objects import meta
from lamina.objects.paths import put
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.metacontroller.stage import API, Stage

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOOK = {"webhook": {"url": "http://127.0.0.1:1/sync"}}
RULE = {"apiVersion": "v1", "resource": "configmaps"}
COMPOSITE: Made = {
    "apiVersion": API,
    "kind": "CompositeController",
    "metadata": {"name": "refused"},
    "spec": {"parentResource": RULE, "childResources": [RULE], "hooks": {"sync": HOOK}},
}
DECORATOR: Made = {
    "apiVersion": API,
    "kind": "DecoratorController",
    "metadata": {"name": "refused"},
    "spec": {"resources": [RULE], "attachments": [RULE], "hooks": {"sync": HOOK}},
}
REVISION: Made = {
    "apiVersion": API,
    "kind": "ControllerRevision",
    "metadata": {"name": "refused", "namespace": "default"},
    "parentPatch": {},
    "children": [{"apiGroup": "", "kind": "Pod", "names": []}],
}
REF = {"name": "n", "namespace": "ns"}


def changed(obj: Made, path: str, value: Any) -> Obj:
    return put(obj, tuple(path.split(".")), value)


VIOLATIONS = [
    {key: value for key, value in COMPOSITE.items() if key != "spec"},
    changed(COMPOSITE, "spec.parentResource", None),
    changed(COMPOSITE, "spec.parentResource", {"apiVersion": "v1"}),
    changed(COMPOSITE, "spec.parentResource", {"resource": "pods"}),
    changed(COMPOSITE, "spec.parentResource", {**RULE, "ignoreStatusChanges": "yes"}),
    changed(COMPOSITE, "spec.parentResource", {**RULE, "revisionHistory": {"fieldPaths": "spec"}}),
    changed(COMPOSITE, "spec.parentResource", {**RULE, "labelSelector": {"matchLabels": "a=b"}}),
    changed(COMPOSITE, "spec.parentResource", {**RULE, "labelSelector": {"matchLabels": {"a": 1}}}),
    changed(
        COMPOSITE, "spec.parentResource", {**RULE, "labelSelector": {"matchExpressions": [{"key": "a"}]}}
    ),
    changed(COMPOSITE, "spec.childResources", [{"apiVersion": "v1"}]),
    changed(COMPOSITE, "spec.childResources", [{"resource": "pods"}]),
    changed(COMPOSITE, "spec.childResources", [{**RULE, "updateStrategy": {"method": "Sometimes"}}]),
    changed(
        COMPOSITE,
        "spec.childResources",
        [
            {
                **RULE,
                "updateStrategy": {"method": "Recreate", "statusChecks": {"conditions": [{"status": "x"}]}},
            }
        ],
    ),
    changed(COMPOSITE, "spec.resyncPeriodSeconds", "soon"),
    changed(COMPOSITE, "spec.generateSelector", "true"),
    changed(COMPOSITE, "spec.endpointConfigs", [{"basicAuth": {"secretRef": REF}}]),
    changed(COMPOSITE, "spec.hooks.sync.version", "v3"),
    changed(COMPOSITE, "spec.hooks.sync.webhook.responseUnMarshallMode", "lenient"),
    changed(COMPOSITE, "spec.hooks.sync.webhook.service", {"name": "n"}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.service", {"namespace": "n"}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.service", {**REF, "port": "http"}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.etag", {"enabled": 1}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.authorization", {"type": "Bearer"}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.authorization", {"secretRef": {"name": "n"}}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.basicAuth", {"usernameKey": "u"}),
    changed(COMPOSITE, "spec.hooks.sync.webhook.clientTLS", {"certKey": "c"}),
    changed(DECORATOR, "spec.resources", None),
    changed(DECORATOR, "spec.resources", [{"apiVersion": "v1"}]),
    changed(DECORATOR, "spec.resources", [{**RULE, "labelSelector": {"matchExpressions": {}}}]),
    changed(DECORATOR, "spec.resources", [{**RULE, "annotationSelector": {"matchAnnotations": ["a"]}}]),
    changed(
        DECORATOR,
        "spec.resources",
        [{**RULE, "annotationSelector": {"matchExpressions": [{"operator": "Exists"}]}}],
    ),
    changed(DECORATOR, "spec.attachments", [{"resource": "pods"}]),
    changed(DECORATOR, "spec.attachments", [{**RULE, "updateStrategy": {"method": "Sometimes"}}]),
    changed(DECORATOR, "spec.hooks.customize", {"version": "v0"}),
    {key: value for key, value in REVISION.items() if key != "parentPatch"},
    changed(REVISION, "children", [{"apiGroup": "", "kind": "Pod"}]),
    changed(REVISION, "children", [{"apiGroup": "", "names": []}]),
    changed(REVISION, "children", [{"kind": "Pod", "names": []}]),
]


@check("MC-1")
async def test_a_manifest_that_breaks_a_rule_of_its_schema_is_refused_by_the_server(cluster: Client) -> None:
    for good in (COMPOSITE, DECORATOR, REVISION):
        await cluster.create(good, dry_run=True)

    for bad in VIOLATIONS:
        with pytest.raises(Invalid):
            await cluster.create(bad, dry_run=True)


@check("MC-1")
async def test_a_rule_that_spans_fields_is_broken_in_the_open(stage: Stage) -> None:
    url = {"url": f"{stage.hook.url}/sync"}
    both = {"authorization": {"secretRef": REF}, "basicAuth": {"secretRef": REF}}
    broken: dict[str, tuple[Obj, str]] = {
        "nowhere": ({}, "expected url, or service and path"),
        "no-path": ({"service": REF}, "expected url, or service and path"),
        "auth-twice": ({**url, **both}, "authorization or basicAuth"),
        "basic": ({**url, "authorization": {"type": "basic", "secretRef": REF}}, "basicAuth"),
        "no-source": ({**url, "caBundle": {}}, "exactly one of inline"),
        "sources": ({**url, "caBundle": {"inline": "x", "secretRef": REF}}, "exactly one of inline"),
        "no-secret": ({**url, "basicAuth": {"secretRef": REF}}, "does not exist"),
        "patience": ({**url, "timeout": "a while"}, "duration"),
    }

    async with stage.running():
        for name, (webhook, why) in broken.items():
            made = await stage.given_composite(name, hooks={"sync": {"webhook": webhook}})
            told = await stage.until_event(meta.ref(made), "CreateError", why)
            assert told["type"] == "Warning"
            assert told["message"].startswith("Cannot create new controller: ")
            assert told["source"]["component"] == "metacontroller"


@check("MC-1")
async def test_a_selector_that_only_its_meaning_is_wrong_of_is_refused_in_the_open(stage: Stage) -> None:
    terms: dict[str, tuple[Obj, str]] = {
        "like": ({"key": "a", "operator": "Like", "values": ["b"]}, "Like"),
        "in-none": ({"key": "a", "operator": "In"}, "values"),
        "exists-some": ({"key": "a", "operator": "Exists", "values": ["b"]}, "values"),
    }
    things = {"apiVersion": f"{stage.group}/v1", "resource": "things"}
    async with stage.running():
        for name, (term, why) in terms.items():
            selector = {"matchExpressions": [term]}
            made = await stage.given_composite(name, parentResource={**things, "labelSelector": selector})
            await stage.until_event(meta.ref(made), "CreateError", why)
            for field in ("labelSelector", "annotationSelector"):
                resources = [{**things, field: selector}]
                made = await stage.given_decorator(f"{name}-{field.lower()}", resources=resources)
                told = await stage.until_event(meta.ref(made), "CreateError", why)
                assert f"spec.resources[0].{field}" in told["message"]
