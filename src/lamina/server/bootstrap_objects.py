"""
Objects that every cluster starts with, beside its namespaces: the Service of its API and the system
priority classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.objects.types import Made
from lamina.server.kinds.builtin.services import POOL

_NAME = "kubernetes"
_LABELS = {"component": "apiserver", "provider": "kubernetes"}


SYSTEM_PRIORITIES: Final[Sequence[Made]] = (
    {
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": "Used for system critical pods that must not be moved from their current node.",
    },
    {
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary.",
    },
)


def own_service(port: int) -> Made:
    """Return the Service `kubernetes` in `default`, which has the first cluster IP."""
    address = str(POOL.network[1])
    return {
        "metadata": {"name": _NAME, "namespace": "default", "labels": _LABELS},
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }
