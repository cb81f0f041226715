"""
One simulation: what there is, who runs on it, what goes wrong; and what became of it.

Families are known by what a family is to anybody, and by nothing else.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from msgspec import Struct

from lamina.actors import DEFINITIONS, GARBAGE, NAMESPACES, SCHEDULING, WORKLOADS
from lamina.actors.nodes import nodes
from lamina.actors.stages import Stage, staging
from lamina.core.controller import AnyController, Watch
from lamina.core.family import Account, Family
from lamina.core.plan import Action, Plan
from lamina.core.questions import Answer, Call
from lamina.errors import HookError, LaminaError, NotFound, PlanFailed
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.paper import START, Desk, Paper, Pass, Play
from lamina.paper.cluster import Calling
from lamina.paper.rules import nobody_calls
from lamina.paper.sight import subjects
from lamina.runtime.memory import Memory
from lamina.simulation.agents import Fleet, agents, cluster_ref, clusters, fall_silent
from lamina.simulation.applying import Manner, apply, becomes, take_away
from lamina.simulation.failures import Failures, Ill, Spell, silent
from lamina.simulation.rehearsal import SYSTEM, Rehearsals
from lamina.simulation.shapes import Shapes, builtin
from lamina.simulation.standing import by_controller, complaint, shortcoming
from lamina.simulation.standins import Readiness, but, ready

_NODE, _NAMESPACE = GroupKind("", "Node"), GroupKind("", "Namespace")
_UNNUMBERED = "unnumbered"
_WELL = ("settled", "held", _UNNUMBERED)
CHANGE = "the change"
"""Who does what is played."""
_RETRIED = timedelta(seconds=1000)
"""After how long at most whoever was refused tries again."""
TAKES = timedelta(seconds=5)
"""How long it takes until somebody is ready: time enough to be seen waiting, and less than any sensible deadline."""


class Told(Struct, frozen=True):
    """Something that happened: how long after the beginning, by whom, to what, why, and what was done."""

    after: timedelta
    by: str
    ref: Ref
    because: str
    done: tuple[Action, ...] = ()
    failure: str = ""
    ours: bool = True
    """Whether a family did it, and not one of those who stand in for the rest of a cluster."""


class Ending(Struct, frozen=True):
    """How one owner, or one object that was changed, stands at the end."""

    ref: Ref
    well: bool
    state: str
    because: str
    account: Account | None = None
    anyway: bool = False
    """Whether it would end so without the change, too, which is then not to blame."""


@dataclass(kw_only=True)
class Simulation:
    """
    A change on paper.

    `fetch` returns what there is of a kind that nobody loaded, where somebody
    can be asked. `call` calls hooks; what is not called fails.
    """

    families: Sequence[Family]
    kinds: Kinds = field(default_factory=builtin)
    objects: Iterable[Obj] = ()
    now: datetime = START
    stages: Sequence[Stage] = ()
    failures: Failures = Failures()
    readiness: Sequence[Readiness] = ()
    takes: timedelta = TAKES
    """How long the agent of a managed cluster takes at least until what it was sent has settled."""
    manner: Manner = Manner()
    """How manifests are applied."""
    declared: Sequence[Obj] = ()
    """Controllers that files of hooks declare, which are there whatever changes."""
    call: Calling = nobody_calls
    fetch: Callable[[Kind], Iterable[Obj]] | None = None

    def __post_init__(self) -> None:
        self.story: list[Told] = []
        self._loaded: set[GroupKind] = set()
        self._changed: dict[tuple[GroupKind, str, str], Ref] = {}
        self._deleted: dict[tuple[GroupKind, str, str], tuple[Ref, str]] = {}
        self._rest: Desk | None = None
        self._last: dict[tuple[str, Ref], Pass] = {}
        self.paper = Paper(
            kinds=self.kinds, now=self.now, call=self._call, fate=self.failures.fate, look=self._look
        )
        self._shapes = Shapes(self.paper)
        self.paper.admit = self._admit
        self.paper.load(self.objects)
        self._install()
        self._look(_NODE)
        count = 0 if any(ref.kind == "Node" for ref in self.paper.objects) else 1
        running = [controller for family in self.families for controller in family.controllers]
        sources = [source for family in self.families for source in family.sources]
        self._ours = Desk(self.paper, running, sources, seen=self._seen)
        standins = self._standins(count)
        self._look_for(standins)
        # The first three care about every kind there is; what nobody else looks at may be left to itself.
        others: tuple[AnyController, ...] = (GARBAGE, NAMESPACES, DEFINITIONS, *standins)
        self._rest = Desk(self.paper, others, knows=self._knows)
        # What they do is taken down on one sheet, in the order in which they do it.
        self._sheet = self._rest.passes = self._ours.passes
        self._others = frozenset(one.name for one in others)
        # Kubelets and the like are quicker than whoever asks a hook first: what they do at one moment is seen at once.
        self._play = Play(self.paper, self._rest, self._ours, ranked=True)
        self._set_alarms()

    # ── who stands in ──

    def _standins(self, count: int) -> tuple[AnyController, ...]:
        held = self.failures.holds
        pods = (nodes(count), SCHEDULING, but(staging(self.stages), held)) if self.stages else ()
        rest = tuple(ready(one, held) for one in self.readiness)
        fleet = Fleet(
            since=self.now, takes=self.takes, failures=self.failures, rehearsals=Rehearsals(self.stages)
        )
        spokes = tuple(but(one, held) for one in agents(fleet))
        return (*WORKLOADS, *pods, *rest, *spokes)

    def _look_for(self, controllers: Iterable[AnyController]) -> None:
        """Have everything loaded that these follow."""
        for controller in controllers:
            for watch in controller.watches:
                for subject in subjects(self.paper.kinds, watch):
                    self._look(subject.kind.group_kind)

    def _install(self) -> None:
        """Have the kinds of the families served, and a namespace that says that this is a cluster."""
        definitions = [definition for family in self.families for definition in family.definitions()]
        for obj in (*definitions, SYSTEM):
            self._look(GroupKind(meta.ref(obj).group, meta.ref(obj).kind))
            if self.paper.at(meta.ref(obj)) is None:
                self.paper.create(obj)
        for controller in self.declared:
            self._look(GroupKind(meta.ref(controller).group, meta.ref(controller).kind))
            self.paper.apply(controller, manager="lamina")

    def _set_alarms(self) -> None:
        for spell in self.failures.nodes:
            self._play.at(self.now + spell.since, lambda spell=spell: self._silence(spell, True))  # type: ignore[misc]
            if spell.until < timedelta.max:
                self._play.at(self.now + spell.until, lambda spell=spell: self._silence(spell, False))  # type: ignore[misc]

        for ill in self.failures.clusters:
            if ill.spell.since:
                self._play.at(self.now + ill.spell.since, lambda ill=ill: self._cut_off(ill, True))  # type: ignore[misc]
            if ill.spell.until < timedelta.max:
                self._play.at(self.now + ill.spell.until, lambda ill=ill: self._cut_off(ill, False))  # type: ignore[misc]

    def _cut_off(self, ill: Ill, on: bool) -> None:
        """Have the agents of clusters fall silent, or not get works done, or get well again."""
        is_silent = ill.fails == "silent"
        falls_ill = "its agent falls silent" if is_silent else f"its works are {ill.fails} from now on"
        for name in filter(ill.strikes, clusters(self.paper)):
            if on and is_silent:
                fall_silent(self.paper, name)
            because = falls_ill if on else "its agent is well again"
            self.story.append(Told(self._passed, "failures", cluster_ref(name), because))
        assert self._rest is not None
        self._rest.look_at_everything()

    def _silence(self, spell: Spell, on: bool) -> None:
        meant = [
            ref for ref in self.paper.objects if ref.kind == "Node" and fnmatchcase(ref.name, spell.name)
        ]
        if on and not meant:
            raise NotFound(f"there is no node {spell.name} to fall silent")
        for ref in meant:
            self.paper.patch(ref, silent(self.paper.objects[ref], on, self.paper.now))
            words = "falls silent" if on else "is back"
            self.story.append(Told(self._passed, "failures", ref, f"node {ref.name} {words}"))

    # ── what is asked of the outside ──

    @property
    def _passed(self) -> timedelta:
        return self.paper.now - self.now

    def _call(self, call: Call) -> Answer:
        if self.failures.silences(call.url, self._passed):
            raise HookError(f"{call.purpose} hook {call.url} does not answer, as was asked", reached=False)
        return self.call(call)

    def _look(self, kind: GroupKind) -> None:
        served = self.paper.kinds.preferred(kind)
        if self.fetch is None or kind in self._loaded or served is None:
            return
        self._loaded.add(kind)
        self.paper.load(self.fetch(served))
        if self._rest is not None:
            self._rest.look_at_everything()

    def _seen(self, kind: Kind) -> Iterable[Obj]:
        self._look(kind.group_kind)
        return self.paper.listed(kind)

    def _knows(self, kind: Kind) -> bool:
        """Say whether what there is of a kind is here: what nobody looked at is nobody's business."""
        if self.fetch is None or kind.group_kind in self._loaded:
            return True
        return self.kinds.preferred(kind.group_kind) is None

    # ── what somebody does ──

    def apply(self, manifest: Obj) -> Made:
        """Apply a manifest, as kubectl would, and look at its object at the end."""
        ref = meta.ref(manifest)
        self._look(GroupKind(ref.group, ref.kind))
        before = self.paper.at(ref)
        made = apply(self.paper, manifest, self.manner)
        self._changed[_whatever_version(ref)] = ref
        self._deleted.pop(_whatever_version(ref), None)
        self._say(ref, becomes(before, made))
        return made

    def _admit(self, obj: Made, old: Obj | None) -> Made:
        """Return an object as a server stores it, whoever makes it; raises where it would not."""
        made = self._shapes.admit(obj, old)
        namespace = meta.namespace(obj) if old is None and obj["kind"] != "Event" else ""
        if namespace:
            self._look(_NAMESPACE)
            # What was read from files may leave out what everybody has.
            if self.fetch is not None and self.paper.at(Ref("v1", "Namespace", "", namespace)) is None:
                raise NotFound(f'namespaces "{namespace}" not found')
        return made

    def delete(self, ref: Ref) -> None:
        """Ask for the end of an object."""
        self._look(GroupKind(ref.group, ref.kind))
        there = self.paper.at(ref)
        for kind in take_away(self.paper, ref):
            self._look(kind.group_kind)
        self._deleted[_whatever_version(ref)] = ref, meta.uid(there) if there is not None else ""
        self._changed.pop(_whatever_version(ref), None)
        self._say(ref, "it is to go")

    def _say(self, ref: Ref, because: str) -> None:
        self.story.append(Told(self._passed, CHANGE, ref, because))

    def rollback(self, ref: Ref, to: int | None) -> Plan:
        """Return an owner to an earlier revision, as its family does it."""
        for family, world in self._worlds():
            if family.account(world, ref) is not None:
                plan = family.rollback(world, ref, to)
                for action in plan.actions:
                    self.paper.perform(action)
                self._changed[_whatever_version(ref)] = ref
                self._say(ref, plan.because.replace(f" {ref}", "", 1) or "returning to an earlier revision")
                return plan
        raise LaminaError(f"{ref} is not there, or nobody rolls anything out for it")

    def run(self, span: timedelta) -> None:
        """Let time pass, and take down what happens."""
        end = self.paper.now + span
        with _seldom_collected():
            self._play.settle()
            self._take_down()
            while (moment := self._play.next) is not None and moment <= end:
                self._play.until(moment)
                self._take_down()
            self._play.until(end)

    def _take_down(self) -> None:
        for one in self._sheet:
            ours = one.controller not in self._others
            failure = str(one.failure) if one.failure is not None and not one.is_outdated else ""
            self.story.append(
                Told(one.at - self.now, one.controller, one.ref, one.because, one.done, failure, ours)
            )
            if ours:
                self._last[one.controller, one.ref] = one
        self._sheet.clear()

    # ── what it ended in ──

    def endings(self) -> list[Ending]:
        """Return how every owner of every family stands, and every object that was changed and has no family."""
        found: dict[tuple[GroupKind, str, str], Ending] = {}
        below = by_controller(self.paper.objects.values())
        for family, world in self._worlds():
            for owner in family.owners(world):
                account = family.account(world, meta.ref(owner))
                if account is not None:
                    found[_whatever_version(meta.ref(owner))] = self._ending(account, below)
        for key, ref in self._changed.items():
            if key not in found:
                found[key] = _standing(ref, self.paper.at(ref))
        for key, (ref, uid) in self._deleted.items():
            found[key] = _leaving(ref, uid, self.paper.at(ref))
        return list(found.values())

    @property
    def has_changes(self) -> bool:
        return bool(self._changed or self._deleted)

    def is_changed(self, ref: Ref) -> bool:
        """Say whether somebody changed an object here, and not only those who run on it."""
        key = _whatever_version(ref)
        return key in self._changed or key in self._deleted

    def _ending(self, account: Account, below: Mapping[str, Sequence[Obj]]) -> Ending:
        ref, owner = meta.ref(account.owner), self.paper.at(meta.ref(account.owner)) or account.owner
        trouble = [
            one.failure
            for (_, about), one in self._last.items()
            if about == ref and _is_trouble(one, self.paper.now)
        ]
        if trouble or account.state not in _WELL:
            because = str(trouble[-1]) if trouble else account.because
            return Ending(ref, False, account.state, because, account)
        # Who rolls nothing says nothing of how its children do, and nobody says how a workload does but itself.
        children = below.get(meta.uid(owner), ()) if account.state == _UNNUMBERED else ()
        wrong = shortcoming(owner, children)
        if wrong is not None:
            return Ending(ref, False, *wrong, account)
        return Ending(ref, True, account.state, account.because, account)

    def _worlds(self) -> Iterator[tuple[Family, Memory]]:
        for family in self.families:
            watches: list[Watch] = [watch for source in family.sources for watch in source.watches]
            world = self._ours.world(watches)
            wanted = {one.name for one in family.controllers} | {
                one.name for source in family.sources for one in source.controllers(world)
            }
            running = [one for one in self._ours.controllers if one.name in wanted]
            watches += [watch for one in running for watch in one.watches]
            yield family, self._ours.world(watches)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for garbage seldom: all that is on paper stays, and looking through it takes longer than planning."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _is_trouble(one: Pass, now: datetime) -> bool:
    """Say whether something still goes wrong; what was refused long ago, and not again, was let through meanwhile."""
    if one.failure is None or one.is_outdated:
        return False
    return not isinstance(one.failure, PlanFailed) or now - one.at <= _RETRIED


def _standing(ref: Ref, obj: Obj | None) -> Ending:
    """Return how an object stands that nobody rolls anything out for, by what it says of itself."""
    if obj is None:
        # A Job that has ended may go by itself; of anything else it is news.
        return Ending(ref, ref.kind == "Job", "gone", "it went again, by itself or with its owner")
    ref = meta.ref(obj)
    wrong = complaint(GroupKind(ref.group, ref.kind), obj)
    return Ending(ref, False, *wrong) if wrong is not None else Ending(ref, True, "there", "")


def _leaving(ref: Ref, uid: str, obj: Obj | None) -> Ending:
    """Return how an object stands that was to go; somebody may have made another of its name."""
    if obj is None:
        return Ending(ref, True, "gone", "")
    if meta.uid(obj) != uid:
        return Ending(ref, True, "gone", "another of its name has come")
    held = ", ".join(meta.finalizers(obj))
    return Ending(ref, False, "still there", f"its finalizers hold it: {held}" if held else "")


def _whatever_version(ref: Ref) -> tuple[GroupKind, str, str]:
    """Return what tells an object from others; the version it is read in does not."""
    return GroupKind(ref.group, ref.kind), ref.namespace, ref.name
