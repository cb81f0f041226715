"""
The CEL environment of policies and webhooks.

`object` and `oldObject` are dyn, because one policy may match many kinds; `request` and
`namespaceObject` have Kubernetes' types. `params` exists if the policy has a
paramKind, `variables` inside a policy. The authorizer is not available.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lamina.cel.declarations import Environment, Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Field, ObjectType, Type, list_of, map_of
from lamina.server.kinds.builtin.admission_cel.variables import (
    NAMESPACE,
    OBJECT,
    OLD,
    PARAMS,
    REQUEST,
    VARIABLES,
)

_TEXTS: Final = list_of(STRING)


def _type(name: str, needed: Mapping[str, Type], optional: Mapping[str, Type] | None = None) -> ObjectType:
    fields = {field: Field(type_, required=True) for field, type_ in needed.items()}
    fields |= {field: Field(type_) for field, type_ in (optional or {}).items()}
    return ObjectType(f"kubernetes.{name}", fields)


_KIND: Final = _type("GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE: Final = _type("GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING})
_USER: Final = _type(
    "UserInfo", {}, {"username": STRING, "uid": STRING, "groups": _TEXTS, "extra": map_of(STRING, _TEXTS)}
)
_REQUEST: Final = _type(
    "AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "name": STRING,
        "operation": STRING,
        "userInfo": _USER,
    },
    {
        "subResource": STRING,
        "requestSubResource": STRING,
        "namespace": STRING,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_METADATA: Final = _type(
    "NamespaceMetadata",
    {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": _TEXTS,
    },
)
_CONDITION: Final = _type(
    "NamespaceCondition",
    {"status": STRING, "type": STRING, "lastTransitionTime": TIMESTAMP, "message": STRING, "reason": STRING},
)
_NAMESPACE: Final = _type(
    "Namespace",
    {
        "metadata": _METADATA,
        "spec": _type("NamespaceSpec", {"finalizers": _TEXTS}),
        "status": _type("NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}),
    },
)

NAMESPACE_METADATA: Final = frozenset((*_METADATA.fields, "uid"))
"""The metadata fields of `namespaceObject`."""


def environment(
    *,
    params: Type | None = None,
    variables: Mapping[str, Type] | None = None,
    about: Type = DYN,
) -> Environment:
    """Return the environment; `about` is the type of the objects, if known."""
    known = [
        Variable(OBJECT, about),
        Variable(OLD, about),
        Variable(NAMESPACE, _NAMESPACE),
        Variable(REQUEST, _REQUEST),
    ]
    if params is not None:
        known.append(Variable(PARAMS, params))
    if variables is not None:
        fields = {name: Field(type_, required=True) for name, type_ in variables.items()}
        known.append(Variable(VARIABLES, ObjectType("kubernetes.variables", fields)))
    return KUBERNETES.extend(variables=known)
