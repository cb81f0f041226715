"""
Simulated rollouts over a fleet, with edits and deletions in the meantime: scenarios for the crash explorer.

Agents take half a second to report, and one whose namespace has a config map `away`
reports nothing, so that a rollout has a middle. The invariants of every rollout are
checked after each write, whatever has failed before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from lamina.actors.garbage import GARBAGE
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import NOTHING, Plan, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, everything
from lamina.families.manifestwork.hub.rollback import rollback
from lamina.families.manifestwork.labels import HASH
from lamina.objects import conditions, meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, CONTROLLER_REVISION, make
from lamina.testing.crash_explorer import Scenario, Step
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    HUB,
    OK1,
    OK2,
    OK3,
    SET,
    SLOW,
    WORK,
    Fleet,
    all_at_once,
    progressive,
    sent,
)
from tests.unit.families.manifestwork.promises import (
    counted_before_sent,
    keeps_the_pace,
    kept_templates,
    never_sent_again,
    nothing_in_use_is_forgotten,
    nothing_is_forgotten_within_the_limit,
    numbers_grow,
    said_before_sent,
    the_spec_is_never_written,
)
from tests.unit.families.undoing import carry_out, seen

TAKES = timedelta(milliseconds=500)
STARTED = timedelta(milliseconds=300)
"""Until the first clusters have been sent something, and none has reported."""
HALF_WAY = timedelta(milliseconds=800)
"""Until the first clusters have reported, and the next have been sent something."""
A_WHILE, FOR_LONG = timedelta(seconds=2), timedelta(seconds=12)
"""How long a perturbation lasts: shorter than the five seconds that a cluster is given, and longer."""
OVER = timedelta(seconds=30)
"""Until it has ended, or has been aborted and every cluster is rolled back."""


# ── the agents ──


def _work(world: World, ref: Ref) -> Obj | None:
    return None if world.get(_away(ref.namespace)) is not None else world.get(ref)


def _away(cluster: str) -> Ref:
    return CONFIG_MAP.ref(cluster, "away")


def _answer(work: Obj, answers: Answers, now: datetime) -> Plan:
    status, generation = work.get("status") or {}, meta.generation(work)
    if meta.is_deleting(work):
        return NOTHING
    if status.get("generation") != generation:
        begun = {**status, "generation": generation, "since": now.isoformat()}
        patch = set_status(work, begun)
        return one_stage("begin", [patch] if patch else [], because="it was sent something")
    due = datetime.fromisoformat(status["since"]) + TAKES
    if now < due:
        return Plan(requeue_after=due - now, because="it takes a while")
    patch = set_status(work, {**status, "conditions": _judged(work, now)})
    return one_stage("answer", [patch] if patch else [], because="it is as far as it gets")


def _judged(work: Obj, now: datetime) -> Sequence[Any]:
    phase = work["spec"]["workload"]["manifests"][0]["data"]["phase"]
    said: Sequence[Any] = (work.get("status") or {}).get("conditions") or ()
    true = {"Applied": True, "Available": True, "Progressing": phase != "done", "Degraded": phase == "bad"}
    for name, holds in true.items():
        said = conditions.with_condition(
            said, name, str(holds), now=now, reason="Said", generation=meta.generation(work)
        )
    return said


def _works_there(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(WORK.group_kind, meta.namespace(change.obj))]


AGENTS: Controller[Obj] = Controller(
    name="agents",
    watches=(
        Watch(selects=only(*WORK.group_kind), enqueue=lambda world, change: (change.ref,), keep=everything),
        Watch(selects=only("", "ConfigMap"), enqueue=_works_there),
    ),
    gather=_work,
    plan=_answer,
    manager="agents",
)


# ── steps ──


def wants(content: Obj) -> Step:
    def change(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Fleet)
        cluster.want(content)

    return change


def one_is_away(cluster: SimulatedCluster) -> None:
    cluster.create(make(CONFIG_MAP, "away", "c2"))


def it_is_back(cluster: SimulatedCluster) -> None:
    cluster.delete(_away("c2"))


def loses_the_stable_revision(cluster: SimulatedCluster) -> None:
    """The revision on which every cluster was healthy is deleted."""
    assert isinstance(cluster, Fleet)
    for one in cluster.listed(CONTROLLER_REVISION):
        if meta.labels(one)[HASH] == cluster.current:
            cluster.delete(meta.ref(one))


def selects(*clusters: str) -> Step:
    def change(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Fleet)
        cluster.place("place", {0: clusters})

    return change


def is_deleted(cluster: SimulatedCluster) -> None:
    cluster.delete(APP)


def undoes(cluster: SimulatedCluster) -> None:
    """The set is rolled back to the revision before the one that is wanted."""
    carry_out(cluster, APP, rollback(seen(cluster, HUB, APP), None))


one_joins, one_leaves = selects("c0", "c1", "c2", "c3", "c4"), selects("c1", "c3", "c4")

STORIES: Mapping[str, Sequence[Step]] = {
    "a plain rollout": (wants(OK2),),
    "an abort": (wants(BAD),),
    "an abort of what takes too long": (wants(SLOW),),
    "an abort because an agent is away": (one_is_away, wants(OK2), OVER, it_is_back),
    "an abort after some succeeded": (wants(OK2), HALF_WAY, one_is_away, wants(SLOW), OVER, it_is_back),
    "an abort, and the stable revision lost before it": (wants(BAD), HALF_WAY, loses_the_stable_revision),
    "an abort, and then the stable template": (wants(BAD), OVER, wants(OK1)),
    "an abort, and then something better": (wants(BAD), OVER, wants(OK3)),
    "an abort, and a cluster joins": (wants(BAD), OVER, one_joins),
    "an abort, and clusters leave before it": (wants(BAD), HALF_WAY, one_leaves),
    "undone by hand in the middle": (wants(OK2), HALF_WAY, wants(OK1)),
    "undone after the end": (wants(OK2), OVER, wants(OK1)),
    "undone in the middle": (wants(OK2), HALF_WAY, undoes),
    "undone after an abort": (wants(BAD), OVER, undoes),
    "a third template in the middle": (wants(OK2), HALF_WAY, wants(OK3)),
    "a third template in the middle, which is bad": (wants(OK2), HALF_WAY, wants(BAD)),
    "deleted in the middle": (wants(OK2), STARTED, is_deleted),
}

ALL_AT_ONCE = all_at_once(progressDeadline="5s", failureStrategy="AbortAll")


# ── outcomes ──


def outcome(cluster: SimulatedCluster) -> Any:
    """
    Return the end of a rollout: the revision of each cluster, the revisions in use, and the status.

    Which others are kept depends on which templates were observed at all.
    """
    assert isinstance(cluster, Fleet)
    if APP not in cluster.objects:
        return cluster.revs(), cluster.revisions(), "gone"
    used = kept_templates(cluster.objects).keys() & {cluster.current, cluster.update}
    return (
        cluster.revs(),
        sorted(used),
        (cluster.row(), bool(cluster.aborted), cluster.current, cluster.update),
    )


def halted(cluster: SimulatedCluster) -> Any:
    """Return the same of a rollout that halts: how many clusters it reached depends on when the first failure came."""
    have, *rest = outcome(cluster)
    return sorted(set(have.values())), *rest


def effects(cluster: SimulatedCluster) -> Any:
    """Return what is the same whichever process crashes: what each cluster was sent, once, and the revisions kept."""
    assert isinstance(cluster, Fleet)
    return Counter(sent(cluster.journal)), kept(cluster)


def kept(cluster: SimulatedCluster) -> Any:
    assert isinstance(cluster, Fleet)
    return sorted({held for _, held in cluster.revisions()})


class _Way(NamedTuple):
    """A variant of a story: its strategy, groups of clusters, history, and how long a perturbation lasts."""

    strategy: Obj
    at_once: int = 2
    history: int = 3
    lasts: timedelta = A_WHILE
    groups: Mapping[int, Sequence[str]] = {0: ("c1", "c2", "c3", "c4")}
    counted: bool = True
    """Whether what was sent is the same whichever process crashes."""
    leads_to: Callable[[SimulatedCluster], Any] = outcome
    further: Obj | None = None
    """The strategy of a second placement, which has two clusters more."""


def given(way: _Way) -> Fleet:
    made = Fleet()
    refs = [{"name": "place", "rolloutStrategy": way.strategy}]
    made.place("place", way.groups)
    if way.further is not None:
        made.place("further", {0: ("d1", "d2")})
        refs.append({"name": "further", "rolloutStrategy": way.further})
    spec = {"placementRefs": refs, "manifestWorkTemplate": OK1, "revisionHistoryLimit": way.history}
    made.create(make(SET, "app", "team", spec=spec))
    return made


_TWO = {0: ("c1", "c2"), 1: ("c3", "c4")}
_BY_GROUP = {
    "type": "ProgressivePerGroup",
    "progressivePerGroup": {"progressDeadline": "5s", "maxFailures": 0},
    "failureStrategy": "AbortAll",
}
_IN_ANY_WAY = (
    "a plain rollout",
    "an abort",
    "an abort because an agent is away",
    "an abort, and then something better",
    "undone by hand in the middle",
    "undone in the middle",
    "a third template in the middle",
    "deleted in the middle",
)
WAYS: Mapping[str, tuple[_Way, Sequence[str]]] = {
    "two at once": (_Way(progressive()), tuple(STORIES)),
    "one at a time": (_Way(progressive(maxConcurrency=1), at_once=1), _IN_ANY_WAY),
    "two at once, for long": (_Way(progressive(), lasts=FOR_LONG), tuple(STORIES)),
    "all at once": (
        _Way(ALL_AT_ONCE, at_once=4, lasts=FOR_LONG),
        ("an abort", "an abort because an agent is away", "undone by hand in the middle"),
    ),
    "without a history": (
        _Way(progressive(), history=0),
        ("undone after the end", "undone by hand in the middle", "an abort, and then something better"),
    ),
    # After a crash with half of a group updated, the other half waits for it.
    "group by group": (_Way(_BY_GROUP, groups=_TWO, counted=False), _IN_ANY_WAY),
    "the second group first": (
        _Way(progressive(maxConcurrency=1, mandatoryDecisionGroups=[{"groupIndex": 1}]), groups=_TWO),
        _IN_ANY_WAY,
    ),
    "after a soak": (_Way(progressive(minSuccessTime="3s")), _IN_ANY_WAY),
    "one may fail": (_Way(progressive(maxFailures=1)), _IN_ANY_WAY),
    "without an abort": (
        _Way(progressive(failureStrategy="")),
        tuple(name for name in _IN_ANY_WAY if name != "an abort"),
    ),
    "halts without an abort": (_Way(progressive(failureStrategy=""), leads_to=halted), ("an abort",)),
    "two placements": (_Way(progressive(), further=progressive(failureStrategy="")), _IN_ANY_WAY),
}


def scenarios() -> Iterator[Scenario]:
    """Yield each story with two at once, with short and with long perturbations, and some in other variants."""
    for how, (way, names) in WAYS.items():
        for name in names:
            yield Scenario(
                name=f"{name}, {how}",
                given=partial(given, way),
                steps=STORIES[name],
                controllers=(HUB,),
                others=(AGENTS, GARBAGE),
                invariants=(
                    said_before_sent,
                    counted_before_sent,
                    never_sent_again,
                    keeps_the_pace(way.at_once),
                    the_spec_is_never_written,
                    numbers_grow,
                    nothing_in_use_is_forgotten,
                    nothing_is_forgotten_within_the_limit,
                ),
                outcome=way.leads_to,
                effects=effects if way.counted else kept,
                settles_within=timedelta(minutes=2),
                perturbed_for=way.lasts,
            )
