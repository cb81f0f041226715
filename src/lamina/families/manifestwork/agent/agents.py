"""The agents of ManifestWork as a value: what a control plane needs to register clusters and to run their agents."""

from __future__ import annotations

from lamina.core.model.agents import Agents, AgentSpec, SimulatedAgents, SimulatedFleet
from lamina.core.model.controller import AnyController
from lamina.families.manifestwork.agent.controller import agent
from lamina.families.manifestwork.agent.joining import hub_user, joining
from lamina.families.manifestwork.agent.labels import ASSIGNED, HUB, WORK_CLEANUP, hub_hash
from lamina.families.manifestwork.crds.bundle import spoke_definitions
from lamina.families.manifestwork.placement.managedcluster import (
    NAMESPACE_LABEL,
    cluster_ref,
    lease_ref,
    registration,
)
from lamina.families.manifestwork.rbac import agent_rights
from lamina.objects import meta
from lamina.objects.types import Made, Obj


def agents() -> Agents:
    return Agents(
        family="manifestwork",
        hub=HUB,
        controllers=_controllers,
        definitions=spoke_definitions,
        required_status_fields={
            "appliedmanifestworks.work.open-cluster-management.io": ("status.appliedResources",)
        },
        cluster=cluster_ref,
        registration=registration,
        relocation=relocation,
        addresses=addresses,
        is_accepted=lambda cluster: bool((cluster.get("spec") or {}).get("hubAcceptsClient")),
        assigned=ASSIGNED,
        finalizer=WORK_CLEANUP,
        lease=lease_ref,
        owns_namespace=lambda namespace, name: meta.labels(namespace).get(NAMESPACE_LABEL) == name,
        hub_user=hub_user,
        local_user=(
            "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa",
            ("system:masters", "system:serviceaccounts", "system:authenticated"),
        ),
        joining=joining(),
        rights=agent_rights,
        local_rights=(
            "what its manifests need, and appliedmanifestworks, clusterclaims and nodes; "
            "usually it is cluster-admin there"
        ),
    )


def simulated(fleet: SimulatedFleet) -> SimulatedAgents:
    from lamina.families.manifestwork.simulated_agents import simulated_agents

    return simulated_agents(fleet)


def _controllers(spec: AgentSpec) -> tuple[AnyController, ...]:
    return agent(spec.cluster, hub_hash(spec.address), spec.id, options=spec.options, version=spec.version)


def relocation(cluster: Obj, address: str) -> Made:
    """Return the patch that replaces the first address of a cluster; empty where it has this one already."""
    if not address or address in addresses(cluster):
        return {}
    known = (cluster.get("spec") or {}).get("managedClusterClientConfigs") or [{}]
    return {"spec": {"managedClusterClientConfigs": [{**known[0], "url": address}, *known[1:]]}}


def addresses(cluster: Obj) -> tuple[str, ...]:
    known = (cluster.get("spec") or {}).get("managedClusterClientConfigs") or ()
    return tuple(str(one.get("url")) for one in known)
