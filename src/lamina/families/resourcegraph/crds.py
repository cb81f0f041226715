"""
The definitions of the kinds of this family.

That of ResourceGraphDefinition accepts what upstream's does and has its messages, which
clients look for; the fields about revisions are added to it. The schema and the resources
of a definition are free objects in its revisions, which are copies of them.
"""

from __future__ import annotations

from functools import cache

from lamina.core.crd.schema_dsl import (
    anything,
    choice,
    column,
    condition_path,
    definition,
    fields,
    map_of,
    moment,
    several,
    text,
    validated,
    whole,
    yes_or_no,
)
from lamina.families.resourcegraph.descriptions import DESCRIPTIONS, KINDS
from lamina.families.resourcegraph.labels import DEFINITION, DEFINITION_REVISION, INPUT_REVISION
from lamina.objects.types import GroupKind, Made, Obj

_TEXTS: Obj = several(text())
_NUMBER: Obj = whole("int64")
_POSITIVE: Obj = whole("int64", minimum=1)


def _immutable(name: str) -> Made:
    return validated({"rule": "self == oldSelf", "message": f"{name} is immutable"})


# ResourceGraphDefinition

_ALIASES: Obj = several(
    text(maxLength=63, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$"),
    maxItems=32,
    **{"x-kubernetes-list-type": "set"},
)
_COLUMNS: Obj = several(
    fields(
        {
            "name": text(),
            "type": text(),
            "jsonPath": text(),
            "description": text(),
            "format": text(),
            "priority": whole(),
        },
        "jsonPath",
        "name",
        "type",
    )
)
_SCHEMA: Obj = fields(
    {
        "kind": text(pattern="^[A-Z][a-zA-Z0-9]{0,62}$", **_immutable("kind")),
        "apiVersion": text(pattern="^v[0-9]+(alpha[0-9]+|beta[0-9]+)?$", **_immutable("apiVersion")),
        "group": text(default="kro.run", **_immutable("group")),
        "scope": text(default="Namespaced", enum=["Namespaced", "Cluster"], **_immutable("scope")),
        "spec": anything(),
        "types": anything(),
        "status": anything(),
        "additionalPrinterColumns": _COLUMNS,
        "shortNames": _ALIASES,
        "categories": _ALIASES,
        "metadata": fields({"labels": map_of(text()), "annotations": map_of(text())}),
    },
    "apiVersion",
    "kind",
    "scope",
)
_EXTERNAL: Obj = fields(
    {
        "apiVersion": text(),
        "kind": text(),
        "metadata": fields(
            {
                "name": text(minLength=1),
                "namespace": text(),
                # A label selector, or an expression that results in one: no rule can see it,
                # so it is the graph that refuses one beside a name.
                "selector": {"x-kubernetes-preserve-unknown-fields": True},
            },
        ),
    },
    "apiVersion",
    "kind",
    "metadata",
)
_EITHER: Obj = {
    "rule": "(has(self.template) && !has(self.externalRef)) || (!has(self.template) && has(self.externalRef))",
    "message": "exactly one of template or externalRef must be provided",
}
_RESOURCES: Obj = several(
    fields(
        {
            "id": text(),
            "template": anything(),
            "externalRef": _EXTERNAL,
            "readyWhen": _TEXTS,
            "includeWhen": _TEXTS,
            "propagateWhen": _TEXTS,
            "forEach": several(map_of(text(), minProperties=1, maxProperties=1)),
        },
        "id",
        **validated(_EITHER),
    )
)
_MANAGEMENT: Obj = fields(
    {
        "historyLimit": whole("int64", minimum=0),
        "updatePolicy": fields({"type": text(default="Automatic", enum=["Automatic", "Manual"])}),
    }
)
_CONDITIONS: Obj = several(
    fields(
        {
            "type": text(),
            "status": text(),
            "reason": text(),
            "message": text(),
            "lastTransitionTime": moment(),
            "observedGeneration": whole("int64", minimum=0),
        },
        "status",
        "type",
    )
)
_HISTORY: Obj = several(
    fields({"revision": _NUMBER, "createdAt": moment(), "current": yes_or_no(), "instanceCount": _NUMBER})
)
_AGE = column("AGE", ".metadata.creationTimestamp", "date")
_READY = column("READY", condition_path("Ready", "status"))


@cache
def definitions() -> tuple[Made, ...]:
    """Return the definitions, in the order they are to be made."""
    return (_graph_definition(), _definition_revision(), _input_revision())


def _graph_definition() -> Made:
    spec = fields(
        {
            "schema": _SCHEMA,
            "resources": _RESOURCES,
            "propagateWhen": _TEXTS,
            "revisionManagement": _MANAGEMENT,
        },
        "schema",
    )
    status = fields(
        {
            "state": text(),
            "topologicalOrder": _TEXTS,
            "resources": several(fields({"id": text(), "dependencies": several(fields({"id": text()}))})),
            "conditions": _CONDITIONS,
            "observedGeneration": _NUMBER,
            "lastIssuedRevision": _NUMBER,
            "currentRevision": _NUMBER,
            "currentRevisionName": text(),
            "currentRevisionHash": text(),
            "revisionHistory": _HISTORY,
        }
    )
    columns = (
        column("APIVERSION", ".spec.schema.apiVersion"),
        column("KIND", ".spec.schema.kind"),
        column("STATE", ".status.state"),
        _READY,
        column("TOPOLOGICALORDER", ".status.topologicalOrder", priority=1),
        column("REVISION", ".status.currentRevision", "integer", priority=1),
        _AGE,
    )
    return _definition(DEFINITION, spec, status, columns, "rgd")


def _definition_revision() -> Made:
    spec = fields(
        {"revision": _POSITIVE, "schema": anything(), "resources": several(anything())},
        "revision",
        "schema",
        **_immutable("spec"),
    )
    status = fields(
        {
            "specHash": text(),
            "createdAt": moment(),
            "superseded": yes_or_no(),
            "instanceCount": _NUMBER,
            "topologicalOrder": _TEXTS,
            "admitted": _TEXTS,
            "conditions": _CONDITIONS,
        }
    )
    columns = (
        column("RGD", r".metadata.labels.kro\.run/rgd-name"),
        column("REVISION", ".spec.revision", "integer"),
        column("SUPERSEDED", ".status.superseded", "boolean"),
        column("INSTANCES", ".status.instanceCount", "integer"),
        _READY,
        column("HASH", ".status.specHash", priority=1),
        _AGE,
    )
    return _definition(DEFINITION_REVISION, spec, status, columns, "rgdr")


def _input_revision() -> Made:
    spec = fields(
        {
            "inputRevision": _POSITIVE,
            "rgdRevision": _POSITIVE,
            "rgdRevisionRef": fields({"name": text(), "specHash": text()}),
            "instanceSpec": anything(),
        },
        "inputRevision",
        "rgdRevision",
        **_immutable("spec"),
    )
    status = fields(
        {
            "specHash": text(),
            "createdAt": moment(),
            "propagationStatus": choice("Pending", "InProgress", "Completed", "Failed"),
            "resourcesAtRevision": _NUMBER,
            "totalResources": _NUMBER,
            "superseded": yes_or_no(),
        }
    )
    columns = (
        column("REVISION", ".spec.inputRevision", "integer"),
        column("RGD-REVISION", ".spec.rgdRevision", "integer"),
        column("STATUS", ".status.propagationStatus"),
        column("SUPERSEDED", ".status.superseded", "boolean"),
        _AGE,
    )
    return _definition(INPUT_REVISION, spec, status, columns, "rgir", namespaced=True)


def _definition(
    kind: GroupKind, spec: Obj, status: Obj, columns: tuple[Obj, ...], short: str, *, namespaced: bool = False
) -> Made:
    return definition(
        kind,
        f"{kind.kind.lower()}s",
        fields({"spec": spec, "status": status}),
        versions=("v1alpha1",),
        descriptions=DESCRIPTIONS,
        description=KINDS[kind.kind],
        short=(short,),
        columns=columns,
        namespaced=namespaced,
    )
