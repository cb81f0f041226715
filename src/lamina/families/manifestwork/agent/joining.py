"""
How a cluster joins a hub with a bootstrap token, in the names of Open Cluster Management.

With the token the agent may create ManagedClusters and CertificateSigningRequests, and
nothing else. What they contain is not checked when they are created: a ManagedCluster may
have `hubAcceptsClient` and the label of a set, and is selected by placements then. Rights
and a certificate it gets by acceptance alone. An administrator of the hub approves the request and accepts the
cluster; the certificate then stands for the user and the groups of that one cluster,
to which the rights of its agent are bound. Renewals are requested with the
certificate itself, and the hub approves them.
"""

from __future__ import annotations

from lamina.core import csr
from lamina.core.model.agents import Joining, JoinStep
from lamina.core.rbac import Rights
from lamina.families.manifestwork.labels import CLUSTER, CLUSTER_GROUP, CLUSTER_NAME, SET_LABEL
from lamina.families.manifestwork.placement.clusterset import DEFAULT_SET
from lamina.families.manifestwork.placement.managedcluster import NAMESPACE_LABEL, VERSION
from lamina.families.manifestwork.placement.renewals import group_of, is_renewal, mismatch, name_problem
from lamina.families.manifestwork.rbac import agent_rights
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_RBAC = "rbac.authorization.k8s.io"
_NAMESPACE, _ACCOUNT = "open-cluster-management", "agent-registration-bootstrap"
_BOOTSTRAP = "open-cluster-management:bootstrap"


def joining() -> Joining:
    return Joining(
        bootstrap=_bootstrap(),
        step=join_step,
        name_problem=name_problem,
        requests=lambda cluster: f"{CLUSTER_NAME}={cluster}",
        mismatch=mismatch,
        is_renewal=is_renewal,
        grants=_grants,
        acceptance=_acceptance,
    )


def hub_user(cluster: str) -> tuple[str, tuple[str, ...]]:
    """Return the user and the groups of the agents of a cluster on its hub."""
    group = group_of(cluster)
    return f"{group}:lamina", (
        group,
        "system:open-cluster-management:managed-clusters",
        "system:authenticated",
    )


def join_step(name: str, address: str, pem: bytes, cluster: Obj | None, request: Obj | None) -> JoinStep:
    """Return the next step of a cluster that joins a hub."""
    if cluster is None:
        return JoinStep(creates=(_registered(name, address),), because="registering the cluster")
    if request is None:
        made = csr.request_client_certificate(f"{name}-", pem, {CLUSTER_NAME: name})
        return JoinStep(creates=(made,), because="requesting a client certificate")
    if refused := csr.refusal(request):
        return JoinStep(refused=refused)
    if issued := csr.certificate(request):
        return JoinStep(certificate=issued)
    if not csr.is_approved(request):
        sent = meta.name(request)
        return JoinStep(
            because=f"request {sent} waits for approval: run `lamina clusters accept {name}` on the hub"
        )
    return JoinStep(because="waiting for the certificate: the request is approved and not signed yet")


def _registered(name: str, address: str) -> Made:
    """Return a cluster that the hub has not accepted yet; only an administrator puts it into a set."""
    spec: Made = {"hubAcceptsClient": False, "leaseDurationSeconds": 60}
    if address:
        spec["managedClusterClientConfigs"] = [{"url": address}]
    return {"apiVersion": VERSION, "kind": CLUSTER.kind, "metadata": {"name": name}, "spec": spec}


def _acceptance(cluster: Obj) -> Made:
    """Return the patch that accepts a cluster; one without a set is put into the default set, as upstream does."""
    accepted: Made = {"spec": {"hubAcceptsClient": True}}
    if SET_LABEL in meta.labels(cluster):
        return accepted
    return {**accepted, "metadata": {"labels": {SET_LABEL: DEFAULT_SET}}}


def _bootstrap() -> tuple[Made, ...]:
    needed = Rights()
    needed.add(csr.REQUEST.group, ("certificatesigningrequests",), ("get", "create"))
    needed.add(CLUSTER_GROUP, ("managedclusters",), ("get", "create"))
    account = {"kind": "ServiceAccount", "namespace": _NAMESPACE, "name": _ACCOUNT}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        *_bound("ClusterRole", {"name": _BOOTSTRAP}, needed, account),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": _ACCOUNT, "namespace": _NAMESPACE},
        },
    )


def _grants(cluster: str) -> tuple[Made, ...]:
    wide, inside = agent_rights(cluster)
    # Renewals of its certificate.
    wide.add(csr.REQUEST.group, ("certificatesigningrequests",), ("get", "create"))
    group = {"apiGroup": _RBAC, "kind": "Group", "name": group_of(cluster)}
    name = f"open-cluster-management:lamina-agent:{cluster}"
    namespace: Made = {"name": cluster, "labels": {NAMESPACE_LABEL: cluster}}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": namespace},
        *_bound("ClusterRole", {"name": name}, wide, group),
        *_bound("Role", {"name": name, "namespace": cluster}, inside, group),
    )


def _bound(kind: str, metadata: Made, needed: Rights, subject: Made) -> tuple[Made, Made]:
    """Return a role and its binding."""
    version = f"{_RBAC}/v1"
    return (
        {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": needed.rules()},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
            "subjects": [subject],
        },
    )
