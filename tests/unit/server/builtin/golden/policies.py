"""Policies, storage and extensions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.server.builtin.golden.parts import NAMESPACE, Case, case

REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITU1ITUNBUUF3RVRFUE1BMEdBMVVFQXd3R1oyOXNaR1Z1"
    "TUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowRApBUWNEUWdBRTJVQ3Fkb25YMU10VEhtNUtrZVhoMGFXamRlL01OU2hLbS85"
    "Z0pqNlhGcDBabDFzQlhYZDFLVTFZCitzQ3d1KzNDMjJCOTRpdjkxbTIzRldmTmtpeGVDNkFBTUFvR0NDcUdTTTQ5QkFNQ0Ew"
    "a0FNRVlDSVFEeHFZRnUKbFcrcEJyWlN4a0RBa0hzelJ3Nk1SUWNyRC9Zbk5vaTYrU3h0d1FJaEFKbWR6RUF6WWRNOGRnWFB5"
    "QXB5NmZNMgoxL25hcDBkS0dWTUxPeUttMHE1WgotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
"""A certificate signing request in PEM, in base64; its key is nowhere."""


def policies() -> Iterator[Case]:
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": ""}
    yield case(
        "rbac", "roles", "Role", "role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": []}]},
    )  # fmt: skip
    yield case("rbac", "clusterroles", "ClusterRole", "golden-role", {"rules": []})
    yield case(
        "rbac", "clusterroles", "ClusterRole", "golden-aggregate",
        {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"no": "body"}}]}},
    )  # fmt: skip
    yield case(
        "rbac", "rolebindings", "RoleBinding", "rolebinding",
        {"roleRef": role, "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
                                       {"kind": "ServiceAccount", "name": "s", "namespace": NAMESPACE}]},
    )  # fmt: skip
    yield case("rbac", "clusterrolebindings", "ClusterRoleBinding", "golden-binding", {"roleRef": role})
    yield case(
        "policy", "poddisruptionbudgets", "PodDisruptionBudget", "budget",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"no": "body"}}}},
    )  # fmt: skip
    yield case(
        "scheduling", "priorityclasses", "PriorityClass", "golden-priority",
        {"value": 0, "globalDefault": False, "description": "d"},
        ("", {"value": 0, "description": "e"}),
    )  # fmt: skip
    yield case(
        "node", "runtimeclasses", "RuntimeClass", "golden-runtime",
        {"handler": "h", "overhead": {"podFixed": {"memory": "1024Ki"}}, "scheduling": {}},
    )  # fmt: skip
    yield case(
        "coordination", "leases", "Lease", "lease",
        {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                  "renewTime": "2026-01-01T01:00:00.123456+01:00", "preferredHolder": "b"}},
    )  # fmt: skip
    yield case("coordination", "leases", "Lease", "lease-empty", {})
    yield case(
        "flowcontrol", "flowschemas", "FlowSchema", "golden-flow",
        {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "rules": [
            {"subjects": [{"kind": "User", "user": {"name": "u"}}],
             "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/x"]}]}]}},
    )  # fmt: skip
    yield case(
        "flowcontrol", "prioritylevelconfigurations", "PriorityLevelConfiguration", "golden-level",
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 0}}}}},
    )  # fmt: skip
    yield case(
        "certificates", "certificatesigningrequests", "CertificateSigningRequest", "golden-csr",
        {"spec": {"request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"],
                  "username": "somebody else", "expirationSeconds": 3600}, "status": {"certificate": "YQ=="}},
        ("approval", {"spec": {}, "status": {"conditions": [
            {"type": "Approved", "status": "True", "reason": "R", "message": "m"}]}}),
        ("", {"metadata": {"labels": {"a": "b"}}, "spec": {"request": REQUEST, "signerName": "example.com/x"}}),
    )  # fmt: skip


def storage() -> Iterator[Case]:
    yield case(
        "storage", "storageclasses", "StorageClass", "golden-storage",
        {"provisioner": "example.com/p", "parameters": {}, "mountOptions": [], "allowVolumeExpansion": False},
    )  # fmt: skip
    yield case(
        "storage", "csidrivers", "CSIDriver", "golden-driver", {"spec": {}},
        ("", {"spec": {"podInfoOnMount": True}}),
    )  # fmt: skip
    yield case(
        "storage", "csinodes", "CSINode", "golden-csinode",
        {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "topologyKeys": []}]}},
    )  # fmt: skip
    yield case(
        "storage", "volumeattachments", "VolumeAttachment", "golden-attachment",
        {"spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
         "status": {"attached": True}},
        ("status", {"metadata": {"labels": {"a": "b"}}, "spec": {"attacher": "x"}, "status": {"attached": True}}),
    )  # fmt: skip


def extensions() -> Iterator[Case]:
    rules = [
        {"operations": ["CREATE"], "apiGroups": ["g.example.com"], "apiVersions": ["*"], "resources": ["x"]}
    ]
    webhook = {
        "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": rules,
        "clientConfig": {"service": {"namespace": "x", "name": "y"}},
    }  # fmt: skip
    yield case(
        "admission", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "golden-validating",
        {"webhooks": [webhook]},
        ("", {"webhooks": []}),
    )  # fmt: skip
    yield case(
        "admission", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "golden-mutating",
        {"webhooks": [{**webhook, "clientConfig": {"url": "https://example.com/x", "caBundle": ""},
                       "failurePolicy": "Ignore"}]},
    )  # fmt: skip
    yield case(
        "admission", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "golden-policy",
        {"spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}],
                  "variables": []}},
    )  # fmt: skip
    yield case(
        "admission", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "golden-bound",
        {"spec": {"policyName": "golden-policy", "validationActions": ["Deny"], "matchResources": {},
                  "paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}}},
    )  # fmt: skip
    schema = {
        "type": "object", "x-unknown": 1,
        "properties": {"spec": {"type": "object", "nullable": False, "properties": {
            "size": {"type": "integer", "default": 0, "minimum": 0.0, "maximum": 10.5},
            "note": {"type": "string", "enum": ["a", "b"], "default": None},
            "list": {"type": "array", "items": {"type": "string", "unknown": True}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "additionalProperties": True, "required": []},
            "free": {"x-kubernetes-preserve-unknown-fields": True}}}},
    }  # fmt: skip
    yield case(
        "extensions", "customresourcedefinitions", "CustomResourceDefinition", "goldens.example.com",
        {"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Golden", "plural": "goldens"},
                  "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                      "openAPIV3Schema": schema}, "subresources": {"status": {}},
                      "additionalPrinterColumns": []}]}},
    )  # fmt: skip
    yield case(
        "registration", "apiservices", "APIService", "v1.golden.example.com",
        {"spec": {"group": "golden.example.com", "version": "v1", "groupPriorityMinimum": 100,
                  "versionPriority": 10, "service": {"namespace": "x", "name": "y"},
                  "insecureSkipTLSVerify": True}},
    )  # fmt: skip
