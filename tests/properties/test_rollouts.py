"""
What is true of every rolling update, in any order of reconciles and with any crashes.

Pods become ready one by one or never; controllers are stopped after any write
of a plan; the template changes in the middle. A pod that is ready stays ready.
"""

from random import Random

from hypothesis import given, settings
from hypothesis.strategies import integers, lists, sampled_from, tuples

from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.core.model.controller import AnyController
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.simulation import SimulatedCluster, planned
from lamina.simulation.cluster.kinds import REPLICA_SET
from tests.unit.actors.workloads.growing import (
    WEB,
    active_pods,
    become,
    condition,
    deployment,
    edit,
    is_ready,
    live,
    pods,
    sizes,
)

TURNS = ("deployment", "set", "set", "pod", "pod", "end", "end", "image")
IMAGES = ("web:1", "web:2", "web:bad")


class Rollout:
    """One Deployment that has rolled out once, and what must hold from then on."""

    def __init__(self, replicas: int, surge: int, unavailable: int) -> None:
        self.cluster = SimulatedCluster()
        self.most = replicas + surge
        self.fewest = replicas - min(unavailable, replicas)
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        self.cluster.create(deployment(replicas=replicas, spec={"strategy": strategy}))
        live(self.cluster)

    def take(self, turn: str, random: Random) -> None:
        match turn:
            case "deployment":
                self._work(DEPLOYMENTS, WEB, random)
            case "set":
                chosen = random.choice(self.cluster.listed(REPLICA_SET))
                self._work(REPLICA_SETS, meta.ref(chosen), random)
            case "pod":
                waiting = [pod for pod in active_pods(self.cluster) if not is_ready(pod)]
                well = [pod for pod in waiting if "bad" not in pod["spec"]["containers"][0]["image"]]
                if well:
                    become(self.cluster, random.choice(well))
            case "end":
                ending = [pod for pod in pods(self.cluster) if meta.is_deleting(pod)]
                if ending:
                    self.cluster.delete(meta.ref(random.choice(ending)), grace=0)
            case "image":
                edit(self.cluster, image=random.choice(IMAGES))

    def _work(self, controller: AnyController, ref: Ref, random: Random) -> None:
        """Carry out a plan, or the beginning of it, and look after each write."""
        plan = planned(self.cluster, controller, ref)
        actions = plan.actions if plan is not None else ()
        for action in actions[: random.randint(0, len(actions) + 2)]:
            try:
                self.cluster.perform(action)
            except (Conflict, NotFound, AlreadyExists):
                return
            self.check()

    def check(self) -> None:
        assert sum(sizes(self.cluster).values()) <= self.most
        assert len([pod for pod in active_pods(self.cluster) if is_ready(pod)]) >= self.fewest


@settings(max_examples=60, deadline=None)
@given(
    replicas=integers(1, 6),
    limits=tuples(integers(0, 3), integers(0, 3)).filter(any),
    turns=lists(sampled_from(TURNS), min_size=20, max_size=120),
    seed=integers(0, 2**32),
)
def test_a_rolling_update_stays_within_its_limits_and_gets_there(
    replicas: int, limits: tuple[int, int], turns: list[str], seed: int
) -> None:
    rollout, random = Rollout(replicas, *limits), Random(seed)

    for turn in turns:
        rollout.take(turn, random)
        rollout.check()

    edit(rollout.cluster, image="web:3")
    live(rollout.cluster, lambda image: "bad" not in image)
    assert {pod["spec"]["containers"][0]["image"] for pod in active_pods(rollout.cluster)} == {"web:3"}
    assert len(active_pods(rollout.cluster)) == replicas
    assert condition(rollout.cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert planned(rollout.cluster, DEPLOYMENTS, WEB).actions == ()


@settings(max_examples=40, deadline=None)
@given(
    sizes_asked=lists(integers(0, 12), min_size=1, max_size=6),
    limits=tuples(integers(0, 4), integers(0, 4)).filter(any),
    seed=integers(0, 2**32),
)
def test_a_change_of_size_in_the_middle_never_asks_for_more_than_allowed(
    sizes_asked: list[int], limits: tuple[int, int], seed: int
) -> None:
    surge, unavailable = limits
    rollout, random = Rollout(6, surge, unavailable), Random(seed)
    edit(rollout.cluster, image="web:bad")

    for size in sizes_asked:
        live(rollout.cluster, lambda image: "bad" not in image, random=random)
        edit(rollout.cluster, replicas=size)
    live(rollout.cluster, lambda image: "bad" not in image, random=random)

    assert sum(sizes(rollout.cluster).values()) <= (sizes_asked[-1] + surge if sizes_asked[-1] else 0)
    edit(rollout.cluster, image="web:3")
    live(rollout.cluster)
    assert sum(sizes(rollout.cluster).values()) == sizes_asked[-1] == len(active_pods(rollout.cluster))
