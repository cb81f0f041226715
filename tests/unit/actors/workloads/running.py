"""StatefulSets, DaemonSets, Jobs and CronJobs in a simulated cluster, with the actions of a kubelet."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lamina.actors.workloads.cronjob import CRON_JOBS
from lamina.actors.workloads.daemonset import DAEMON_SETS
from lamina.actors.workloads.job import JOBS
from lamina.actors.workloads.job_expiry import JOB_EXPIRY, JOB_LEFTOVERS
from lamina.actors.workloads.statefulset import STATEFUL_SETS
from lamina.core.model.plan import Emit
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster, settle
from lamina.simulation.cluster.kinds import CRON_JOB, DAEMON_SET, JOB, NODE, POD, STATEFUL_SET, make

CONTROLLERS = (
    (STATEFUL_SETS, "StatefulSet"),
    (DAEMON_SETS, "DaemonSet"),
    (JOBS, "Job"),
    (JOB_EXPIRY, "Job"),
    (JOB_LEFTOVERS, "Pod"),
    (CRON_JOBS, "CronJob"),
)

SET = Ref("apps/v1", "StatefulSet", "default", "web")
DAEMON = Ref("apps/v1", "DaemonSet", "default", "agent")
TASK = Ref("batch/v1", "Job", "default", "task")
TICK = Ref("batch/v1", "CronJob", "default", "tick")

Kubelet = Callable[[SimulatedCluster, Obj], None]


def template(app: str, image: str, **spec: Any) -> Made:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def stateful_set(replicas: int = 3, image: str = "web:1", **spec: Any) -> Made:
    """Return a StatefulSet `web` as a server would have defaulted it."""
    fields = {
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "template": template("web", image),
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
        **spec,
    }
    return make(STATEFUL_SET, "web", spec=fields)


def daemon_set(image: str = "agent:1", **spec: Any) -> Made:
    """Return a DaemonSet `agent` as a server would have defaulted it."""
    fields = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": template("agent", image),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "revisionHistoryLimit": 10,
        **spec,
    }
    return make(DAEMON_SET, "agent", spec=fields)


def job(**spec: Any) -> Made:
    """Return a Job `task` as a server would have defaulted it."""
    labels = {"job-name": "task"}
    fields = {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "task"}], "restartPolicy": "Never"},
        },
        **spec,
    }
    return make(JOB, "task", spec={name: value for name, value in fields.items() if value is not None})


def cron_job(schedule: str = "* * * * *", **spec: Any) -> Made:
    """Return a CronJob `tick` as a server would have defaulted it."""
    fields = {
        "schedule": schedule,
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"metadata": {"labels": {"by": "tick"}}, "spec": job()["spec"]},
        **spec,
    }
    return make(CRON_JOB, "tick", spec=fields)


def nodes(cluster: SimulatedCluster, *names: str, **labels: str) -> None:
    for name in names:
        cluster.create(make(NODE, name, labels=labels, spec={}))


# ── what a kubelet does with a pod ──


def become(
    cluster: SimulatedCluster, pod: Obj, phase: str, *, ready: bool = False, code: int | None = None
) -> None:
    """Have a pod reach a phase, on the node it was made for."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(cluster.now)}
    status: Made = {"phase": phase, "conditions": [condition]}
    if code is not None:
        terminated = {"exitCode": code, "finishedAt": stamp(cluster.now)}
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
    patch = {"spec": {"nodeName": pod["spec"].get("nodeName") or _target(pod)}, "status": status}
    cluster.patch(meta.ref(pod), patch)


def _target(pod: Obj) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return "sim-0"


def well(cluster: SimulatedCluster, pod: Obj) -> None:
    """Run a pod and have it ready."""
    become(cluster, pod, "Running", ready=True)


def succeed(cluster: SimulatedCluster, pod: Obj) -> None:
    become(cluster, pod, "Succeeded", code=0)


def fail(cluster: SimulatedCluster, pod: Obj) -> None:
    become(cluster, pod, "Failed", code=1)


def only(fine: Callable[[Obj], bool], then: Kubelet = well) -> Kubelet:
    """Return a kubelet that runs some pods and leaves the others as they are."""

    def kubelet(cluster: SimulatedCluster, pod: Obj) -> None:
        if fine(pod):
            then(cluster, pod)

    return kubelet


def run(cluster: SimulatedCluster, **options: Any) -> None:
    """Let the controllers of whatever there is do what there is to do."""
    kinds = {ref.kind for ref in cluster.objects}
    settle(cluster, *(one for one, kind in CONTROLLERS if kind in kinds), **options)


def live(cluster: SimulatedCluster, kubelet: Kubelet = well, *, rounds: int = 100, **options: Any) -> None:
    """Let controllers and the kubelet take turns until nothing changes."""
    for _ in range(rounds):
        run(cluster, **options)
        before = cluster.version
        for pod in pods(cluster):
            attend(cluster, pod, kubelet)
        if cluster.version == before:
            return
    raise AssertionError("the controllers do not settle")


def attend(cluster: SimulatedCluster, pod: Obj, kubelet: Kubelet) -> None:
    """Do for a pod what a kubelet would do next: let it go, or run it."""
    if meta.is_deleting(pod):
        if (pod.get("status") or {}).get("phase") in ("Pending", "Running", None) and meta.finalizers(pod):
            become(cluster, pod, "Failed", code=137)
        elif not meta.finalizers(pod):
            cluster.delete(meta.ref(pod), grace=0)
    elif (pod.get("status") or {}).get("phase") is None:
        kubelet(cluster, pod)


# ── what there is to see ──


def pods(cluster: SimulatedCluster) -> list[Made]:
    return sorted(cluster.listed(POD), key=meta.name)


def names(cluster: SimulatedCluster) -> list[str]:
    return [meta.name(pod) for pod in pods(cluster)]


def images(cluster: SimulatedCluster) -> dict[str, str]:
    return {meta.name(pod): pod["spec"]["containers"][0]["image"] for pod in pods(cluster)}


def status(cluster: SimulatedCluster, ref: Ref) -> Made:
    found: Made = cluster.get(ref).get("status") or {}
    return found


def conditions(cluster: SimulatedCluster, ref: Ref) -> list[tuple[str, str, str]]:
    return [
        (one["type"], one["status"], one.get("reason", ""))
        for one in status(cluster, ref).get("conditions") or ()
    ]


def event_messages(cluster: SimulatedCluster, reason: str = "") -> list[str]:
    """Return what was told, in order."""
    events = [action.event for action in cluster.journal if isinstance(action, Emit)]
    return [event["message"] for event in events if reason in ("", event["reason"])]


def wind(cluster: SimulatedCluster, **span: float) -> None:
    cluster.now += timedelta(**span)
