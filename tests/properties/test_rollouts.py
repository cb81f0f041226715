"""
What is true of every rolling update, whoever gets a turn when and whatever crashes.

Pods become ready one by one or never; controllers are stopped after any write
of a plan; the template changes in the middle. A pod that is ready stays ready.
"""

from random import Random

from hypothesis import given, settings
from hypothesis.strategies import integers, lists, sampled_from, tuples

from lamina.actors.workloads.deployment import DEPLOYMENTS
from lamina.actors.workloads.replicaset import REPLICA_SETS
from lamina.core.controller import AnyController
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.paper import Paper, planned
from lamina.paper.kinds import REPLICA_SET
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
        self.paper = Paper()
        self.most = replicas + surge
        self.fewest = replicas - min(unavailable, replicas)
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        self.paper.create(deployment(replicas=replicas, spec={"strategy": strategy}))
        live(self.paper)

    def take(self, turn: str, random: Random) -> None:
        match turn:
            case "deployment":
                self._work(DEPLOYMENTS, WEB, random)
            case "set":
                chosen = random.choice(self.paper.listed(REPLICA_SET))
                self._work(REPLICA_SETS, meta.ref(chosen), random)
            case "pod":
                waiting = [pod for pod in active_pods(self.paper) if not is_ready(pod)]
                well = [pod for pod in waiting if "bad" not in pod["spec"]["containers"][0]["image"]]
                if well:
                    become(self.paper, random.choice(well))
            case "end":
                ending = [pod for pod in pods(self.paper) if meta.is_deleting(pod)]
                if ending:
                    self.paper.delete(meta.ref(random.choice(ending)), grace=0)
            case "image":
                edit(self.paper, image=random.choice(IMAGES))

    def _work(self, controller: AnyController, ref: Ref, random: Random) -> None:
        """Carry out a plan, or the beginning of it, and look after each write."""
        plan = planned(self.paper, controller, ref)
        actions = plan.actions if plan is not None else ()
        for action in actions[: random.randint(0, len(actions) + 2)]:
            try:
                self.paper.perform(action)
            except (Conflict, NotFound, AlreadyExists):
                return
            self.check()

    def check(self) -> None:
        assert sum(sizes(self.paper).values()) <= self.most
        assert len([pod for pod in active_pods(self.paper) if is_ready(pod)]) >= self.fewest


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

    edit(rollout.paper, image="web:3")
    live(rollout.paper, lambda image: "bad" not in image)
    assert {pod["spec"]["containers"][0]["image"] for pod in active_pods(rollout.paper)} == {"web:3"}
    assert len(active_pods(rollout.paper)) == replicas
    assert condition(rollout.paper, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert planned(rollout.paper, DEPLOYMENTS, WEB).actions == ()


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
    edit(rollout.paper, image="web:bad")

    for size in sizes_asked:
        live(rollout.paper, lambda image: "bad" not in image, random=random)
        edit(rollout.paper, replicas=size)
    live(rollout.paper, lambda image: "bad" not in image, random=random)

    assert sum(sizes(rollout.paper).values()) <= (sizes_asked[-1] + surge if sizes_asked[-1] else 0)
    edit(rollout.paper, image="web:3")
    live(rollout.paper)
    assert sum(sizes(rollout.paper).values()) == sizes_asked[-1] == len(active_pods(rollout.paper))
