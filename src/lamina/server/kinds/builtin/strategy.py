"""
The update strategies of built-in kinds: what each endpoint changes, and what counts as a change.

The strategy of a kind says which parts raise the generation, whether status is a
subresource, and which functions prepare objects. The main endpoint restores status, the
status endpoint restores everything else that it names; metadata can be changed through
a status endpoint unless the strategy says otherwise, as in kube-apiserver.

Restored parts are references to the old object's, not copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin import claims, csr, pods, services, workloads
from lamina.server.kinds.builtin.decode import zero
from lamina.server.kinds.builtin.structs import fields

Path = tuple[str, ...]
Create = Callable[[Made, str], None]
Update = Callable[[Made, Obj, str], None]
"""The last argument is the time of the write, as it is stored in objects."""

SPEC: Final[Path] = ("spec",)
STATUS: Final[Path] = ("status",)
METADATA: Final[Path] = ("metadata",)
_OF_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")


class Endpoint(Struct, frozen=True, kw_only=True):
    """
    One endpoint: the object itself or a subresource.

    `restores` are the parts that it restores and so never owns; `also` are others that
    it never owns; `only` limits the fields of a pod's spec that it may own. `update` runs
    after restoring, and `counts` is whether changes raise the generation, as on the main
    endpoint.
    """

    restores: tuple[Path, ...] = ()
    also: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    update: Update | None = None
    counts: bool = False


class Strategy(Struct, frozen=True, kw_only=True):
    """
    How objects of one kind are prepared for a write.

    `counted` are the parts whose change raises the generation, `numbered` is whether the
    generation starts at 1. `status` is the struct of a status that the main endpoint
    must not write.
    """

    counted: tuple[Path, ...] = ()
    numbered: bool = False
    status: str = ""
    create: Create | None = None
    main: Endpoint = field(default_factory=Endpoint)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)

    def endpoint(self, subresource: str) -> Endpoint:
        """Return an endpoint; subresources without a row (scale, binding) write the object itself."""
        return self.endpoints.get(subresource, self.main)


def prepare_create(strategy: Strategy, obj: Made, stamp: Callable[[], str]) -> None:
    """
    Reset fields that the creator must not set, and set initial values.

    The object has a uid already. `stamp` returns the time of creation.
    """
    if strategy.status:
        obj["status"] = zero(strategy.status)
    if strategy.numbered:
        obj["metadata"]["generation"] = 1
    if strategy.create is not None:
        strategy.create(obj, obj["metadata"].get("creationTimestamp") or stamp())


def prepare_update(strategy: Strategy, new: Made, old: Obj, subresource: str, stamp: str) -> None:
    """Restore what the endpoint must not change, and raise the generation if needed; `stamp` is the time."""
    endpoint = strategy.endpoint(subresource)
    for path in endpoint.restores:
        _restore(new, old, path)
    if endpoint.update is not None:
        endpoint.update(new, old, stamp)
    _restore(new, old, ("metadata", "generation"))
    counts = endpoint is strategy.main or endpoint.counts
    if counts and any(_at(new, path) != _at(old, path) for path in strategy.counted):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def reset_fields(strategy: Strategy, subresource: str) -> tuple[Path, ...]:
    """Return the paths that a write to this endpoint never owns."""
    endpoint = strategy.endpoint(subresource)
    paths = [path for path in endpoint.restores if path[0] != "metadata"]
    if endpoint.only:
        names = (part.name for part in fields("core/v1.PodSpec"))
        paths += [("spec", name) for name in names if name not in endpoint.only]
    return (*paths, *endpoint.also)


def _at(obj: Obj, path: Path) -> Any:
    value: Any = obj
    for name in path:
        value = (value or {}).get(name)
    return value or None


def _restore(new: Made, old: Obj, path: Path) -> None:
    """Restore one part; if the old object has none, it is removed."""
    into, known = new, old
    for name in path[:-1]:
        into, known = into.setdefault(name, {}), known.get(name) or {}
    if path[-1] in known:
        into[path[-1]] = known[path[-1]]
    else:
        into.pop(path[-1], None)


def _restore_metadata(new: Made, old: Obj, stamp: str = "") -> None:
    for name in _OF_METADATA:
        _restore(new, old, ("metadata", name))


# ── strategies of single kinds ──


def _namespace_created(namespace: Made, stamp: str) -> None:
    namespace["status"] = {"phase": "Active"}
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    _name_namespace(namespace)


def _namespace_updated(namespace: Made, old: Obj, stamp: str) -> None:
    _restore(namespace, old, ("spec", "finalizers"))
    _name_namespace(namespace)


def _name_namespace(namespace: Made) -> None:
    metadata = namespace["metadata"]
    metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata.get("name", "")


def _node_created(node: Made, stamp: str) -> None:
    node["spec"].pop("configSource", None)
    node["status"].pop("config", None)
    node["status"].pop("declaredFeatures", None)
    taints = node["spec"].get("taints") or []
    wanted = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    if not any(
        taint.get("key") == wanted["key"] and taint.get("effect") == wanted["effect"] for taint in taints
    ):
        node["spec"]["taints"] = [*taints, wanted]


def _account_written(account: Made, old: Obj | str, stamp: str = "") -> None:
    if account.get("secrets"):
        account["secrets"] = [
            {"name": secret["name"]} if secret.get("name") else {} for secret in account["secrets"]
        ]


def _slice_written(endpoint_slice: Made, old: Obj | str, stamp: str = "") -> None:
    for endpoint in endpoint_slice.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def _lease_written(lease: Made, old: Obj | str, stamp: str = "") -> None:
    before = old["spec"] if isinstance(old, Mapping) else {}
    for name in ("strategy", "preferredHolder"):
        if name not in before:
            lease["spec"].pop(name, None)


def _definition_created(definition: Made, stamp: str) -> None:
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": None,
    }
    _add_stored_version(definition)


def _definition_updated(definition: Made, old: Obj, stamp: str) -> None:
    definition["status"] = {**definition.get("status", {})}
    _add_stored_version(definition)


def _definition_status(definition: Made, old: Obj, stamp: str) -> None:
    if not definition["status"].get("storedVersions"):
        _add_stored_version(definition)


def _add_stored_version(definition: Made) -> None:
    """Add the storage version to `status.storedVersions`."""
    stored = next((v["name"] for v in definition["spec"].get("versions") or () if v["storage"]), None)
    known = definition["status"].get("storedVersions") or []
    if stored is not None and stored not in known:
        definition["status"]["storedVersions"] = [*known, stored]


def _api_service_created(api_service: Made, stamp: str) -> None:
    if "service" not in api_service["spec"]:
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": stamp,
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        api_service["status"] = {"conditions": [condition]}


# ── the table ──

_STATUS_ONLY: Final = Endpoint(restores=(SPEC,))
_STATUS_AND_NO_METADATA: Final = Endpoint(restores=(SPEC,), also=(METADATA,), update=_restore_metadata)
_NOTHING: Final = Strategy()


def _with_status(
    status: str,
    *,
    counted: tuple[Path, ...] = (),
    create: Create | None = None,
    update: Update | None = None,
    endpoint: Endpoint = _STATUS_ONLY,
    others: Mapping[str, Endpoint] | None = None,
) -> Strategy:
    """Return the strategy of a kind with a status subresource."""
    return Strategy(
        counted=counted,
        numbered=bool(counted),
        status=status,
        create=create,
        main=Endpoint(restores=(STATUS,), update=update),
        endpoints={"status": endpoint, **(others or {})},
    )


def _workload(
    status: str,
    create: Create = workloads.workload_created,
    update: Update = workloads.workload_updated,
    **more: Any,
) -> Strategy:
    return _with_status(status, counted=more.pop("counted", (SPEC,)), create=create, update=update, **more)


def _numbered(*counted: Path, create: Create | None = None, update: Update | None = None) -> Strategy:
    return Strategy(counted=counted, numbered=True, create=create, main=Endpoint(update=update))


_AUTOSCALER: Final = _with_status("autoscaling/v2.HorizontalPodAutoscalerStatus")
"""The strategy of the stored version, in which both versions are prepared."""

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "core/v1.Namespace": _with_status(
        "core/v1.NamespaceStatus",
        create=_namespace_created,
        update=_namespace_updated,
        others={"finalize": Endpoint(restores=(STATUS,))},
    ),
    "core/v1.Node": Strategy(
        create=_node_created, main=Endpoint(restores=(STATUS,)), endpoints={"status": _STATUS_ONLY}
    ),
    "core/v1.PersistentVolume": _with_status(
        "core/v1.PersistentVolumeStatus",
        create=claims.volume_created,
        endpoint=Endpoint(restores=(SPEC,), update=claims.volume_status),
    ),
    "core/v1.PersistentVolumeClaim": _with_status(
        "core/v1.PersistentVolumeClaimStatus", create=claims.claim_created, update=claims.claim_updated
    ),
    "core/v1.Pod": _with_status(
        "core/v1.PodStatus",
        counted=(SPEC,),
        create=pods.create_pod,
        update=lambda new, old, stamp: pods.update_pod(new, old),
        endpoint=Endpoint(
            restores=(SPEC,),
            also=(("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
            update=lambda new, old, stamp: pods.update_status(new, old),
        ),
        others={
            "ephemeralcontainers": Endpoint(
                also=(METADATA, STATUS),
                only=("ephemeralContainers",),
                update=lambda new, old, stamp: pods.update_ephemeral_containers(new, old),
                counts=True,
            ),
            "resize": Endpoint(
                also=(METADATA, STATUS),
                only=("containers", "initContainers"),
                update=lambda new, old, stamp: pods.resize_pod(new, old),
                counts=True,
            ),
        },
    ),
    "core/v1.PodTemplate": _numbered(("template",), create=workloads.workload_created, update=workloads.workload_updated),
    "core/v1.ReplicationController": _workload(
        "core/v1.ReplicationControllerStatus",
        endpoint=Endpoint(restores=(SPEC,), update=workloads.borrow_labels),
    ),
    "core/v1.ResourceQuota": _with_status("core/v1.ResourceQuotaStatus"),
    "core/v1.Service": _with_status(
        "core/v1.ServiceStatus",
        create=lambda service, stamp: services.set_families(service, None),
        update=lambda new, old, stamp: services.update_service(new, old),
    ),
    "core/v1.ServiceAccount": Strategy(create=_account_written, main=Endpoint(update=_account_written)),
    "apps/v1.Deployment": _workload(
        "apps/v1.DeploymentStatus",
        counted=(SPEC, ("metadata", "annotations")),
        endpoint=Endpoint(restores=(SPEC, ("metadata", "labels")), also=(("metadata", "labels"),)),
    ),
    "apps/v1.ReplicaSet": _workload("apps/v1.ReplicaSetStatus"),
    "apps/v1.StatefulSet": _workload(
        "apps/v1.StatefulSetStatus", workloads.stateful_set_written, workloads.stateful_set_written
    ),
    "apps/v1.DaemonSet": _workload(
        "apps/v1.DaemonSetStatus",
        workloads.daemon_set_created,
        workloads.daemon_set_updated,
        endpoint=Endpoint(restores=(SPEC,), update=workloads.daemon_set_updated),
    ),
    "batch/v1.Job": _workload(
        "batch/v1.JobStatus",
        workloads.job_created,
        workloads.job_updated,
        endpoint=Endpoint(restores=(SPEC,), update=workloads.borrow_labels),
    ),
    "batch/v1.CronJob": _workload("batch/v1.CronJobStatus"),
    "autoscaling/v1.HorizontalPodAutoscaler": _AUTOSCALER,
    "autoscaling/v2.HorizontalPodAutoscaler": _AUTOSCALER,
    "certificates/v1.CertificateSigningRequest": Strategy(
        status="certificates/v1.CertificateSigningRequestStatus",
        create=csr.request_created,
        main=Endpoint(restores=(SPEC, STATUS)),
        endpoints={
            "status": Endpoint(restores=(SPEC,), also=(("status", "conditions"),), update=csr.request_status),
            "approval": Endpoint(restores=(SPEC,), also=(("status", "certificate"),), update=csr.request_approval),
        },
    ),
    "networking/v1.Ingress": _with_status("networking/v1.IngressStatus", counted=(SPEC,)),
    "networking/v1.IngressClass": _numbered(SPEC),
    "networking/v1.NetworkPolicy": _numbered(SPEC),
    "policy/v1.PodDisruptionBudget": _with_status("policy/v1.PodDisruptionBudgetStatus", counted=(SPEC,)),
    "scheduling/v1.PriorityClass": _numbered(),
    "coordination/v1.Lease": Strategy(create=_lease_written, main=Endpoint(update=_lease_written)),
    "discovery/v1.EndpointSlice": _numbered(
        ("addressType",), ("endpoints",), ("ports",), ("metadata", "labels"),
        create=_slice_written,
        update=_slice_written,
    ),
    "storage/v1.CSIDriver": Strategy(counted=(SPEC,)),
    "storage/v1.VolumeAttachment": _with_status(
        "storage/v1.VolumeAttachmentStatus", endpoint=_STATUS_AND_NO_METADATA
    ),
    "flowcontrol/v1.FlowSchema": _with_status(
        "flowcontrol/v1.FlowSchemaStatus", counted=(SPEC,), endpoint=_STATUS_AND_NO_METADATA
    ),
    "flowcontrol/v1.PriorityLevelConfiguration": _with_status(
        "flowcontrol/v1.PriorityLevelConfigurationStatus", counted=(SPEC,), endpoint=_STATUS_AND_NO_METADATA
    ),
    "admissionregistration/v1.ValidatingAdmissionPolicy": _with_status(
        "admissionregistration/v1.ValidatingAdmissionPolicyStatus",
        counted=(SPEC,),
        endpoint=_STATUS_AND_NO_METADATA,
    ),
    "admissionregistration/v1.ValidatingAdmissionPolicyBinding": _numbered(SPEC),
    "admissionregistration/v1.ValidatingWebhookConfiguration": _numbered(("webhooks",)),
    "admissionregistration/v1.MutatingWebhookConfiguration": _numbered(("webhooks",)),
    "apiextensions/v1.CustomResourceDefinition": _with_status(
        "apiextensions/v1.CustomResourceDefinitionStatus",
        counted=(SPEC,),
        create=_definition_created,
        update=_definition_updated,
        endpoint=Endpoint(restores=(SPEC,), also=(METADATA,), update=_definition_status),
    ),
    "apiregistration/v1.APIService": _with_status(
        "apiregistration/v1.APIServiceStatus", create=_api_service_created, endpoint=_STATUS_AND_NO_METADATA
    ),
}  # fmt: skip


def strategy_of(key: str) -> Strategy:
    """Return the strategy of a kind; the default has neither status nor generation."""
    return STRATEGIES.get(key, _NOTHING)
