"""What a cluster has from the beginning, beside its namespaces: the Service that leads to its own API."""

from __future__ import annotations

from lamina.objects.types import Made
from lamina.server.builtin.services import POOL

_NAME = "kubernetes"
_LABELS = {"component": "apiserver", "provider": "kubernetes"}


def own_service(port: int) -> Made:
    """Return the Service in `default` that clients inside a cluster look for; it has the first address of all."""
    address = str(POOL.network[1])
    return {
        "metadata": {"name": _NAME, "namespace": "default", "labels": _LABELS},
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }
