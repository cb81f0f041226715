"""The definitions of Metacontroller's kinds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from lamina.core.crd.descriptions import described
from lamina.core.crd.schema import structural
from lamina.families.metacontroller import api
from lamina.families.metacontroller.descriptions import DESCRIPTIONS, KINDS
from lamina.families.metacontroller.labels import COMPOSITE, DECORATOR, GROUP, REVISION
from lamina.objects.types import GroupKind, Made, Obj

_ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CHILDREN: Obj = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["apiGroup", "kind", "names"],
        "properties": {
            "apiGroup": {"type": "string"},
            "kind": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}},
        },
    },
}
_CONDITIONS: Obj = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string"},
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64"},
        },
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
_STATUS: Obj = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": _CONDITIONS,
        "parents": {"type": "integer", "format": "int64"},
        "lastError": {
            "type": "object",
            "properties": {
                "object": {"type": "string"},
                "message": {"type": "string"},
                "time": {"type": "string", "format": "date-time"},
            },
        },
    },
}
_READY = {
    "name": "Ready",
    "type": "string",
    "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
    "description": "Whether it runs.",
}
_PARENTS = {
    "name": "Parents",
    "type": "integer",
    "jsonPath": ".status.parents",
    "description": "How many objects it works for.",
}
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


@cache
def definitions() -> tuple[Made, ...]:
    """Return the definitions, in the order they are to be made."""
    return (
        _definition(
            COMPOSITE, "compositecontrollers", ("cc", "cctl"), _controller(structural(api.CompositeSpec))
        ),
        _definition(
            DECORATOR,
            "decoratorcontrollers",
            ("dec", "decorators"),
            _controller(structural(api.DecoratorSpec)),
        ),
        _definition(
            REVISION,
            "controllerrevisions",
            (),
            {
                "required": ["metadata", "parentPatch"],
                "properties": {"parentPatch": _ANYTHING, "children": _CHILDREN, "status": _ANYTHING},
            },
            namespaced=True,
        ),
    )


def _controller(spec: Obj) -> Made:
    return {"required": ["metadata", "spec"], "properties": {"spec": spec, "status": _STATUS}}


def _definition(
    kind: GroupKind, plural: str, short: Sequence[str], shape: Obj, *, namespaced: bool = False
) -> Made:
    named = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema = described(
        {"type": "object", **shape, "properties": {**named, **shape["properties"]}},
        DESCRIPTIONS,
        kind=KINDS[kind.kind],
    )
    names: Made = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": plural,
        "singular": plural[:-1],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            # The group ends in k8s.io, and a server takes such a definition only with a word about that.
            "annotations": {"api-approved.kubernetes.io": "unapproved, request not yet submitted"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {**names, "shortNames": list(short)} if short else names,
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_AGE] if namespaced else [_READY, _PARENTS, _AGE],
                }
            ],
        },
    }
