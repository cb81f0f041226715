"""Defaults of workloads: Deployments, Jobs and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made


def _deployment(deployment: Made) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        pace = strategy.setdefault("rollingUpdate", {})
        pace.setdefault("maxUnavailable", "25%")
        pace.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _replica_set(replica_set: Made) -> None:
    replica_set["spec"].setdefault("replicas", 1)


def _daemon_set(daemon_set: Made) -> None:
    spec = daemon_set["spec"]
    strategy = spec["updateStrategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        pace = strategy.setdefault("rollingUpdate", {})
        pace.setdefault("maxUnavailable", 1)
        pace.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _stateful_set(stateful_set: Made) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)


def _replication_controller(controller: Made) -> None:
    template = controller["spec"].get("template")
    labels = template["metadata"].get("labels") if template is not None else None
    if labels:
        if not controller["spec"].get("selector"):
            controller["spec"]["selector"] = dict(labels)
        if not controller["metadata"].get("labels"):
            controller["metadata"]["labels"] = dict(labels)


def _job(job: Made) -> None:
    spec = job["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        # The same map object: labels that are added to a new job's template are added to the job, too.
        job["metadata"]["labels"] = labels
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _cron_job(cron_job: Made) -> None:
    spec = cron_job["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def _condition_of_failure(pattern: Made) -> None:
    if not pattern.get("status"):
        pattern["status"] = "True"


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "apps/v1.Deployment": _deployment,
    "apps/v1.ReplicaSet": _replica_set,
    "apps/v1.DaemonSet": _daemon_set,
    "apps/v1.StatefulSet": _stateful_set,
    "core/v1.ReplicationController": _replication_controller,
    "batch/v1.Job": _job,
    "batch/v1.CronJob": _cron_job,
    "batch/v1.PodFailurePolicyOnPodConditionsPattern": _condition_of_failure,
}
