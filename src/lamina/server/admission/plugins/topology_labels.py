"""Topology labels of Pods: the zone and region of their node."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made
from lamina.server.admission.plugins.lister import Lister

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def copy_topology_labels(pod: Made, node_name: str, lookup: Lister) -> None:
    """Copy the topology labels of a node to a Pod."""
    node = lookup.get("nodes", "", node_name)
    labels = (node["metadata"].get("labels") or {}) if node is not None else {}
    places = {key: labels[key] for key in _LABELS if key in labels}
    if places:
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **places}


def set_topology_labels(pod: Made, lookup: Lister, suffix: str) -> None:
    """Set topology labels on a Pod that is created with a node."""
    if node_name := pod["spec"].get("nodeName"):
        copy_topology_labels(pod, node_name, lookup)
