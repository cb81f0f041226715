"""Beacon: a cluster-scoped custom kind."""

import json
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.wire import JSON
from tests.conformance.transcript.kinds import GROUP
from tests.conformance.transcript.reach import Wire

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define_beacons(wire: Wire) -> None:
    """Create the CRD and wait until the kind is served."""
    made = wire.call("POST", _CRDS, {"Content-Type": JSON}, json.dumps(_definition()).encode())
    assert made.code in (201, 409), made.text
    eventually_sync(
        lambda: wire.call("GET", f"/apis/{GROUP}/v1/beacons", {}, None).code, lambda found: found == 200
    )


def _definition() -> dict[str, Any]:
    lamp = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "watts": {"type": "integer"}},
    }
    lamps = {
        "type": "array",
        "items": lamp,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = {"type": "object", "properties": {"height": {"type": "integer", "default": 2}, "lamps": lamps}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"beacons.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": "beacons", "singular": "beacon", "kind": "Beacon"},
            "versions": [version],
        },
    }
