"""
Rollouts over a fleet on paper, whatever somebody does to them in the meantime: the stories that the sieve tells.

Agents take half a second to answer, and one whose namespace has a config map
`away` says nothing, so that a rollout has a middle. What is promised of every
rollout is checked after each write, whatever has gone wrong before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from lamina.actors.garbage import GARBAGE
from lamina.core.controller import Controller, Watch, only
from lamina.core.plan import NOTHING, Plan, one_stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World, everything
from lamina.families.manifestwork.names import HASH
from lamina.families.manifestwork.rollback import rollback
from lamina.objects import conditions, meta
from lamina.objects.types import Obj, Ref
from lamina.paper import Paper
from lamina.paper.kinds import CONFIG_MAP, CONTROLLER_REVISION, make
from lamina.testing.sieve import Scenario, Step
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
    everybody,
    progressive,
    sent,
)
from tests.unit.families.manifestwork.promises import (
    keeps_the_pace,
    kept_templates,
    never_sent_again,
    nothing_in_use_is_forgotten,
    nothing_is_forgotten_within_the_limit,
    numbers_grow,
    said_before_sent,
    the_spec_is_somebody_elses,
)
from tests.unit.families.undoing import carry_out, seen

TAKES = timedelta(milliseconds=500)
STARTED = timedelta(milliseconds=300)
"""Until the first have been sent something, and nobody has answered."""
HALF_WAY = timedelta(milliseconds=800)
"""Until the first have answered, and the next have been sent something."""
A_WHILE, FOR_LONG = timedelta(seconds=2), timedelta(seconds=12)
"""How long a mishap lasts: shorter than the five seconds that a cluster is given, and longer."""
OVER = timedelta(seconds=30)
"""Until it has ended, or has been aborted and everybody is back."""


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
        return Plan(look_again=due - now, because="it takes a while")
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
        Watch(selects=only(*WORK.group_kind), concerns=lambda world, change: (change.ref,), keep=everything),
        Watch(selects=only("", "ConfigMap"), concerns=_works_there),
    ),
    gather=_work,
    plan=_answer,
    manager="agents",
)


# ── what is done to it ──


def wants(content: Obj) -> Step:
    def change(paper: Paper) -> None:
        assert isinstance(paper, Fleet)
        paper.want(content)

    return change


def one_is_away(paper: Paper) -> None:
    paper.create(make(CONFIG_MAP, "away", "c2"))


def it_is_back(paper: Paper) -> None:
    paper.delete(_away("c2"))


def loses_the_way_back(paper: Paper) -> None:
    """Somebody deletes the revision that everybody was well on."""
    assert isinstance(paper, Fleet)
    for one in paper.listed(CONTROLLER_REVISION):
        if meta.labels(one)[HASH] == paper.current:
            paper.delete(meta.ref(one))


def selects(*clusters: str) -> Step:
    def change(paper: Paper) -> None:
        assert isinstance(paper, Fleet)
        paper.place("place", {0: clusters})

    return change


def is_deleted(paper: Paper) -> None:
    paper.delete(APP)


def undoes(paper: Paper) -> None:
    """Somebody goes back to the revision before the one that is wanted."""
    carry_out(paper, APP, rollback(seen(paper, HUB, APP), None))


one_joins, one_leaves = selects("c0", "c1", "c2", "c3", "c4"), selects("c1", "c3", "c4")

STORIES: Mapping[str, Sequence[Step]] = {
    "a plain rollout": (wants(OK2),),
    "an abort": (wants(BAD),),
    "an abort of what takes too long": (wants(SLOW),),
    "an abort because an agent is away": (one_is_away, wants(OK2), OVER, it_is_back),
    "an abort after some succeeded": (wants(OK2), HALF_WAY, one_is_away, wants(SLOW), OVER, it_is_back),
    "an abort, and the way back lost before it": (wants(BAD), HALF_WAY, loses_the_way_back),
    "an abort, and then what everybody has": (wants(BAD), OVER, wants(OK1)),
    "an abort, and then something better": (wants(BAD), OVER, wants(OK3)),
    "an abort, and somebody joins": (wants(BAD), OVER, one_joins),
    "an abort, and somebody leaves before it": (wants(BAD), HALF_WAY, one_leaves),
    "undone by hand in the middle": (wants(OK2), HALF_WAY, wants(OK1)),
    "undone after the end": (wants(OK2), OVER, wants(OK1)),
    "undone in the middle": (wants(OK2), HALF_WAY, undoes),
    "undone after an abort": (wants(BAD), OVER, undoes),
    "a third template in the middle": (wants(OK2), HALF_WAY, wants(OK3)),
    "a third template in the middle, which is bad": (wants(OK2), HALF_WAY, wants(BAD)),
    "deleted in the middle": (wants(OK2), STARTED, is_deleted),
}

ALL_AT_ONCE = everybody(progressDeadline="5s", failureStrategy="AbortAll")


# ── what it leads to ──


def outcome(paper: Paper) -> Any:
    """
    Return what a rollout leads to: who has what, which revisions are in use, and what is said of it.

    Which others are kept depends on which templates were seen at all.
    """
    assert isinstance(paper, Fleet)
    if APP not in paper.objects:
        return paper.revs(), paper.revisions(), "gone"
    used = kept_templates(paper.objects).keys() & {paper.current, paper.update}
    return paper.revs(), sorted(used), (paper.row(), bool(paper.aborted), paper.current, paper.update)


def halted(paper: Paper) -> Any:
    """Return the same of a rollout that stops half-way: how many it went to depends on when the first was heard."""
    have, *rest = outcome(paper)
    return sorted(set(have.values())), *rest


def deeds(paper: Paper) -> Any:
    """Return what is the same whoever dies: what was sent to whom, nothing of it twice, and which revisions are kept."""
    assert isinstance(paper, Fleet)
    return Counter(sent(paper.journal)), kept(paper)


def kept(paper: Paper) -> Any:
    assert isinstance(paper, Fleet)
    return sorted({held for _, held in paper.revisions()})


class _Way(NamedTuple):
    """How a story is told: by which strategy, over which groups of clusters, with how much heard."""

    strategy: Obj
    at_once: int = 2
    history: int = 3
    lasts: timedelta = A_WHILE
    groups: Mapping[int, Sequence[str]] = {0: ("c1", "c2", "c3", "c4")}
    counted: bool = True
    """Whether what was sent is the same whoever dies."""
    leads_to: Callable[[Paper], Any] = outcome
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
    # Who dies with half of a group on the way has the other half wait for it.
    "group by group": (_Way(_BY_GROUP, groups=_TWO, counted=False), _IN_ANY_WAY),
    "the second group first": (
        _Way(progressive(maxConcurrency=1, mandatoryDecisionGroups=[{"groupIndex": 1}]), groups=_TWO),
        _IN_ANY_WAY,
    ),
    "after a soak": (_Way(progressive(minSuccessTime="3s")), _IN_ANY_WAY),
    "one may fail": (_Way(progressive(maxFailures=1)), _IN_ANY_WAY),
    "nobody turns round": (
        _Way(progressive(failureStrategy="")),
        tuple(name for name in _IN_ANY_WAY if name != "an abort"),
    ),
    "everybody stops": (_Way(progressive(failureStrategy=""), leads_to=halted), ("an abort",)),
    "two placements": (_Way(progressive(), further=progressive(failureStrategy="")), _IN_ANY_WAY),
}


def scenarios() -> Iterator[Scenario]:
    """Yield each story, told a few at a time, with nothing heard for a while and for long, and some in other ways."""
    for how, (way, names) in WAYS.items():
        for name in names:
            yield Scenario(
                name=f"{name}, {how}",
                given=partial(given, way),
                steps=STORIES[name],
                controllers=(HUB,),
                others=(AGENTS, GARBAGE),
                promises=(
                    said_before_sent,
                    never_sent_again,
                    keeps_the_pace(way.at_once),
                    the_spec_is_somebody_elses,
                    numbers_grow,
                    nothing_in_use_is_forgotten,
                    nothing_is_forgotten_within_the_limit,
                ),
                outcome=way.leads_to,
                deeds=deeds if way.counted else kept,
                ends=timedelta(minutes=2),
                lasts=way.lasts,
            )
