"""
The outcome of workloads on managed clusters: each is simulated once, alone, on a cluster of its own.

The managed clusters of a hub are not simulated. What an agent would report of a
Deployment follows from the stages, which simulate its pods, and from kstatus, by
which the agent judges health.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from lamina.actors import SCHEDULING, WORKLOADS
from lamina.actors.nodes import nodes
from lamina.actors.stages import Stage, stages_controller
from lamina.core.health.kstatus import SETTLED, health
from lamina.core.model.agents import WorkloadOutcome
from lamina.errors import LaminaError
from lamina.objects import conditions, meta
from lamina.objects.digest import digest
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.simulation import START, Loop, Process, SimulatedCluster
from lamina.simulation.admission_adapter import AdmissionAdapter, builtin
from lamina.simulation.injected_faults import Failures, Images

SYSTEM: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
"""The namespace whose uid identifies a cluster."""
_NONE = timedelta(0)
_TIMEOUT = timedelta(minutes=15)
_DEADLINE = 600
"""The default progressDeadlineSeconds of a Deployment."""
_NODE_REQUIREMENTS = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "schedulerName",
    "topologySpreadConstraints",
)
_KINDS = (
    GroupKind("apps", "Deployment"),
    GroupKind("apps", "StatefulSet"),
    GroupKind("apps", "DaemonSet"),
    GroupKind("batch", "Job"),
)


SETTLES = WorkloadOutcome()


class WorkloadOutcomes:
    """Simulates workloads, and caches their outcomes."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)
        self._known: dict[tuple[str, tuple[Images, ...]], WorkloadOutcome] = {}

    def of(self, manifests: Sequence[Obj], failing: tuple[Images, ...]) -> WorkloadOutcome:
        """Return the outcome of manifests where all pods of these images fail."""
        return _worst(self._outcome_of(one, failing) for one in manifests if _affects_outcome(one))

    def _outcome_of(self, manifest: Obj, failing: tuple[Images, ...]) -> WorkloadOutcome:
        key = digest(manifest), failing
        if key not in self._known:
            self._known[key] = _simulate(manifest, failing, self._stages)
        return self._known[key]


def _affects_outcome(manifest: Obj) -> bool:
    ref = meta.ref(manifest)
    return GroupKind(ref.group, ref.kind) in _KINDS


def _worst(outcomes: Iterable[WorkloadOutcome]) -> WorkloadOutcome:
    """Return the outcome of several workloads together."""
    found = list(outcomes)
    failed = min(found, key=lambda one: one.fails_after, default=SETTLES)
    return WorkloadOutcome(
        takes=max((one.takes for one in found), default=_NONE),
        waiting="; ".join(one.waiting for one in found if one.waiting),
        failed=failed.failed,
        fails_after=failed.fails_after,
    )


def _simulate(manifest: Obj, failing: tuple[Images, ...], stages: Sequence[Stage]) -> WorkloadOutcome:
    if not stages:
        # Without stages, pods are not simulated.
        return WorkloadOutcome(waiting="stuck (injected failure)") if failing else SETTLES
    annotate = Failures(images=failing).mutate
    cluster = SimulatedCluster(kinds=builtin(), mutate=lambda obj: annotate(_without_node_requirements(obj)))
    AdmissionAdapter(cluster)
    try:
        made = cluster.create({**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}})
    except LaminaError:
        # A workload that the server refuses has no health.
        return SETTLES
    ref = meta.ref(made)
    cluster.create(SYSTEM)
    loop = Loop(
        cluster, Process(cluster, (*WORKLOADS, nodes(1), SCHEDULING, stages_controller(stages))), ranked=True
    )
    loop.settle()
    deadline = int((made.get("spec") or {}).get("progressDeadlineSeconds") or _DEADLINE)
    end = START + max(_TIMEOUT, timedelta(seconds=deadline * 1.5))
    waiting = health(cluster.get(ref)).waiting
    while not _is_done(cluster, ref) and (moment := loop.next) is not None and moment <= end:
        loop.until(moment)
        found = health(cluster.get(ref))
        waiting = found.waiting if not found.failed else waiting
    found, passed = health(cluster.get(ref)), cluster.now - START
    if found == SETTLED:
        return WorkloadOutcome(takes=passed)
    name = f"{ref.kind.lower()}s {ref.namespace}/{ref.name}"
    if found.failed:
        return WorkloadOutcome(
            waiting=f"{name}: {waiting}", failed=f"{name}: {found.failed}", fails_after=passed
        )
    return WorkloadOutcome(waiting=f"{name}: {waiting}")


def _without_node_requirements(obj: Made) -> Made:
    """Return an object, a pod without node requirements and resources: the nodes of managed clusters are unknown."""
    if obj["kind"] != "Pod":
        return obj
    spec = {name: value for name, value in obj["spec"].items() if name not in _NODE_REQUIREMENTS}
    containers = [
        {name: value for name, value in one.items() if name != "resources"} for one in spec["containers"]
    ]
    return {**obj, "spec": {**spec, "containers": containers}}


def _is_done(cluster: SimulatedCluster, ref: Ref) -> bool:
    """Say whether the outcome is final: healthy, and for a Job complete, or failed."""
    obj: Made = cluster.get(ref)
    found = health(obj)
    if ref.kind == "Job" and found == SETTLED:
        return conditions.is_true((obj.get("status") or {}).get("conditions") or (), "Complete")
    return found == SETTLED or bool(found.failed)
