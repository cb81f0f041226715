"""
What would become of the workloads that a cluster is sent: each is played once, alone, on a cluster of its own.

No cluster of a hub is on paper, but what its agent would say of a Deployment is
known by who knows it elsewhere: the stages say what becomes of its pods, and the
agent's own judgement what that means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from msgspec import Struct

from lamina.actors import SCHEDULING, WORKLOADS
from lamina.actors.nodes import nodes
from lamina.actors.stages import Stage, staging
from lamina.errors import LaminaError
from lamina.families.manifestwork.spoke.health import WELL, health
from lamina.objects import conditions, meta
from lamina.objects.digest import digest
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.paper import START, Desk, Paper, Play
from lamina.simulation.failures import Failures, Images
from lamina.simulation.shapes import Shapes, builtin

SYSTEM: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
"""What says that something is a cluster."""
_NONE = timedelta(0)
_PATIENCE = timedelta(minutes=15)
_DEADLINE = 600
"""After how many seconds a Deployment gives up that does not say."""
_PARTICULAR = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "schedulerName",
    "topologySpreadConstraints",
)
_JUDGED = (
    GroupKind("apps", "Deployment"),
    GroupKind("apps", "StatefulSet"),
    GroupKind("apps", "DaemonSet"),
    GroupKind("batch", "Job"),
)


class Verdict(Struct, frozen=True):
    """How long it takes until something settles; if it never does, what it waits for, and when and why it fails."""

    takes: timedelta = _NONE
    waiting: str = ""
    failed: str = ""
    fails_after: timedelta = timedelta.max


SETTLES = Verdict()


class Rehearsals:
    """Plays what clusters are sent, and remembers what came of it."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)
        self._known: dict[tuple[str, tuple[Images, ...]], Verdict] = {}

    def of(self, work: Obj, failing: tuple[Images, ...]) -> Verdict:
        """Return what comes of a work where pods of these images fail, all of them."""
        manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or ()
        return _worst(self._alone(one, failing) for one in manifests if _is_judged(one))

    def _alone(self, manifest: Obj, failing: tuple[Images, ...]) -> Verdict:
        key = digest(manifest), failing
        if key not in self._known:
            self._known[key] = _played(manifest, failing, self._stages)
        return self._known[key]


def _is_judged(manifest: Obj) -> bool:
    ref = meta.ref(manifest)
    return GroupKind(ref.group, ref.kind) in _JUDGED


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what comes of several together."""
    found = list(verdicts)
    failed = min(found, key=lambda one: one.fails_after, default=SETTLES)
    return Verdict(
        takes=max((one.takes for one in found), default=_NONE),
        waiting="; ".join(one.waiting for one in found if one.waiting),
        failed=failed.failed,
        fails_after=failed.fails_after,
    )


def _played(manifest: Obj, failing: tuple[Images, ...], stages: Sequence[Stage]) -> Verdict:
    if not stages:
        # Nobody knows what becomes of pods.
        return Verdict(waiting="stuck, as was asked") if failing else SETTLES
    mark = Failures(images=failing).fate
    paper = Paper(kinds=builtin(), fate=lambda obj: mark(_anywhere(obj)))
    Shapes(paper)
    try:
        made = paper.create({**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}})
    except LaminaError:
        # What a server refuses is not judged by how it does.
        return SETTLES
    ref = meta.ref(made)
    paper.create(SYSTEM)
    play = Play(paper, Desk(paper, (*WORKLOADS, nodes(1), SCHEDULING, staging(stages))), ranked=True)
    play.settle()
    deadline = int((made.get("spec") or {}).get("progressDeadlineSeconds") or _DEADLINE)
    end = START + max(_PATIENCE, timedelta(seconds=deadline * 1.5))
    waiting = health(paper.get(ref)).waiting
    while not _is_done(paper, ref) and (moment := play.next) is not None and moment <= end:
        play.until(moment)
        found = health(paper.get(ref))
        waiting = found.waiting if not found.failed else waiting
    found, passed = health(paper.get(ref)), paper.now - START
    if found == WELL:
        return Verdict(takes=passed)
    name = f"{ref.kind.lower()}s {ref.namespace}/{ref.name}"
    if found.failed:
        return Verdict(waiting=f"{name}: {waiting}", failed=f"{name}: {found.failed}", fails_after=passed)
    return Verdict(waiting=f"{name}: {waiting}")


def _anywhere(obj: Made) -> Made:
    """Return an object; a pod asks for no particular machine, for what a cluster has of them is not known here."""
    if obj["kind"] != "Pod":
        return obj
    spec = {name: value for name, value in obj["spec"].items() if name not in _PARTICULAR}
    containers = [
        {name: value for name, value in one.items() if name != "resources"} for one in spec["containers"]
    ]
    return {**obj, "spec": {**spec, "containers": containers}}


def _is_done(paper: Paper, ref: Ref) -> bool:
    """Say whether nothing more is to be learnt: it is well, and a job has ended, or it has failed."""
    obj: Made = paper.get(ref)
    found = health(obj)
    if ref.kind == "Job" and found == WELL:
        return conditions.is_true((obj.get("status") or {}).get("conditions") or (), "Complete")
    return found == WELL or bool(found.failed)
