"""Stages for kinds of one's own, on a server."""

from typing import Any

import pytest
import yaml

from lamina.actors.stages import read_stages, stages_controller
from lamina.objects.types import Made, Ref
from lamina.testing.waiting import eventually
from tests.runtime.cluster import embedded, reader, running

STAGES = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: made}
spec:
  resourceRef: {apiGroup: stages.example.com, kind: Thing}
  selector: {matchExpressions: [{key: .status.phase, operator: DoesNotExist}]}
  next:
    statusTemplate: {phase: Made, of: {$from: .spec.size}}
    event: {reason: Made, message: 'made {.metadata.name}'}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: gone}
spec:
  resourceRef: {apiGroup: stages.example.com, kind: Thing}
  selector:
    matchExpressions:
      - {key: .status.phase, operator: In, values: [Made]}
      - {key: .spec.brief, operator: In, values: ["true"]}
  next: {delete: true}
"""


def definition(*, subresources: Made) -> Made:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.stages.example.com"},
        "spec": {
            "group": "stages.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{**version, "subresources": subresources}],
        },
    }


def thing(name: str, **spec: Any) -> Made:
    return {
        "apiVersion": "stages.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


@pytest.mark.parametrize("subresources", [{}, {"status": {}}], ids=["status in the object", "status below"])
async def test_objects_of_any_kind_go_through_stages(subresources: Made) -> None:
    stages = stages_controller(read_stages(yaml.safe_load_all(STAGES), "stages.yaml"))
    async with embedded() as app:
        client = app.client()
        async with running(client, [stages]):
            await client.create(definition(subresources=subresources))
            named = Ref(
                "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.stages.example.com"
            )
            await eventually(
                reader(client, named), lambda crd: "storedVersions" in ((crd or {}).get("status") or {})
            )
            await client.create(thing("lasting", size=3))
            await client.create(thing("brief", brief=True))

            made = await eventually(
                reader(client, Ref("stages.example.com/v1", "Thing", "default", "lasting")),
                lambda one: "status" in (one or {}),
            )
            await eventually(
                reader(client, Ref("stages.example.com/v1", "Thing", "default", "brief")),
                lambda one: one is None,
            )

    assert made is not None
    assert made["status"] == {"phase": "Made", "of": 3}
