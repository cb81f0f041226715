"""
The CustomResourceDefinition of a generated kind.

It is always stated as a whole, so that whatever differs on the server is set right:
the schema, and names, columns and labels as well.
"""

from __future__ import annotations

from typing import Final

from lamina.families.resourcegraph import labels
from lamina.families.resourcegraph.hashes import label_value
from lamina.graph.language.pluralize import pluralize
from lamina.graph.schemas.structure import PRESERVE, fields_of
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_TEXT: Final[Obj] = {"type": "string"}
_NUMBER: Final[Obj] = {"type": "integer"}


def _object(*texts: str, **fields: Obj) -> Made:
    return {"type": "object", "properties": {**dict.fromkeys(texts, _TEXT), **fields}}


def _list_of(item: Obj) -> Made:
    return {"type": "array", "items": item}


CONDITIONS: Final[Obj] = _list_of(
    _object("type", "status", "reason", "message", "lastTransitionTime", observedGeneration=_NUMBER)
)
_PROPAGATION: Final[Obj] = _object(
    "status", "message", "lastTransitionTime",
    **dict.fromkeys(
        ("targetInputRevision", "pendingRGDRevision", "resourcesAtTarget", "totalResources"), _NUMBER
    ),
)  # fmt: skip
_HISTORY: Final[Obj] = _object(
    "createdAt", "status", "specHash", "rgdSpecHash",
    revision=_NUMBER, rgdRevision=_NUMBER, instanceSpec={"type": "object", PRESERVE: True},
)  # fmt: skip
_MANAGED: Final[Obj] = {
    "description": "The first resources of the instance, and how far each is: the input revision that it was made from, and whether it is ready.",
    **_list_of(
        _object(
            "id",
            "apiVersion",
            "kind",
            "namespace",
            "name",
            "state",
            inputRevision=_NUMBER,
            ready={"type": "boolean"},
        )
    ),
}
REVISION_FIELDS: Final[Obj] = {
    "currentInputRevision": _NUMBER,
    "currentRGDRevision": _NUMBER,
    "observedInputRevision": _NUMBER,
    "observedRGDRevision": _NUMBER,
    "propagation": _PROPAGATION,
    "inputRevisionHistory": _list_of(_HISTORY),
    "managedResources": _MANAGED,
}
"""Status fields of the controller; one that the author declares is the author's."""

_READY_STATUS: Final = '.status.conditions[?(@.type=="Ready")].status'
_COLUMNS: Final = (
    {"name": "State", "type": "string", "jsonPath": ".status.state", "description": "State of the instance"},
    {
        "name": "Ready",
        "type": "string",
        "jsonPath": _READY_STATUS,
        "description": "Whether the instance is ready",
    },
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "Age of the instance",
    },
)


def shadowed(status_schema: Obj) -> tuple[str, ...]:
    """Return the status fields that the controller does not write, because the author declares them."""
    return tuple(sorted(fields_of(status_schema).keys() & REVISION_FIELDS.keys()))


def object_schema(spec_schema: Obj, status_schema: Obj) -> Made:
    """Return the schema of a whole instance; state and conditions are always the controller's."""
    status: Made = {"type": "object", **status_schema}
    status["properties"] = {
        **REVISION_FIELDS,
        **fields_of(status_schema),
        "state": _TEXT,
        "conditions": CONDITIONS,
    }
    return _object("apiVersion", "kind", metadata={"type": "object"}, spec=spec_schema, status=status)


def generated_crd(
    definition: Obj,
    spec_schema: Obj,
    status_schema: Obj,
    revision: int,
    *,
    schema: Obj | None = None,
) -> Made:
    """
    Return the CRD of the kind that a definition generates.

    The schemas are those to be served, the union of all revisions in use. `schema` is the one
    that the revision states, with columns and names; without it, that of the definition.
    """
    stated: Obj = definition["spec"]["schema"] if schema is None else schema
    kind: str = stated["kind"]
    group: str = stated.get("group") or labels.GROUP
    singular = kind.lower()
    plural = pluralize(singular)
    names: Made = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular}
    names |= {key: list(stated[key]) for key in ("shortNames", "categories") if stated.get(key)}
    added: Obj = stated.get("metadata") or {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": {
                **(added.get("labels") or {}),
                labels.OWNED: "true",
                labels.KRO_VERSION: labels.VERSION,
                labels.DEFINITION_ID: meta.uid(definition),
                labels.DEFINITION_NAME: label_value(meta.name(definition)),
            },
            "annotations": {**(added.get("annotations") or {}), labels.RGD_REVISION: str(revision)},
        },
        "spec": {
            "group": group,
            "names": names,
            "scope": stated.get("scope") or "Namespaced",
            "versions": [
                {
                    "name": stated["apiVersion"],
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": object_schema(spec_schema, status_schema)},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(stated),
                }
            ],
        },
    }


def _columns(stated: Obj) -> list[Made]:
    """Return the columns of the author, or else three of the controller; a priority of 0 is not stated."""
    columns = stated.get("additionalPrinterColumns") or _COLUMNS
    return [{key: value for key, value in column.items() if value not in (0, "", None)} for column in columns]
