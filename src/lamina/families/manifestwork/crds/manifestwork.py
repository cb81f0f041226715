"""Definitions of ManifestWork, and of AppliedManifestWork on the cluster that it is applied to."""

from __future__ import annotations

from lamina.core.crd.schema_dsl import (
    AGE,
    by_key,
    choice,
    conditions,
    fields,
    moment,
    several,
    text,
    whole,
    yes_or_no,
)
from lamina.families.manifestwork.crds.definition import definition
from lamina.families.manifestwork.labels import APPLIED_WORK, WORK
from lamina.objects.types import Made, Obj

_DNS = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$"
_MANIFEST: Obj = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def _resource(*required: str) -> Made:
    """Return the identifier of an object."""
    return fields({"group": text(), "resource": text(), "name": text(), "namespace": text()}, *required)


def _delete_option() -> Made:
    rules = several(_resource("name", "resource"))
    return fields(
        {
            "propagationPolicy": choice("Foreground", "Orphan", "SelectivelyOrphan", default="Foreground"),
            "selectivelyOrphans": fields({"orphaningRules": rules}),
            "ttlSecondsAfterFinished": whole("int64"),
        }
    )


def _executor() -> Made:
    account = fields(
        {
            "name": text(minLength=1, maxLength=253, pattern=_DNS),
            "namespace": text(minLength=1, maxLength=253, pattern=_DNS),
        },
        "name",
        "namespace",
    )
    return fields({"subject": fields({"serviceAccount": account, "type": choice("ServiceAccount")}, "type")})


def _config() -> Made:
    """Return how one manifest is applied, evaluated and reported."""
    path = fields({"name": text(), "path": text(), "version": text()}, "name", "path")
    feedback = fields(
        {"type": choice("WellKnownStatus", "JSONPaths"), "jsonPaths": by_key(path, "name")}, "type"
    )
    ignored = fields(
        {
            "condition": choice("OnSpokePresent", "OnSpokeChange", default="OnSpokePresent"),
            "jsonPaths": several(text()),
            "jsonPointers": several(text()),
            "jqPathExpressions": several(text()),
        },
        "condition",
    )
    applied = fields(
        {
            "fieldManager": text(default="work-agent", pattern="^work-agent"),
            "force": yes_or_no(),
            "ignoreFields": by_key(ignored, "condition"),
        }
    )
    strategy = fields(
        {
            "type": choice("Update", "CreateOnly", "ServerSideApply", "ReadOnly", default="Update"),
            "serverSideApply": applied,
        },
        "type",
    )
    rule = fields(
        {
            "condition": text(),
            "type": choice("CEL", "WellKnownConditions"),
            "celExpressions": several(text()),
            "message": text(),
            "messageExpression": text(),
        },
        "condition",
        "type",
    )
    return fields(
        {
            "resourceIdentifier": _resource("name", "resource"),
            "feedbackRules": several(feedback),
            "feedbackScrapeType": choice("Poll", "Watch", default="Poll"),
            "updateStrategy": strategy,
            "conditionRules": by_key(rule, "condition"),
        },
        "resourceIdentifier",
    )


def work_spec() -> Made:
    """Return the spec of a ManifestWork, which is also the template of a replica set."""
    return fields(
        {
            "workload": fields({"manifests": several(_MANIFEST)}),
            "deleteOption": _delete_option(),
            "manifestConfigs": several(_config()),
            "executor": _executor(),
        }
    )


def _work_status() -> Made:
    value = fields(
        {
            "type": choice("Integer", "String", "Boolean", "JsonRaw"),
            "integer": whole("int64"),
            "string": text(),
            "boolean": yes_or_no(),
            "jsonRaw": text(maxLength=1024),
        },
        "type",
    )
    values = by_key(fields({"name": text(), "fieldValue": value}, "name", "fieldValue"), "name")
    resource = fields(
        {
            "ordinal": whole(),
            "group": text(),
            "version": text(),
            "kind": text(),
            "resource": text(),
            "name": text(),
            "namespace": text(),
        }
    )
    manifest = fields(
        {
            "resourceMeta": resource,
            "conditions": conditions(),
            "statusFeedback": fields({"values": values}),
        }
    )
    return fields(
        {"conditions": conditions(), "resourceStatus": fields({"manifests": several(manifest)})},
    )


def _applied() -> Made:
    spec = fields(
        {"hubHash": text(), "agentID": text(), "manifestWorkName": text()}, "hubHash", "manifestWorkName"
    )
    resource = fields(
        {
            "group": text(),
            "resource": text(),
            "name": text(),
            "namespace": text(),
            "version": text(),
            "uid": text(),
        },
        "version",
    )
    status = fields({"appliedResources": several(resource), "evictionStartTime": moment()})
    return fields({"spec": spec, "status": status})


def manifest_work() -> Made:
    return definition(
        WORK,
        "manifestworks",
        fields({"spec": work_spec(), "status": _work_status()}),
        versions=("v1",),
        columns=(AGE,),
    )


def applied_manifest_work() -> Made:
    return definition(APPLIED_WORK, "appliedmanifestworks", _applied(), versions=("v1",), namespaced=False)
