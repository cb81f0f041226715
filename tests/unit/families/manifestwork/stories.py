"""
Rollouts over a fleet on paper, whatever somebody does to them in the meantime: the stories that the sieve tells.

Agents take half a second to answer, and one whose namespace has a config map
`away` says nothing, so that a rollout has a middle. What is promised of every
rollout is checked after each write, whatever has gone wrong before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lamina.core.controller import Controller, Watch, only
from lamina.core.plan import NOTHING, Action, Create, Delete, Plan, Replace, one_stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World, everything
from lamina.families.manifestwork.names import HASH, OWNER, REPLICA_SET
from lamina.families.manifestwork.rollback import rollback
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.paper import Paper
from lamina.paper.kinds import CONFIG_MAP, CONTROLLER_REVISION, make
from lamina.testing.sieve import Mishap, Scenario, Step, Wrote
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    DECISION,
    HUB,
    OK1,
    OK2,
    OK3,
    SLOW,
    WORK,
    Fleet,
    everybody,
    progressive,
    sent,
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


# ── what is promised ──


def _owner(objects: Mapping[Ref, Made]) -> Obj:
    return next((obj for ref, obj in objects.items() if ref.kind == REPLICA_SET.kind), {})


def _kept(objects: Mapping[Ref, Made]) -> dict[str, Obj]:
    """Return what each kept revision holds, by its hash."""
    return {
        meta.labels(obj)[HASH]: obj["data"]["spec"]["manifestWorkTemplate"]
        for ref, obj in objects.items()
        if ref.kind == "ControllerRevision" and OWNER in meta.labels(obj)
    }


def said_before_sent(wrote: Wrote) -> None:
    """Nothing goes out that is not kept, and what goes out is what the status says."""
    for _ in sent([wrote.action]):
        assert isinstance(wrote.action, Create | Replace)
        tag, status = meta.labels(wrote.action.obj)[HASH], _owner(wrote.before).get("status") or {}
        goal = status.get("currentRevision" if status.get("abortedTime") else "updateRevision")
        assert tag == goal, f"{wrote.action.ref} is sent {tag}, and the status says {goal}"
        if wrote.mishap in (None, Mishap.DEATH):
            # That somebody else took away a revision cannot be known before it is heard.
            assert tag in _kept(wrote.before), f"{wrote.action.ref} is sent {tag}, which is not kept"


def never_sent_again(wrote: Wrote) -> None:
    """Whoever has turned round is not sent the broken revision again, not even by somebody who sees the past."""
    owner = _owner(wrote.before)
    status = owner.get("status") or {}
    if not status.get("abortedTime") or not sent([wrote.action]):
        return
    before = wrote.before.get(wrote.action.ref)
    assert isinstance(wrote.action, Create | Replace)
    back = before is not None and meta.labels(before)[HASH] == status["currentRevision"]
    turned = back and meta.generation(before or {}) > 1
    broken = meta.labels(wrote.action.obj)[HASH] == status["updateRevision"]
    assert not (turned and broken), f"{wrote.action.ref} is sent the broken revision again"


def keeps_the_pace(at_once: int) -> Callable[[Wrote], None]:
    """On the way out, no more are on the way than may be; the way back is taken by all at once."""

    def check(wrote: Wrote) -> None:
        status = _owner(wrote.before).get("status") or {}
        if status.get("abortedTime") or not sent([wrote.action]):
            return
        assert isinstance(wrote.action, Create | Replace)
        tag = meta.labels(wrote.action.obj)[HASH]
        works = [obj for ref, obj in wrote.paper.objects.items() if ref.kind == WORK.kind]
        on_the_way = {
            meta.namespace(one) for one in works if meta.labels(one)[HASH] == tag and not _is_done(one)
        }
        busy = on_the_way & _selected(wrote.paper)
        assert len(busy) <= at_once, f"{sorted(busy)} are on the way"

    return check


def _selected(paper: Paper) -> set[str]:
    return {one["clusterName"] for held in paper.listed(DECISION) for one in held["status"]["decisions"]}


def _is_done(work: Obj) -> bool:
    said = (work.get("status") or {}).get("conditions") or ()
    found = conditions.find(said, "Progressing")
    return (
        found is not None
        and found["status"] == "False"
        and found["observedGeneration"] == meta.generation(work)
    )


def the_spec_is_somebody_elses(wrote: Wrote) -> None:
    """Whatever is aborted or undone, nobody writes the spec but those whose it is."""
    owner = _owner(wrote.paper.objects)
    assert not owner or owner["spec"] == _owner(wrote.before)["spec"], "the spec was written"


def numbers_grow(wrote: Wrote) -> None:
    """No number is given to two snapshots, and what a revision holds never changes."""
    given: dict[int, Any] = {}
    for ref, obj in wrote.paper.objects.items():
        if ref.kind == "ControllerRevision":
            assert given.setdefault(obj["revision"], obj["data"]) == obj["data"], f"two are {obj['revision']}"
            before = wrote.before.get(ref)
            assert before is None or meta.uid(before) != meta.uid(obj) or before["data"] == obj["data"]


def nothing_in_use_is_forgotten(wrote: Wrote) -> None:
    """A revision that is stable or wanted is kept, as far as whoever prunes can know."""
    action: Action = wrote.action
    owner = _owner(wrote.paper.objects)
    if not isinstance(action, Delete) or action.ref.kind != "ControllerRevision" or meta.is_deleting(owner):
        return
    status = owner.get("status") or {}
    lost = _kept(wrote.before).keys() - _kept(wrote.paper.objects).keys()
    assert not lost & {status.get("currentRevision"), status.get("updateRevision")}, f"{lost} is in use"


def outcome(paper: Paper) -> Any:
    """Return what a rollout leads to: who has what, which revisions are kept, and what is said of it."""
    assert isinstance(paper, Fleet)
    said = (paper.row(), bool(paper.aborted), paper.current, paper.update) if APP in paper.objects else "gone"
    return paper.revs(), sorted({held for _, held in paper.revisions()}), said


def given(strategy: Obj, history: int) -> Callable[[], Fleet]:
    def fleet() -> Fleet:
        made = Fleet()
        made.start(OK1, 4, strategy, revisionHistoryLimit=history)
        return made

    return fleet


def scenarios() -> Iterator[Scenario]:
    """Yield each story, told a few at a time, with nothing heard for a while and for long, and some all at once."""
    together = ("an abort", "an abort because an agent is away", "undone by hand in the middle")
    forgetful = (
        "undone after the end",
        "undone by hand in the middle",
        "an abort, and then something better",
    )
    told = [(name, "two at once", progressive(), 2, 3, A_WHILE) for name in STORIES]
    told += [(name, "two at once, for long", progressive(), 2, 3, FOR_LONG) for name in STORIES]
    told += [(name, "all at once", ALL_AT_ONCE, 4, 3, FOR_LONG) for name in together]
    told += [(name, "without a history", progressive(), 2, 0, A_WHILE) for name in forgetful]
    for name, how, strategy, at_once, history, lasts in told:
        yield Scenario(
            name=f"{name}, {how}",
            given=given(strategy, history),
            steps=STORIES[name],
            controllers=(HUB,),
            others=(AGENTS,),
            promises=(
                said_before_sent,
                never_sent_again,
                keeps_the_pace(at_once),
                the_spec_is_somebody_elses,
                numbers_grow,
                nothing_in_use_is_forgotten,
            ),
            outcome=outcome,
            # Nothing is sent twice, whoever dies.
            deeds=lambda paper: Counter(sent(paper.journal)),
            ends=timedelta(minutes=2),
            lasts=lasts,
        )
