"""
The workload controllers of kube-controller-manager, with endpoints and volumes.

Each is a Controller value. What they share is in `pods`, `deletion_order`,
`event_recorder`, `templates` and `core.ownership`.
"""

from lamina.actors.workloads.cronjob import CRON_JOBS
from lamina.actors.workloads.daemonset import DAEMON_SETS
from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.actors.workloads.disruption import BUDGETS
from lamina.actors.workloads.endpoints import ENDPOINTS
from lamina.actors.workloads.endpointslice import SLICES
from lamina.actors.workloads.endpointslice_mirroring import MIRRORED_SLICES
from lamina.actors.workloads.ephemeral import EPHEMERAL_CLAIMS
from lamina.actors.workloads.job import JOBS
from lamina.actors.workloads.job_expiry import JOB_EXPIRY, JOB_LEFTOVERS
from lamina.actors.workloads.pv_binder import CLAIMS
from lamina.actors.workloads.pv_phase import HELD_CLAIMS, VOLUMES
from lamina.actors.workloads.pv_provisioner import PROVISIONING
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.actors.workloads.replicationcontroller import REPLICATION_CONTROLLERS
from lamina.actors.workloads.statefulset import STATEFUL_SETS
from lamina.core.model.controller import AnyController

__all__ = ["CONTROLLERS"]

CONTROLLERS: tuple[AnyController, ...] = (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    JOB_EXPIRY,
    JOB_LEFTOVERS,
    CRON_JOBS,
    ENDPOINTS,
    SLICES,
    MIRRORED_SLICES,
    BUDGETS,
    CLAIMS,
    VOLUMES,
    HELD_CLAIMS,
    EPHEMERAL_CLAIMS,
    PROVISIONING,
)
