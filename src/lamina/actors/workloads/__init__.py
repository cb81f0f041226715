"""
The controllers of workloads: what keeps as many pods as were asked for, and moves them to a new template.

Each is a value run by the one loop. What they share is in `pods`, `claim`,
`ranking`, `telling` and `templates`.
"""

from lamina.actors.workloads.claims import CLAIMS
from lamina.actors.workloads.cronjob import CRON_JOBS
from lamina.actors.workloads.daemonset import DAEMON_SETS
from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.actors.workloads.disruption import BUDGETS
from lamina.actors.workloads.endpoints import ENDPOINTS
from lamina.actors.workloads.ephemeral import EPHEMERAL_CLAIMS
from lamina.actors.workloads.job import JOBS
from lamina.actors.workloads.job_expiry import JOB_EXPIRY, JOB_LEFTOVERS
from lamina.actors.workloads.mirroring import MIRRORED_SLICES
from lamina.actors.workloads.provisioning import PROVISIONING
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.actors.workloads.replication import REPLICATION_CONTROLLERS
from lamina.actors.workloads.slices import SLICES
from lamina.actors.workloads.statefulset import STATEFUL_SETS
from lamina.actors.workloads.volumes import HELD_CLAIMS, VOLUMES
from lamina.core.controller import AnyController

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
