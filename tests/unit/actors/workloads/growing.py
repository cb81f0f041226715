"""Deployments and ReplicaSets in a simulated cluster, with the actions of a kubelet."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.core.model.plan import Emit
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster, settle
from lamina.simulation.cluster.kinds import DEPLOYMENT, POD, REPLICA_SET, make

NAMESPACE = "default"
LABELS = {"app": "web"}


def template(image: str = "web:1", **labels: str) -> Made:
    return {
        "metadata": {"labels": {**LABELS, **labels}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    }


def replica_set(name: str = "web", replicas: int = 3, image: str = "web:1", **fields: Any) -> Made:
    """Return a ReplicaSet of pods labelled app=web; `spec` adds to its spec."""
    more = fields.pop("spec", {})
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(image), **more}
    return make(REPLICA_SET, name, labels=fields.pop("labels", LABELS), spec=spec, **fields)


def deployment(name: str = "web", replicas: int = 3, image: str = "web:1", **fields: Any) -> Made:
    """Return a Deployment as a server would have defaulted it; `spec` adds to its spec."""
    more = fields.pop("spec", {})
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": template(image),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        **more,
    }
    return make(DEPLOYMENT, name, labels=LABELS, spec=spec, **fields)


def recreating(**fields: Any) -> Made:
    return deployment(spec={"strategy": {"type": "Recreate"}}, **fields)


WEB = Ref("apps/v1", "Deployment", NAMESPACE, "web")
SET = Ref("apps/v1", "ReplicaSet", NAMESPACE, "web")


def run(cluster: SimulatedCluster, **options: Any) -> None:
    """Let the controllers of Deployments and ReplicaSets do what there is to do."""
    settle(cluster, DEPLOYMENTS, REPLICA_SETS, **options)


def pods(cluster: SimulatedCluster) -> list[Made]:
    return sorted(cluster.listed(POD), key=meta.name)


def active_pods(cluster: SimulatedCluster) -> list[Made]:
    return [pod for pod in pods(cluster) if not meta.is_deleting(pod)]


def become(cluster: SimulatedCluster, pod: Obj, *, ready: bool = True) -> None:
    """Have a pod placed and running, and ready or not."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": stamp(cluster.now),
    }
    cluster.patch(
        meta.ref(pod),
        {"spec": {"nodeName": "sim-0"}, "status": {"phase": "Running", "conditions": [condition]}},
    )


def is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def everything_well(image: str) -> bool:
    return True


def live(
    cluster: SimulatedCluster,
    well: Callable[[str], bool] = everything_well,
    *,
    rounds: int = 60,
    **options: Any,
) -> None:
    """Let controllers and pods take turns until nothing changes: pods of images that are well become ready."""
    for _ in range(rounds):
        run(cluster, **options)
        before = cluster.version
        for pod in pods(cluster):
            if meta.is_deleting(pod):
                cluster.delete(meta.ref(pod), grace=0)
            elif not is_ready(pod) and well(pod["spec"]["containers"][0]["image"]):
                become(cluster, pod)
        if cluster.version == before:
            return
    raise AssertionError("the controllers do not settle")


def pass_time(cluster: SimulatedCluster, **span: float) -> None:
    cluster.now += timedelta(**span)


def sets(cluster: SimulatedCluster) -> dict[str, Made]:
    """Return the ReplicaSets by their revision."""
    numbered = {
        meta.annotations(one).get("deployment.kubernetes.io/revision", "?"): one
        for one in cluster.listed(REPLICA_SET)
    }
    return dict(sorted(numbered.items()))


def sizes(cluster: SimulatedCluster) -> dict[str, int]:
    return {number: one["spec"]["replicas"] for number, one in sets(cluster).items()}


def edit(cluster: SimulatedCluster, image: str | None = None, **spec: Any) -> Made:
    """Change the image of the Deployment `web`, or other fields of its spec."""
    patch: Made = dict(spec)
    if image is not None:
        patch["template"] = template(image)
    return cluster.patch(WEB, {"spec": patch})


def condition(cluster: SimulatedCluster, name: str, ref: Ref = WEB) -> Made:
    conditions = cluster.get(ref).get("status", {}).get("conditions") or ()
    return next((dict(one) for one in conditions if one["type"] == name), {})


def event_messages(cluster: SimulatedCluster, reason: str = "") -> list[str]:
    """Return what was told, in order."""
    events = [action.event for action in cluster.journal if isinstance(action, Emit)]
    return [event["message"] for event in events if reason in ("", event["reason"])]


def names(objects: Iterable[Obj]) -> list[str]:
    return [meta.name(one) for one in objects]
