"""
One simulated cluster and its hub, with the real agent between them.

The agent runs when the story says so, and keeps nothing between two runs: it knows
only what it has read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamina.core.model.agents import AgentOptions
from lamina.core.model.controller import AnyController
from lamina.core.model.plan import Action
from lamina.families.manifestwork.agent.controller import agent
from lamina.families.manifestwork.agent.labels import HUB
from lamina.families.manifestwork.labels import CLUSTER_GROUP, WORK_VERSION
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import Loop, Process, SimulatedCluster, settle
from lamina.simulation.cluster.kinds import CONFIG_MAP, KINDS, kind, make

WORK = kind(WORK_VERSION, "ManifestWork", "manifestworks", subresources=("status",))
RECORD = kind(
    WORK_VERSION, "AppliedManifestWork", "appliedmanifestworks", namespaced=False, subresources=("status",)
)
CLUSTER = kind(
    f"{CLUSTER_GROUP}/v1", "ManagedCluster", "managedclusters", namespaced=False, subresources=("status",)
)
LEASE = kind("coordination.k8s.io/v1", "Lease", "leases")
CLAIM = kind(f"{CLUSTER_GROUP}/v1alpha1", "ClusterClaim", "clusterclaims", namespaced=False)
RBAC_ROLE = kind("rbac.authorization.k8s.io/v1", "Role", "roles")
HASH = "hash"


def config_map(name: str = "cm1", namespace: str = "default", **data: str) -> Made:
    return make(CONFIG_MAP, name, namespace, data=data or {"a": "b"})


def config_for(manifest: Obj, plural: str = "configmaps", **how: Any) -> Made:
    """Return how one manifest is applied, judged and reported on."""
    group = manifest["apiVersion"].rpartition("/")[0]
    which = {
        "group": group,
        "resource": plural,
        "name": meta.name(manifest),
        "namespace": meta.namespace(manifest),
    }
    return {"resourceIdentifier": which, **how}


def strategy(kind: str, **how: Any) -> Made:
    return {"updateStrategy": {"type": kind, **({"serverSideApply": how} if how else {})}}


@dataclass
class Spoke:
    """A hub, one of its clusters, and the agent of that one."""

    hub: SimulatedCluster = field(
        default_factory=lambda: SimulatedCluster(kinds=Kinds([*KINDS.versions(), WORK, CLUSTER, LEASE]))
    )
    home: SimulatedCluster = field(
        default_factory=lambda: SimulatedCluster(kinds=Kinds([*KINDS.versions(), RECORD, CLAIM, RBAC_ROLE]))
    )
    options: AgentOptions = AgentOptions()
    name: str = "c1"
    hash: str = HASH

    @property
    def agent(self) -> tuple[AnyController, ...]:
        return agent(self.name, self.hash, options=self.options)

    # ── edits ──

    def want(self, *manifests: Any, name: str = "w", labels: Obj | None = None, **spec: Any) -> Made:
        """Have a work ask for these manifests, and nothing else."""
        filled = {"workload": {"manifests": list(manifests)}, **spec}
        old = self.hub.at(self.work_ref(name))
        if old is None:
            more = {"labels": dict(labels)} if labels else {}
            return self.hub.create(make(WORK, name, self.name, spec=filled, **more))
        metadata = {**old["metadata"], **({"labels": dict(labels)} if labels is not None else {})}
        return self.hub.replace({**old, "metadata": metadata, "spec": filled}, "")

    def work_ref(self, name: str = "w") -> Ref:
        return Ref(WORK_VERSION, WORK.kind, self.name, name)

    def run(self, **how: Any) -> None:
        """Let the agent do what there is to do."""
        settle(self.home, *self.agent, others={HUB: self.hub}, **how)

    def next_try(self, play: Loop) -> None:
        """Let as much time pass as the agent wants to wait."""
        assert play.next is not None, "the agent waits for nothing"
        self.hub.now = play.next
        play.until(play.next)

    def play(self) -> Loop:
        """Run the agent in a simulated process, to let time pass."""
        return Loop(self.home, Process(self.home, self.agent, others={HUB: self.hub}))

    def pass_time(self, seconds: float) -> None:
        for cluster in (self.hub, self.home):
            cluster.now += timedelta(seconds=seconds)

    def ask(self, *manifests: Any, **spec: Any) -> None:
        """Have a work ask for manifests, and let the agent see to it."""
        self.want(*manifests, **spec)
        self.run()

    # ── what is seen ──

    def work(self, name: str = "w") -> Made:
        return self.hub.get(self.work_ref(name))

    def record(self, name: str = "w") -> Made | None:
        return self.home.at(Ref(WORK_VERSION, RECORD.kind, "", f"{self.hash}-{name}"))

    def listed(self, name: str = "w") -> list[tuple[str, str]]:
        """Return what the record of a work lists: each name, and whether it has been seen."""
        record = self.record(name)
        found = ((record or {}).get("status") or {}).get("appliedResources") or ()
        return [(one["name"], "uid" if one.get("uid") else "") for one in found]

    def there(self, name: str = "cm1", namespace: str = "default", what: Kind = CONFIG_MAP) -> Made:
        """Return an object of the cluster, which has to be there."""
        return self.home.get(what.ref(namespace, name))

    def has(self, name: str = "cm1", namespace: str = "default", what: Kind = CONFIG_MAP) -> bool:
        return self.home.at(what.ref(namespace, name)) is not None

    def said(self, condition: str, name: str = "w") -> tuple[str, str]:
        found = self.condition(condition, name)
        return (found["status"], found["reason"]) if found else ("", "")

    def condition(self, condition: str, name: str = "w") -> Made:
        found = conditions.find((self.work(name).get("status") or {}).get("conditions") or (), condition)
        return dict(found) if found is not None else {}

    def entry(self, place: int = 0, name: str = "w") -> Made:
        """Return what is said of one manifest."""
        entries: Sequence[Made] = self.work(name)["status"]["resourceStatus"]["manifests"]
        return entries[place]

    def said_of(self, place: int, condition: str, name: str = "w") -> tuple[str, str]:
        found = self.condition_of(place, condition, name)
        return (found["status"], found["reason"]) if found else ("", "")

    def condition_of(self, place: int, condition: str, name: str = "w") -> Made:
        found = conditions.find(self.entry(place, name)["conditions"], condition)
        return dict(found) if found is not None else {}

    def values(self, place: int = 0) -> Mapping[str, Any]:
        """Return the feedback values of one manifest."""
        told = (self.entry(place).get("statusFeedback") or {}).get("values") or ()
        return {
            one["name"]: next(value for key, value in one["fieldValue"].items() if key != "type")
            for one in told
        }

    @property
    def written(self) -> list[Action]:
        """Everything that was written, on either side."""
        return [*self.hub.journal, *self.home.journal]
