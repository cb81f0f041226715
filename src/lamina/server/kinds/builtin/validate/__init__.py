"""
Validation of built-in kinds, beyond their metadata.

The rules, their order, paths and messages are those of Kubernetes 1.35. Objects are
decoded and defaulted. Each file has one topic; each kind has a rule for creates and one
for updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.validate import (
    admission_policies,
    autoscaling,
    certificates,
    classes,
    configuration,
    cron_jobs,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    nodes,
    pod_updates,
    pods,
    policy,
    quotas,
    rbac,
    reviews,
    services,
    storage,
    storage_claims,
    webhooks,
    workloads,
)

Create = Callable[[Obj], list[Cause]]
Update = Callable[[Obj, Obj, str], list[Cause]]


class _Rules(NamedTuple):
    create: Create
    update: Update


def _nothing(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return []


_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"

_KINDS: Final[dict[tuple[str, str], _Rules]] = {
    ("", "ConfigMap"): _Rules(configuration.config_map, configuration.config_map_update),
    ("", "Endpoints"): _Rules(endpoints.endpoints, endpoints.endpoints_update),
    ("", "Event"): _Rules(events.core, events.core_update),
    ("", "LimitRange"): _Rules(quotas.limit_range, quotas.limit_range_update),
    ("", "Namespace"): _Rules(configuration.namespace, configuration.namespace_update),
    ("", "Node"): _Rules(nodes.create, nodes.update),
    ("", "PersistentVolume"): _Rules(storage.volume_create, storage.volume_update),
    ("", "PersistentVolumeClaim"): _Rules(storage_claims.create, storage_claims.update),
    ("", "Pod"): _Rules(pods.create, pod_updates.update),
    ("", "Binding"): _Rules(pod_updates.binding, _nothing),
    ("", "PodTemplate"): _Rules(workloads.pod_template, workloads.pod_template_update),
    ("", "ReplicationController"): _Rules(workloads.controller, workloads.controller_update),
    ("", "ResourceQuota"): _Rules(quotas.quota, quotas.quota_update),
    ("", "Secret"): _Rules(configuration.secret, configuration.secret_update),
    ("", "Service"): _Rules(services.create, services.update),
    ("apps", "ControllerRevision"): _Rules(workloads.revision, workloads.revision_update),
    ("apps", "DaemonSet"): _Rules(workloads.daemon_set, workloads.daemon_set_update),
    ("apps", "Deployment"): _Rules(workloads.deployment, workloads.deployment_update),
    ("apps", "ReplicaSet"): _Rules(workloads.replica_set, workloads.replica_set_update),
    ("apps", "StatefulSet"): _Rules(workloads.stateful_set, workloads.stateful_set_update),
    ("batch", "CronJob"): _Rules(cron_jobs.cron_job, cron_jobs.cron_job_update),
    ("batch", "Job"): _Rules(jobs.job, jobs.job_update),
    ("autoscaling", "HorizontalPodAutoscaler"): _Rules(autoscaling.autoscaler, autoscaling.autoscaler_update),
    ("autoscaling", "Scale"): _Rules(autoscaling.scale, lambda new, old, subresource: autoscaling.scale(new)),
    ("events.k8s.io", "Event"): _Rules(events.current, events.current_update),
    ("policy", "PodDisruptionBudget"): _Rules(policy.budget, policy.budget_update),
    ("networking.k8s.io", "Ingress"): _Rules(networking.ingress, networking.ingress_update),
    ("networking.k8s.io", "IngressClass"): _Rules(networking.ingress_class, networking.ingress_class_update),
    ("networking.k8s.io", "NetworkPolicy"): _Rules(
        networking.network_policy, networking.network_policy_update
    ),
    (_RBAC, "Role"): _Rules(rbac.role, rbac.role_update),
    (_RBAC, "ClusterRole"): _Rules(rbac.cluster_role, rbac.cluster_role_update),
    (_RBAC, "RoleBinding"): _Rules(rbac.role_binding, rbac.role_binding_update),
    (_RBAC, "ClusterRoleBinding"): _Rules(rbac.cluster_role_binding, rbac.cluster_role_binding_update),
    (_STORAGE, "StorageClass"): _Rules(storage.class_create, storage.class_update),
    (_STORAGE, "VolumeAttachment"): _Rules(storage.attachment_create, storage.attachment_update),
    (_STORAGE, "CSIDriver"): _Rules(storage.driver_create, storage.driver_update),
    (_STORAGE, "CSINode"): _Rules(storage.node_create, storage.node_update),
    (_ADMISSION, "MutatingWebhookConfiguration"): _Rules(webhooks.mutating, webhooks.mutating_update),
    (_ADMISSION, "ValidatingWebhookConfiguration"): _Rules(webhooks.validating, webhooks.validating_update),
    (_ADMISSION, "ValidatingAdmissionPolicy"): _Rules(
        admission_policies.policy, admission_policies.policy_update
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _Rules(
        admission_policies.binding, admission_policies.binding_update
    ),
    ("scheduling.k8s.io", "PriorityClass"): _Rules(classes.priority_class, classes.priority_class_update),
    ("node.k8s.io", "RuntimeClass"): _Rules(classes.runtime_class, classes.runtime_class_update),
    ("coordination.k8s.io", "Lease"): _Rules(classes.lease, classes.lease_update),
    ("discovery.k8s.io", "EndpointSlice"): _Rules(endpoints.endpoint_slice, endpoints.endpoint_slice_update),
    ("certificates.k8s.io", "CertificateSigningRequest"): _Rules(certificates.create, certificates.update),
    ("apiregistration.k8s.io", "APIService"): _Rules(classes.api_service, classes.api_service_update),
    (_FLOW, "FlowSchema"): _Rules(flowcontrol.flow_schema, flowcontrol.flow_schema_update),
    (_FLOW, "PriorityLevelConfiguration"): _Rules(
        flowcontrol.priority_level, flowcontrol.priority_level_update
    ),
    (_AUTHORIZATION, "SelfSubjectAccessReview"): _Rules(reviews.self_access, _nothing),
    (_AUTHORIZATION, "SubjectAccessReview"): _Rules(reviews.access, _nothing),
    (_AUTHORIZATION, "LocalSubjectAccessReview"): _Rules(reviews.local_access, _nothing),
    ("authentication.k8s.io", "TokenRequest"): _Rules(reviews.token_request, _nothing),
}


def validate_create(kind: str, group: str, obj: Obj) -> list[Cause]:
    """Return the errors of a new object, or of the body of a subresource create."""
    rules = _KINDS.get((group, kind))
    return rules.create(obj) if rules else []


def validate_update(kind: str, group: str, new: Obj, old: Obj, subresource: str = "") -> list[Cause]:
    """Return the errors of an update through this endpoint."""
    rules = _KINDS.get((group, kind))
    return rules.update(new, old, subresource) if rules else []
