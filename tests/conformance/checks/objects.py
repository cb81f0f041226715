"""The objects that the checks write."""

from typing import Any

GROUP = "checks.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES = "/api/v1/namespaces"


def config_map(name: str, labels: dict[str, str] | None = None, /, **data: str) -> dict[str, Any]:
    """Return a ConfigMap without its kind, as requests may omit it."""
    made: dict[str, Any] = {"metadata": {"name": name}}
    if labels:
        made["metadata"]["labels"] = labels
    if data:
        made["data"] = data
    return made


def owned(name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a ConfigMap with owner references."""
    return {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}


def owner(name: str, uid: str, **more: Any) -> dict[str, Any]:
    """Return an owner reference to a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, **more}


def widget(name: str | None = None, **spec: Any) -> dict[str, Any]:
    """Return a Widget or, without a name, the body of an apply to a path with the name."""
    made: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "spec": spec}
    return made | {"metadata": {"name": name}} if name else made


def definition(
    plural: str, kind: str, schema: dict[str, Any] | None, *, name: str | None = None, **version: Any
) -> dict[str, Any]:
    """Return a CRD with one version; `version` adds fields to it; without a schema it has none."""
    served: dict[str, Any] = {"name": "v1", "served": True, "storage": True, **version}
    if schema is not None:
        served["schema"] = {"openAPIV3Schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name or plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [served],
        },
    }


def widget_definition() -> dict[str, Any]:
    """Return the CRD of Widget, with one of every feature that the checks use."""
    text, number = {"type": "string"}, {"type": "integer"}
    keyed = {"type": "array", "x-kubernetes-list-type": "map"}
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10, "description": "from small to large"},
            "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
            "replicas": {"type": "integer", "default": 1},
            "ports": keyed
            | {
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": text, "port": number},
                },
            },
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "whole": {"type": "array", "x-kubernetes-list-type": "atomic", "items": text},
            "opaque": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "fixed": text
            | {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]},
            "low": number,
            "high": number,
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                "message": "low must not exceed high",
                "fieldPath": ".low",
            }
        ],
    }
    status = {
        "type": "object",
        "properties": {
            "replicas": number,
            "selector": text,
            "observedGeneration": number,
            "conditions": keyed
            | {
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {"type": text, "status": text},
                },
            },
        },
    }
    made = definition(
        "widgets",
        "Widget",
        {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}},
        additionalPrinterColumns=[
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        selectableFields=[{"jsonPath": ".spec.color"}],
        subresources={
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    )
    made["spec"]["names"] |= {
        "singular": "widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    return made
