"""
A simulated fleet: a replica set, its placement, and agents that report the status of their works.

An agent reports by the phase in its work: `done` succeeds, `bad` fails, `working`
never ends. One that is away reports nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamina.core.model.plan import Action, Create, Patch, Plan, Replace
from lamina.families.manifestwork.hub.controller import hub
from lamina.families.manifestwork.labels import (
    GROUP_INDEX,
    GROUP_NAME,
    HASH,
    OWNER,
    PLACEMENT_LABEL,
    PLACEMENT_VERSION,
    REPLICA_SET_VERSION,
    WORK_VERSION,
)
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import CONTROLLER_REVISION, KINDS, kind, make

SET = kind(REPLICA_SET_VERSION, "ManifestWorkReplicaSet", "manifestworkreplicasets", subresources=("status",))
WORK = kind(WORK_VERSION, "ManifestWork", "manifestworks", subresources=("status",))
PLACEMENT = kind(PLACEMENT_VERSION, "Placement", "placements", subresources=("status",))
DECISION = kind(PLACEMENT_VERSION, "PlacementDecision", "placementdecisions", subresources=("status",))
APP = Ref(REPLICA_SET_VERSION, SET.kind, "team", "app")
HUB = hub()


def template(rev: str = "1", phase: str = "done", *, rules: bool = True) -> Made:
    """A template that decides for itself how it does."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm1", "namespace": "default"},
        "data": {"phase": phase, "rev": rev},
    }
    made: Made = {"workload": {"manifests": [manifest]}}
    if rules:
        judged = [
            {"condition": "Progressing", "type": "CEL", "celExpressions": ["object.data.phase != 'done'"]},
            {"condition": "Degraded", "type": "CEL", "celExpressions": ["object.data.phase == 'bad'"]},
        ]
        which = {"group": "", "resource": "configmaps", "name": "cm1", "namespace": "default"}
        made["manifestConfigs"] = [{"resourceIdentifier": which, "conditionRules": judged}]
    return made


OK1, OK2, OK3 = template("1"), template("2"), template("3")
BAD, SLOW = template("bad", "bad"), template("slow", "working")


def progressive(**settings: Any) -> Made:
    failure = settings.pop("failureStrategy", "AbortAll")
    block = {"maxConcurrency": 2, "progressDeadline": "5s", "maxFailures": 0, **settings}
    made: Made = {"type": "Progressive", "progressive": block}
    return {**made, "failureStrategy": failure} if failure else made


def all_at_once(**settings: Any) -> Made:
    failure = settings.pop("failureStrategy", "")
    return {"type": "All", "all": settings} | ({"failureStrategy": failure} if failure else {})


@dataclass
class Fleet(SimulatedCluster):
    """One simulated hub, with the agents of its clusters."""

    kinds: Kinds = field(default_factory=lambda: Kinds([*KINDS.versions(), SET, WORK, PLACEMENT, DECISION]))
    away: set[str] = field(default_factory=set)
    """Clusters whose agents report nothing."""

    # ── edits ──

    def start(
        self, content: Obj = OK1, clusters: int | Sequence[str] = 4, strategy: Obj | None = None, **spec: Any
    ) -> None:
        names = [f"c{n}" for n in range(1, clusters + 1)] if isinstance(clusters, int) else clusters
        self.place("place", {0: names})
        refs = [{"name": "place", "rolloutStrategy": strategy if strategy is not None else progressive()}]
        filled = {"placementRefs": refs, "manifestWorkTemplate": content, **spec}
        self.create(make(SET, "app", "team", spec=filled))

    def place(self, name: str, groups: Mapping[int, Sequence[str]], **names: str) -> None:
        """Have a placement select these clusters, in these groups."""
        if self.at(Ref(PLACEMENT_VERSION, "Placement", "team", name)) is None:
            self.create(make(PLACEMENT, name, "team", spec={}))
        for old in self.listed(DECISION, "team"):
            if meta.labels(old).get(PLACEMENT_LABEL) == name:
                self.delete(meta.ref(old))
        for index, clusters in groups.items():
            labels = {PLACEMENT_LABEL: name, GROUP_INDEX: str(index), GROUP_NAME: names.get(f"g{index}", "")}
            decided = [{"clusterName": one, "reason": ""} for one in clusters]
            self.create(
                make(
                    DECISION,
                    f"{name}-decision-{index + 1}",
                    "team",
                    labels=labels,
                    status={"decisions": decided},
                )
            )

    def want(self, content: Obj) -> None:
        """Replace the template, whole."""
        old = self.get(APP)
        self.replace({**old, "spec": {**old["spec"], "manifestWorkTemplate": content}}, "")

    def set(self, **spec: Any) -> None:
        old = self.get(APP)
        self.replace({**old, "spec": {**old["spec"], **spec}}, "")

    def strategy(self, strategy: Obj) -> None:
        self.set(placementRefs=[{"name": "place", "rolloutStrategy": strategy}])

    # ── what agents do ──

    def report(self, *clusters: str) -> None:
        """Have agents say how their works do, all of them or some."""
        for work in self.works():
            cluster = meta.namespace(work)
            if cluster not in self.away and (not clusters or cluster in clusters):
                self.patch(
                    meta.ref(work), {"status": {"conditions": self._judged(work)}}, subresource="status"
                )

    def _judged(self, work: Obj) -> list[Any]:
        phase = work["spec"]["workload"]["manifests"][0]["data"]["phase"]
        said: Sequence[Any] = (work.get("status") or {}).get("conditions") or ()
        true = {
            "Applied": True,
            "Available": True,
            "Progressing": phase != "done",
            "Degraded": phase == "bad",
        }
        for name, holds in true.items():
            if name in ("Progressing", "Degraded") and "manifestConfigs" not in work["spec"]:
                continue
            said = conditions.with_condition(
                said, name, str(holds), now=self.now, reason="Said", generation=meta.generation(work)
            )
        return list(said)

    # ── what the hub does about it ──

    def step(self, crash_after: int | None = None) -> None:
        """Let the hub work until there is nothing to do but wait."""
        settle(self, HUB, crash_after=crash_after)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def roll(self, rounds: int = 40) -> None:
        """Let the hub work and the agents answer, in turns, until nothing changes."""
        for _ in range(rounds):
            before = self.version
            self.step()
            self.report()
            if self.version == before:
                return
        raise AssertionError(f"it never ends: {self.status()}")

    def plan(self) -> Plan:
        return planned(self, HUB, APP)

    # ── what is seen ──

    def works(self) -> list[Made]:
        return sorted(self.listed(WORK), key=lambda one: (meta.namespace(one), meta.name(one)))

    def revs(self) -> dict[str, str]:
        """Return which template each cluster has, by its rev."""
        return {
            meta.namespace(one): one["spec"]["workload"]["manifests"][0]["data"]["rev"]
            for one in self.works()
        }

    def hashes(self) -> dict[str, str]:
        return {meta.namespace(one): meta.labels(one).get(HASH, "") for one in self.works()}

    def generations(self) -> dict[str, int]:
        return {meta.namespace(one): meta.generation(one) for one in self.works()}

    def revisions(self) -> list[tuple[int, str]]:
        """Return the revisions that are kept, with the rev each holds, by number."""
        return sorted(
            (
                one["revision"],
                one["data"]["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["data"]["rev"],
            )
            for one in self.listed(CONTROLLER_REVISION)
            if meta.labels(one).get(OWNER) == "team.app"
        )

    def status(self) -> Made:
        return (self.at(APP) or {}).get("status") or {}

    def said(self, name: str) -> tuple[str, str]:
        """Return status and reason of a condition."""
        found = conditions.find(self.status().get("conditions") or (), name)
        return (found["status"], found.get("reason", "")) if found is not None else ("", "")

    def message(self, name: str = "Progressing") -> str:
        found = conditions.find(self.status().get("conditions") or (), name)
        return found.get("message", "") if found is not None else ""

    def row(self) -> tuple[str, ...]:
        """Return what the conditions say: verified, applied, progressing, rolled out."""
        shown = ("PlacementVerified", "ManifestworkApplied", "Progressing", "PlacementRolledOut")
        return tuple(f"{self.said(name)[0][:1]} {self.said(name)[1]}" for name in shown)

    @property
    def current(self) -> str:
        return str(self.status().get("currentRevision", ""))

    @property
    def update(self) -> str:
        return str(self.status().get("updateRevision", ""))

    @property
    def aborted(self) -> str:
        return str(self.status().get("abortedTime", ""))


def sent(actions: Sequence[Action]) -> list[tuple[str, str]]:
    """Return what was sent to clusters, in order: the cluster, and the rev."""
    told = []
    for action in actions:
        if isinstance(action, Create | Replace) and action.ref.kind == WORK.kind:
            data = action.obj["spec"]["workload"]["manifests"][0]["data"]
            told.append((action.ref.namespace, data["rev"]))
    return told


def relabelled(actions: Sequence[Action]) -> list[str]:
    return [one.ref.namespace for one in actions if isinstance(one, Patch) and one.ref.kind == WORK.kind]


__all__ = [
    "APP",
    "BAD",
    "HUB",
    "OK1",
    "OK2",
    "OK3",
    "SLOW",
    "Fleet",
    "all_at_once",
    "progressive",
    "relabelled",
    "sent",
    "stamp",
    "template",
]
