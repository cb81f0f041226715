"""What a Pod learns from its node once it has one: in which zone and region it is."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made
from lamina.server.builtin.admit.asking import Lookup

_PLACES: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def take_place(pod: Made, node_name: str, lookup: Lookup) -> None:
    """Label a Pod with the place of its node, as far as the node says where it is."""
    node = lookup.get("nodes", "", node_name)
    labels = (node["metadata"].get("labels") or {}) if node is not None else {}
    places = {key: labels[key] for key in _PLACES if key in labels}
    if places:
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **places}


def find_place(pod: Made, lookup: Lookup, suffix: str) -> None:
    """The same for a Pod that is created with a node."""
    if node_name := pod["spec"].get("nodeName"):
        take_place(pod, node_name, lookup)
