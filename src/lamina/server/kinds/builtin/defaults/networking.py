"""Defaults of Services, endpoints, ingress classes and network policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made

_AFFINITY_SECONDS: Final = 3 * 60 * 60


def _service(service: Made) -> None:
    spec = service["spec"]
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port["targetPort"] in (0, ""):
            port["targetPort"] = port["port"]
    if is_externally_accessible(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in service["status"]["loadBalancer"].get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def is_externally_accessible(spec: Made) -> bool:
    """Return whether a Service is reachable through addresses outside the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _endpoints(endpoints: Made) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _endpoint_port(port: Made) -> None:
    port.setdefault("name", "")
    port.setdefault("protocol", "TCP")


def _network_policy_port(port: Made) -> None:
    port.setdefault("protocol", "TCP")


def _network_policy(policy: Made) -> None:
    spec = policy["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _ingress_class(ingress_class: Made) -> None:
    parameters = ingress_class["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "core/v1.Service": _service,
    "core/v1.Endpoints": _endpoints,
    "discovery/v1.EndpointPort": _endpoint_port,
    "networking/v1.NetworkPolicy": _network_policy,
    "networking/v1.NetworkPolicyPort": _network_policy_port,
    "networking/v1.IngressClass": _ingress_class,
}
