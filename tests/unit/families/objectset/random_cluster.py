"""
A simulated cluster with one deployment, or with sets of one lineage, on which anything may be done in any order.

One process runs the controllers. It reconciles keys in a random order, it may crash after
any write, the next one may start with an old view, and events may come late, kind by kind.
Between a plan and one of its writes, other workers of the process may reconcile other keys.
The promises are checked after each write. A widget is healthy once `report` has said so.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.garbage import GARBAGE
from lamina.core.model.plan import Action, Apply, Create, Propagation
from lamina.families.objectset.contents import slice_names
from lamina.families.objectset.labels import CACHED, REVISION
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.simulation import Crashed, Key, Loop, Process
from lamina.simulation.cluster.kinds import WIDGET
from lamina.simulation.process.informers import Event, Informers
from lamina.testing.crash_explorer import Perturbation, Write
from tests.unit.families.objectset.promises import (
    check,
    contents,
    controller,
    is_archived,
    number,
    sets,
    state,
    the_controllers_delete_nothing_that_is_needed,
)
from tests.unit.families.objectset.revisions import deployment, object_set, phase
from tests.unit.families.objectset.stories import (
    HELD,
    RELEASED,
    UNDER_TEST,
    WEB,
    cluster,
    object_slice,
    ref_of,
    spec,
    widget,
)

_MAX_STEPS = 4000
_RETRY = timedelta(seconds=31)
_DELETIONS = {
    "Deleted": Propagation.BACKGROUND,
    "Deleted in the foreground": Propagation.FOREGROUND,
    "Orphaned": Propagation.ORPHAN,
}


class Placed(Struct, frozen=True):
    """One object of a template: its phase, its image, and whether a slice has it."""

    name: str
    phase: int
    image: str
    is_sliced: bool


class Template(Struct, frozen=True):
    objects: tuple[Placed, ...]
    classed: tuple[bool, ...]
    """Whether each phase has the class `default`."""
    protection: str = ""
    """The collision protection of all objects."""
    soak: int = 0
    """How many seconds a revision has to be available until it has succeeded."""


class Overtaken(Struct, frozen=True):
    """What comes between a plan and one of its writes of an object: another template, and passes of other workers."""

    after: int
    """How many writes of objects come before that one."""
    by: int
    """How many keys are reconciled."""
    template: Template | None = None


_LAST = Template((Placed("a", 0, "one", False), Placed("f", 1, "two", False)), (False, False, False))


def _by_name(one: Obj) -> int:
    return int(meta.name(one).removeprefix("v"))


class RandomCluster:
    """A cluster, the process that runs on it, and everything that has happened."""

    def __init__(self, seed: int, *, has_deployment: bool = True) -> None:
        self.random = Random(seed)
        self.has_deployment = has_deployment
        self.cluster = cluster()
        self.sick: set[str] = set()
        self.slices: list[Made] = []
        self.crash_after: int | None = None
        self.overtaken: Overtaken | None = None
        self._overtaken: Key | None = None
        self.log: list[str] = []
        self.numbered: set[str] = set()
        """The objects whose number was edited; where one is orphaned then, its marks are not known to be its set's."""
        self._informers: Informers | None = None
        self._starts_at: int | None = None
        self._events: list[Event] = []
        self.cluster.listeners.append(self._record)
        self._start()

    # ── the process ──

    def _record(self, ref: Ref, before: Obj | None, after: Obj | None) -> None:
        self._events.append(Event(ref, after, self.cluster.version))

    def _start(self, behind: int = 0) -> None:
        """Start a process; its caches begin that many events behind, and the newer ones are pending."""
        pending = self._events[len(self._events) - behind :]
        # While it starts, nothing is pending yet.
        self._informers, self._starts_at = None, pending[0].version if pending else None
        self.process = Process(self.cluster, UNDER_TEST, list_objects=self._listed)
        self.process.before_write, self.process.after_write = self._before_write, self._after_write
        self.loop = Loop(self.cluster, self.process, choose=self.random.choice, max_steps=_MAX_STEPS)
        self._informers = self.process.informers
        self._informers.paused = bool(pending)
        for event in pending:
            self._informers.receive(event)

    def _listed(self, kind: Kind) -> Sequence[Made]:
        """List a kind without what is pending of it, for an informer that starts."""
        until = self._starts_at
        if self._informers is not None:
            pending = self._informers._pending.get(kind.group_kind)
            until = pending[0].version if pending else None
        if until is None:
            return self.cluster.listed(kind)
        found: dict[Ref, Made] = {}
        for event in self._events:
            if event.version >= until:
                break
            if GroupKind(event.ref.group, event.ref.kind) != kind.group_kind:
                continue
            if event.obj is None:
                found.pop(event.ref, None)
            else:
                found[event.ref] = dict(event.obj)
        return list(found.values())

    def crash(self, behind: int = 0) -> None:
        self.log.append(f"crash, {behind} behind")
        self.process.stop()
        self._start(min(behind, len(self._events)))

    def _before_write(self, key: Key, action: Action) -> None:
        if self.crash_after is not None:
            if not self.crash_after:
                self.crash_after = None
                raise Crashed
            self.crash_after -= 1
        if self._overtaken != key:
            self._overtaken = None
        self._let_others_work(key, action)
        self._before = dict(self.cluster.objects)

    def _let_others_work(self, key: Key, action: Action) -> None:
        """Let other workers of the process reconcile keys, after a plan was made and before it is carried out."""
        how, is_content = (
            self.overtaken,
            isinstance(action, Create | Apply) and action.ref.kind == WIDGET.kind,
        )
        if how is None or not is_content:
            return
        self.overtaken = replace(how, after=how.after - 1) if how.after else None
        if self.overtaken is not None:
            return
        self.log.append(f"{key.controller}: {key.ref} is overtaken")
        if how.template is not None:
            self.want(how.template)
        for _ in range(how.by):
            if not self.process.step(self.random.choice):
                break
        self.log.append(f"{key.controller}: {key.ref} goes on")
        self._overtaken = key

    def _after_write(self, key: Key, action: Action) -> None:
        self.log.append(f"{key.controller}: {type(action).__name__.lower()} {action.ref}")
        is_outdated = self.process.informers.paused or self._overtaken is not None
        kind = Perturbation.STALE_VIEW if is_outdated else None
        write = Write(action, self._before, self.cluster, kind)
        check(write)
        if key.controller != GARBAGE.name:
            the_controllers_delete_nothing_that_is_needed(write)

    # ── what happens ──

    def work(self, steps: int) -> None:
        """Reconcile some keys."""
        with suppress(Crashed):
            for _ in range(steps):
                if not self.process.step(self.random.choice):
                    return
            return
        self.crash(self.random.choice((0, 0, 1, 3, 10, 30)))

    def pass_time(self, seconds: float) -> None:
        with suppress(Crashed):
            self.loop.pass_time(timedelta(seconds=seconds))
            return
        self.crash(self.random.choice((0, 0, 1, 3, 10, 30)))

    def stop_events(self) -> None:
        self.process.informers.paused = True

    def deliver(self, place: int, latest_only: bool) -> None:
        """Deliver the pending events of one kind."""
        if kinds := sorted(self.process.informers.pending_kinds):
            self.process.informers.deliver(kinds[place % len(kinds)], latest_only=latest_only)

    def catch_up(self) -> None:
        informers = self.process.informers
        informers.paused = False
        for kind in self.random.sample(informers.pending_kinds, len(informers.pending_kinds)):
            informers.deliver(kind)

    def want(self, template: Template) -> None:
        fields: dict[str, Any] = {"successDelaySeconds": template.soak} if template.soak else {}
        if template.protection:
            fields["collisionProtection"] = template.protection
        made = spec(*self._phases(template), **fields)
        if not self.has_deployment:
            self._create_set(made)
        elif WEB in self.cluster.objects:
            old = self.cluster.get(WEB)
            self.cluster.patch(WEB, {"spec": {"template": {"spec": None}}})
            self.cluster.patch(WEB, {"spec": {"template": {**old["spec"]["template"], "spec": made}}})
        else:
            self.cluster.create(deployment("web", made, revisionHistoryLimit=2))

    def _create_set(self, made: Made) -> None:
        """Create the next set, which names all others as previous, or only the last one."""
        there = sorted(sets(self.cluster.objects), key=_by_name)
        names = [meta.name(one) for one in there]
        previous = names if self.random.random() < 0.75 else names[-1:]
        place = max((int(name.removeprefix("v")) for name in names), default=0) + 1
        self.cluster.create(object_set(f"v{place}", made, previous=previous))

    def _phases(self, template: Template) -> Iterable[Made]:
        for place, classed in enumerate(template.classed):
            those = [one for one in template.objects if one.phase == place]
            inline = [widget(one.name, one.image) for one in those if not one.is_sliced]
            sliced = [widget(one.name, one.image) for one in those if one.is_sliced]
            fields: dict[str, Any] = {"class": "default"} if classed else {}
            if sliced:
                made = object_slice(f"slice-{len(self.slices)}", *sliced)
                self.slices.append(made)
                self.cluster.create(made)
                fields["slices"] = [meta.name(made)]
            if those:
                yield phase(f"p{place}", *inline, **fields)

    def report(self) -> None:
        """Have the kubelet report about every widget."""
        for one in self.cluster.listed(WIDGET):
            ready = not {meta.name(one), one["spec"]["image"]} & self.sick
            status = {
                "observedGeneration": meta.generation(one),
                "conditions": [{"type": "Ready", "status": str(ready)}],
            }
            self.cluster.patch(meta.ref(one), {"status": status}, subresource="status")

    def object(self, name: str, what: str) -> None:
        """Something is done to an object by hand."""
        ref = ref_of(name)
        if ref not in self.cluster.objects:
            return
        match what:
            case "deleted":
                self.cluster.delete(ref)
            case "edited":
                self.cluster.patch(ref, {"spec": {"image": "drift"}})
            case "held":
                if not meta.is_deleting(self.cluster.get(ref)):
                    self.cluster.patch(ref, HELD)
            case _:
                self.cluster.patch(ref, RELEASED)

    def set(self, place: int, what: str) -> None:
        """Something is done to a revision by hand, 0 is the latest."""
        live = sorted((one for one in sets(self.cluster.objects) if not is_archived(one)), key=number)
        if place >= len(live):
            return
        ref = meta.ref(live[-1 - place])
        if what in _DELETIONS:
            self.cluster.delete(ref, _DELETIONS[what])
        elif state(live[-1 - place]) != "Archived" or what == "Active":
            self.cluster.patch(ref, {"spec": {"lifecycleState": what}})

    def number(self, name: str, value: str | None) -> None:
        """The number on an object is edited by hand."""
        self.numbered.add(name)
        if ref_of(name) in self.cluster.objects:
            patch = {"metadata": {"annotations": {REVISION: value}}}
            self.cluster.patch(ref_of(name), patch)

    def lose_phase(self, place: int) -> None:
        """An ObjectSetPhase is deleted by hand."""
        if there := sorted(ref for ref in self.cluster.objects if ref.kind == "ObjectSetPhase"):
            self.cluster.delete(there[place % len(there)])

    def pause(self, paused: bool) -> None:
        if WEB in self.cluster.objects:
            self.cluster.patch(WEB, {"spec": {"paused": paused}})

    # ── the end ──

    def come_to_rest(self) -> None:
        """Heal and resume everything, and let all of it settle."""
        self.crash_after = self.overtaken = None
        self.sick.clear()
        self.catch_up()
        self.pause(False)
        for one in sets(self.cluster.objects):
            if state(one) == "Paused" and not is_archived(one):
                self.cluster.patch(meta.ref(one), {"spec": {"lifecycleState": "Active"}})
        for one in self.cluster.listed(WIDGET):
            self.object(meta.name(one), "released")
        if not self.has_deployment:
            self._keep_the_latest()
        for _ in range(40):
            version = self.cluster.version
            self.loop.pass_time(_RETRY)
            self.report()
            self._restore_slices()
            self._remove_orphans()
            if self.cluster.version == version:
                return
        raise AssertionError("it does not come to rest")

    def _restore_slices(self) -> None:
        """Create slices again that the garbage collector deleted with the last set that had them."""
        template = self.cluster.get(WEB)["spec"]["template"] if self.has_deployment else self._latest()
        wanted = set(slice_names(template))
        for one in self.slices:
            if meta.name(one) in wanted and meta.ref(one) not in self.cluster.objects:
                self.cluster.create(one)

    def _latest(self) -> Made:
        return max(sets(self.cluster.objects), key=number if self.has_deployment else _by_name)

    def _keep_the_latest(self) -> None:
        """Archive all sets but a last one, as a deployment would."""
        self.want(_LAST)
        latest = meta.uid(max(sets(self.cluster.objects), key=_by_name))
        self.loop.pass_time(_RETRY)
        for one in sets(self.cluster.objects):
            if meta.uid(one) != latest and state(one) != "Archived":
                self.cluster.patch(meta.ref(one), {"spec": {"lifecycleState": "Archived"}})

    def _remove_orphans(self) -> None:
        """Delete what a deletion with --cascade=orphan has left, which no revision adopts."""
        for one in self.cluster.listed(WIDGET):
            is_marked = CACHED in meta.labels(one) and meta.name(one) not in self.numbered
            if not meta.owner_refs(one) and not is_marked:
                self.cluster.delete(meta.ref(one))

    def check_rest(self) -> None:
        """Check the end: the latest revision has everything, and no other has anything."""
        objects, latest = self.cluster.objects, self._latest()
        older = [one for one in sets(objects) if one is not latest]
        if self.has_deployment:
            wanted = self.cluster.get(WEB)["spec"]["template"]["spec"]["phases"]
            assert latest["spec"]["phases"] == wanted, "the latest revision has the template"
        reported = {one["type"]: one["status"] for one in conditions.of(latest)}
        assert reported == {"Available": "True", "Succeeded": "True"}, conditions.of(latest)
        assert all(is_archived(one) for one in older), [(meta.name(one), conditions.of(one)) for one in older]
        there = {ref for ref in objects if ref.kind == WIDGET.kind}
        assert there == contents(objects, latest)
        for ref in there:
            assert meta.uid(controller(objects, objects[ref]) or {}) == meta.uid(latest), (
                f"{ref} has another controller"
            )
            assert len(meta.owner_refs(objects[ref])) == 1, f"{ref} refers to {meta.owner_refs(objects[ref])}"
        listed = {ref_of(one["name"]) for one in latest["status"].get("controllerOf", ())}
        assert listed == there, "the status lists what it controls"
        if self.has_deployment:
            web = self.cluster.get(WEB)
            assert len(older) <= web["spec"]["revisionHistoryLimit"]
            found = {one["type"]: one["status"] for one in conditions.of(web)}
            assert found == {"Available": "True", "Progressing": "False"}
        assert self._remaining_work() == []

    def _remaining_work(self) -> list[str]:
        self.process.stop()
        before = len(self.cluster.journal)
        Loop(self.cluster, Process(self.cluster, UNDER_TEST), max_steps=_MAX_STEPS).settle()
        return [f"{type(one).__name__.lower()} {one.ref}" for one in self.cluster.journal[before:]]
