"""
Table columns of built-in kinds.

Names, order, widths and cells are those of Kubernetes 1.35. A column marked with `*` is
only in wide output; the type follows a colon, string by default. Descriptions are in a
file beside this one; `python -m tools.columns` writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns import configuration, networking, pods, policies, storage, workloads
from lamina.server.kinds.builtin.columns.cells import created_at
from lamina.server.kinds.columns import CREATED_DESCRIPTION, NAME_DESCRIPTION
from lamina.server.kinds.kind import Column

Cells = Callable[[Obj, datetime], list[Any]]

_WORKLOAD = ("*Containers", "*Images", "*Selector")
_SUBJECTS = ("*Users", "*Groups", "*ServiceAccounts")
_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_DEFAULT: Final[tuple[tuple[str, ...], Cells]] = (("Name", "Created At:date"), created_at)

_KINDS: Final[dict[tuple[str, str], tuple[tuple[str, ...], Cells]]] = {
    ("", "configmaps"): (("Name", "Data", "Age"), configuration.config_map),
    ("", "endpoints"): (("Name", "Endpoints", "Age"), networking.endpoints),
    ("", "events"): (
        (
            "Last Seen", "Type", "Reason", "Object", "*Subobject", "*Source", "Message", "*First Seen", "*Count",
            "*Name",
        ),
        configuration.event,
    ),
    ("", "namespaces"): (("Name", "Status", "Age"), configuration.namespace),
    ("", "nodes"): (
        (
            "Name", "Status", "Roles", "Age", "Version", "*Internal-IP", "*External-IP", "*OS-Image",
            "*Kernel-Version", "*Container-Runtime",
        ),
        configuration.node,
    ),
    ("", "persistentvolumeclaims"): (
        (
            "Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
            "*VolumeMode",
        ),
        storage.claim,
    ),
    ("", "persistentvolumes"): (
        (
            "Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
            "VolumeAttributesClass", "Reason", "Age", "*VolumeMode",
        ),
        storage.volume,
    ),
    ("", "pods"): (
        ("Name", "Ready", "Status", "Restarts", "Age", "*IP", "*Node", "*Nominated Node", "*Readiness Gates"),
        pods.pod,
    ),
    ("", "podtemplates"): (("Name", "Containers", "Images", "Pod Labels"), workloads.pod_template),
    ("", "replicationcontrollers"): (
        ("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", *_WORKLOAD),
        workloads.replication_controller,
    ),
    ("", "resourcequotas"): (("Name", "Request", "Limit", "Age"), configuration.quota),
    ("", "secrets"): (("Name", "Type", "Data", "Age"), configuration.secret),
    ("", "serviceaccounts"): (("Name", "Age"), configuration.service_account),
    ("", "services"): (
        ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "*Selector"),
        networking.service,
    ),
    ("apiregistration.k8s.io", "apiservices"): (("Name", "Service", "Available", "Age"), policies.api_service),
    ("apps", "controllerrevisions"): (("Name", "Controller", "Revision", "Age"), workloads.revision),
    ("apps", "daemonsets"): (
        (
            "Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer",
            "Node Selector", "Age", *_WORKLOAD,
        ),
        workloads.daemon_set,
    ),
    ("apps", "deployments"): (
        ("Name", "Ready", "Up-to-date", "Available", "Age", *_WORKLOAD),
        workloads.deployment,
    ),
    ("apps", "replicasets"): (
        ("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", *_WORKLOAD),
        workloads.replica_set,
    ),
    ("apps", "statefulsets"): (("Name", "Ready", "Age", "*Containers", "*Images"), workloads.stateful_set),
    ("autoscaling", "horizontalpodautoscalers"): (
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        workloads.autoscaler,
    ),
    ("batch", "cronjobs"): (
        (
            "Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", *_WORKLOAD,
        ),
        workloads.cron_job,
    ),
    ("batch", "jobs"): (("Name", "Status", "Completions", "Duration", "Age", *_WORKLOAD), workloads.job),
    ("certificates.k8s.io", "certificatesigningrequests"): (
        ("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"),
        policies.signing_request,
    ),
    ("networking.k8s.io", "ingressclasses"): (
        ("Name", "Controller", "Parameters", "Age"),
        networking.ingress_class,
    ),
    ("networking.k8s.io", "ingresses"): (
        ("Name", "Class", "Hosts", "Address", "Ports", "Age"),
        networking.ingress,
    ),
    ("networking.k8s.io", "networkpolicies"): (("Name", "Pod-Selector", "Age"), networking.network_policy),
    ("policy", "poddisruptionbudgets"): (
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"),
        policies.disruption_budget,
    ),
    (_RBAC, "clusterrolebindings"): (("Name", "Role", "Age", *_SUBJECTS), policies.role_binding),
    (_RBAC, "rolebindings"): (("Name", "Role", "Age", *_SUBJECTS), policies.role_binding),
    (_STORAGE, "csidrivers"): (
        (
            "Name", "AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests",
            "RequiresRepublish:boolean", "Modes", "Age",
        ),
        storage.driver,
    ),
    (_STORAGE, "csinodes"): (("Name", "Drivers:integer", "Age"), storage.node),
    (_STORAGE, "storageclasses"): (
        ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        storage.storage_class,
    ),
    (_STORAGE, "volumeattachments"): (
        ("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"),
        storage.attachment,
    ),
    (_ADMISSION, "mutatingwebhookconfigurations"): (("Name", "Webhooks:integer", "Age"), policies.webhooks),
    (_ADMISSION, "validatingwebhookconfigurations"): (("Name", "Webhooks:integer", "Age"), policies.webhooks),
    (_ADMISSION, "validatingadmissionpolicies"): (
        ("Name", "Validations:integer", "ParamKind", "Age"),
        policies.admission_policy,
    ),
    (_ADMISSION, "validatingadmissionpolicybindings"): (
        ("Name", "PolicyName", "ParamRef", "Age"),
        policies.admission_binding,
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        ("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"),
        policies.priority_class,
    ),
    ("coordination.k8s.io", "leases"): (("Name", "Holder", "Age"), policies.lease),
    ("node.k8s.io", "runtimeclasses"): (("Name", "Handler", "Age"), policies.runtime_class),
    ("discovery.k8s.io", "endpointslices"): (
        ("Name", "AddressType", "Ports", "Endpoints", "Age"),
        networking.endpoint_slice,
    ),
    (_FLOW, "flowschemas"): (
        ("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        policies.flow_schema,
    ),
    (_FLOW, "prioritylevelconfigurations"): (
        ("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        policies.priority_level,
    ),
}  # fmt: skip


def columns_of(group: str, plural: str) -> tuple[Column, ...]:
    """Return the columns of a resource, wide ones included; `Name` and `Created At` by default."""
    spec, _ = _KINDS.get((group, plural), _DEFAULT)
    descriptions = _descriptions().get(f"{group}/{plural}", {})
    return tuple(_column(one, descriptions) for one in spec)


def cells_of(group: str, plural: str) -> Cells:
    """Return the function that computes the cells of one object."""
    return _KINDS.get((group, plural), _DEFAULT)[1]


def _column(spec: str, descriptions: dict[str, str]) -> Column:
    name, _, kind = spec.removeprefix("*").partition(":")
    definition = {"Name": NAME_DESCRIPTION, "Age": CREATED_DESCRIPTION, "Created At": CREATED_DESCRIPTION}
    return Column(
        name=name,
        type=kind or "string",
        format="name" if name in {"Name", "Attacher"} else "",
        description=definition.get(name) or descriptions.get(name, ""),
        priority=int(spec.startswith("*")),
    )


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    read: dict[str, dict[str, str]] = orjson.loads(Path(__file__).with_name("descriptions.json").read_bytes())
    return read
