"""
One simulation: the objects, the controllers, the failures, and the result.

It knows families only by the interface of `core.model.family`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial

from msgspec import Struct

from lamina.actors import DEFINITIONS, GARBAGE, NAMESPACES, SCHEDULING, WORKLOADS
from lamina.actors.nodes import nodes
from lamina.actors.stages import Stage, stages_controller
from lamina.core.model.agents import SimulatedAgents
from lamina.core.model.controller import AnyController, Watch
from lamina.core.model.family import Family
from lamina.core.model.plan import Action, Plan
from lamina.core.model.queries import Answer, Call
from lamina.errors import HookError, LaminaError, NotFound
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import watch_specs
from lamina.simulation import START, Loop, Pass, Process, SimulatedCluster
from lamina.simulation.admission_adapter import AdmissionAdapter, builtin
from lamina.simulation.cluster.apiserver import HookCaller
from lamina.simulation.cluster.object_rules import refuse_hooks
from lamina.simulation.fleet.faults import FleetFaults
from lamina.simulation.fleet.workload_outcome import SYSTEM, WorkloadOutcomes
from lamina.simulation.injected_faults import ClusterFault, Failures, FaultWindow, readiness_patch
from lamina.simulation.scenario import final_state
from lamina.simulation.scenario.final_state import FinalState, by_controller
from lamina.simulation.scenario.kubectl_apply import ApplyOptions, apply, delete, describe_change
from lamina.simulation.scenario.readiness_stub import Readiness, excluding, ready

_NODE, _NAMESPACE = GroupKind("", "Node"), GroupKind("", "Namespace")
CHANGE = "the change"
"""The name under which the change appears in the timeline."""
READY_AFTER = timedelta(seconds=5)
"""How long workloads take to become ready: long enough to be observed, and shorter than any usual deadline."""


class TimelineEntry(Struct, frozen=True):
    """One entry of the timeline: when since the start, by which controller, on what object, why, and which actions."""

    after: timedelta
    by: str
    ref: Ref
    because: str
    done: tuple[Action, ...] = ()
    failure: str = ""
    ours: bool = True
    """Whether it was a controller of a family, and not one that simulates the rest of a cluster."""


@dataclass(kw_only=True)
class Simulation:
    """
    A change on a simulated cluster.

    `fetch` returns the objects of a kind that is not loaded yet, where a real
    cluster can be read. `call` calls hooks.
    """

    families: Sequence[Family]
    kinds: Kinds = field(default_factory=builtin)
    objects: Iterable[Obj] = ()
    now: datetime = START
    stages: Sequence[Stage] = ()
    failures: Failures = Failures()
    readiness: Sequence[Readiness] = ()
    ready_after: timedelta = READY_AFTER
    """The least time until the works of a managed cluster are applied and healthy."""
    apply_options: ApplyOptions = ApplyOptions()
    """How manifests are applied."""
    declared: Sequence[Obj] = ()
    """Controllers that hooks files declare; they exist with and without the change."""
    call: HookCaller = refuse_hooks
    fetch: Callable[[Kind], Iterable[Obj]] | None = None

    def __post_init__(self) -> None:
        self.timeline: list[TimelineEntry] = []
        self._loaded: set[GroupKind] = set()
        self._changed: dict[tuple[GroupKind, str, str], Ref] = {}
        self._deleted: dict[tuple[GroupKind, str, str], tuple[Ref, str]] = {}
        self._cluster_process: Process | None = None
        self._last: dict[tuple[str, Ref], Pass] = {}
        self.cluster = SimulatedCluster(
            tracks_creates=True,
            kinds=self.kinds,
            now=self.now,
            call=self._call,
            mutate=self.failures.mutate,
            ensure_loaded=self._load,
        )
        self._admission = AdmissionAdapter(self.cluster)
        self.cluster.admit = self._admit
        self.cluster.load(self.objects)
        self._install()
        self._load(_NODE)
        count = 0 if any(ref.kind == "Node" for ref in self.cluster.objects) else 1
        running = [controller for family in self.families for controller in family.controllers]
        sources = [source for family in self.families for source in family.sources]
        self._families_process = Process(self.cluster, running, sources, list_objects=self._list_objects)
        fleet = FleetFaults(
            since=self.now,
            ready_after=self.ready_after,
            failures=self.failures,
            outcomes=WorkloadOutcomes(self.stages),
        )
        self._agents = [
            one.simulated_agents(fleet) for one in self.families if one.simulated_agents is not None
        ]
        simulated = self._cluster_controllers(count)
        self._load_watched(simulated)
        # The first three watch every kind; kinds that no other controller watches are not loaded for them.
        others: tuple[AnyController, ...] = (GARBAGE, NAMESPACES, DEFINITIONS, *simulated)
        self._cluster_process = Process(self.cluster, others, watches_kind=self._watches_kind)
        # Both processes append to one record, in the order of their reconciles.
        self._passes = self._cluster_process.passes = self._families_process.passes
        self._cluster_controller_names = frozenset(one.name for one in others)
        # Kubelets and the like are faster than a controller that calls hooks, which sees their changes of one moment at once.
        self._loop = Loop(self.cluster, self._cluster_process, self._families_process, ranked=True)
        self._schedule_faults()

    # ── simulated controllers ──

    def _cluster_controllers(self, count: int) -> tuple[AnyController, ...]:
        never_ready = self.failures.never_ready
        pods = (
            (nodes(count), SCHEDULING, excluding(stages_controller(self.stages), never_ready))
            if self.stages
            else ()
        )
        rest = tuple(ready(one, never_ready) for one in self.readiness)
        agents = tuple(excluding(one, never_ready) for each in self._agents for one in each.controllers)
        return (*WORKLOADS, *pods, *rest, *agents)

    def _load_watched(self, controllers: Iterable[AnyController]) -> None:
        """Load the kinds that these controllers watch."""
        for controller in controllers:
            for watch in controller.watches:
                for spec in watch_specs(self.cluster.kinds, watch):
                    self._load(spec.kind.group_kind)

    def _install(self) -> None:
        """Create the CRDs of the families, and the namespace that identifies a cluster."""
        definitions = [definition for family in self.families for definition in family.definitions()]
        for obj in (*definitions, SYSTEM):
            self._load(GroupKind(meta.ref(obj).group, meta.ref(obj).kind))
            if self.cluster.at(meta.ref(obj)) is None:
                self.cluster.create(obj)
        for controller in self.declared:
            self._load(GroupKind(meta.ref(controller).group, meta.ref(controller).kind))
            self.cluster.apply(controller, manager="lamina")

    def _schedule_faults(self) -> None:
        for window in self.failures.nodes:
            self._loop.at(self.now + window.since, partial(self._set_node_fault, window, on=True))
            if window.until < timedelta.max:
                self._loop.at(self.now + window.until, partial(self._set_node_fault, window, on=False))

        for fault in self.failures.clusters:
            if fault.window.since:
                self._loop.at(self.now + fault.window.since, partial(self._set_cluster_fault, fault, on=True))
            if fault.window.until < timedelta.max:
                self._loop.at(
                    self.now + fault.window.until, partial(self._set_cluster_fault, fault, on=False)
                )

    def _set_cluster_fault(self, fault: ClusterFault, *, on: bool) -> None:
        """Start or end a failure of the agents of clusters."""
        is_silent = fault.fails == "silent"
        if is_silent:
            because = "its agent stops responding" if on else "its agent responds again"
        else:
            because = (
                f"its works are {fault.fails} from now on" if on else f"its works are no longer {fault.fails}"
            )
        for agents in self._agents:
            for name in filter(fault.affects, self._clusters(agents)):
                lease, patch = agents.silence(name, self.cluster.now)
                if on and is_silent and self.cluster.at(lease) is not None:
                    self.cluster.patch(lease, patch)
                self._record("failures", agents.cluster(name), because)
        assert self._cluster_process is not None
        self._cluster_process.resync()

    def _clusters(self, agents: SimulatedAgents) -> list[str]:
        """Return the names of the clusters that are registered on the simulated hub."""
        kind = agents.cluster("").kind
        return [ref.name for ref in self.cluster.objects if ref.kind == kind]

    def _set_node_fault(self, window: FaultWindow, *, on: bool) -> None:
        """Make the nodes of a pattern unready, or ready again."""
        matched = [
            ref for ref in self.cluster.objects if ref.kind == "Node" and fnmatchcase(ref.name, window.name)
        ]
        if on and not matched:
            raise NotFound(f'failures.nodes: no node matches "{window.name}"')
        for ref in matched:
            self.cluster.patch(ref, readiness_patch(self.cluster.objects[ref], not on, self.cluster.now))
            becomes = "becomes NotReady" if on else "becomes Ready again"
            self._record("failures", ref, f"node {ref.name} {becomes}")

    # ── hooks and real clusters ──

    @property
    def _passed(self) -> timedelta:
        return self.cluster.now - self.now

    def _call(self, call: Call) -> Answer:
        if self.failures.fails_hook(call.url, self._passed):
            raise HookError(
                f"{call.purpose} hook {call.url} does not answer (injected failure)", reached=False
            )
        return self.call(call)

    def _load(self, kind: GroupKind) -> None:
        served = self.cluster.kinds.preferred(kind)
        if self.fetch is None or kind in self._loaded or served is None:
            return
        self._loaded.add(kind)
        self.cluster.load(self.fetch(served))
        if self._cluster_process is not None:
            self._cluster_process.resync()

    def _list_objects(self, kind: Kind) -> Iterable[Obj]:
        self._load(kind.group_kind)
        return self.cluster.listed(kind)

    def _watches_kind(self, kind: Kind) -> bool:
        """Say whether the objects of a kind are loaded: other kinds are not simulated."""
        if self.fetch is None or kind.group_kind in self._loaded:
            return True
        return self.kinds.preferred(kind.group_kind) is None

    # ── the change ──

    def apply(self, manifest: Obj) -> Made:
        """Apply a manifest as kubectl does, and report its object's final state."""
        ref = meta.ref(manifest)
        self._load(GroupKind(ref.group, ref.kind))
        before = self.cluster.at(ref)
        made = apply(self.cluster, manifest, self.apply_options)
        self._changed[_identity(ref)] = ref
        self._deleted.pop(_identity(ref), None)
        self._record(CHANGE, ref, describe_change(before, made))
        return made

    def _admit(self, obj: Made, old: Obj | None) -> Made:
        """Return an object as a server stores it; raises what a server would refuse."""
        made = self._admission.admit(obj, old)
        namespace = meta.namespace(obj) if old is None and obj["kind"] != "Event" else ""
        if namespace:
            self._load(_NAMESPACE)
            # Objects that were read from files need not include namespaces.
            if self.fetch is not None and self.cluster.at(Ref("v1", "Namespace", "", namespace)) is None:
                raise NotFound(f'namespaces "{namespace}" not found')
        return made

    def delete(self, ref: Ref) -> None:
        """Delete an object."""
        self._load(GroupKind(ref.group, ref.kind))
        live = self.cluster.at(ref)
        for kind in delete(self.cluster, ref):
            self._load(kind.group_kind)
        self._deleted[_identity(ref)] = ref, meta.uid(live) if live is not None else ""
        self._changed.pop(_identity(ref), None)
        self._record(CHANGE, ref, "deletion requested")

    def _record(self, by: str, ref: Ref, because: str) -> None:
        self.timeline.append(TimelineEntry(self._passed, by, ref, because))

    def rollback(self, ref: Ref, to: int | None) -> Plan:
        """Roll an owner back to an earlier revision, as its family does it."""
        for family, world in self._worlds():
            if family.owner_status(world, ref) is not None:
                plan = family.rollback(world, ref, to)
                for action in plan.actions:
                    self.cluster.perform(action)
                self._changed[_identity(ref)] = ref
                self._record(CHANGE, ref, plan.because.replace(f" {ref}", "", 1) or "rolling back")
                return plan
        raise LaminaError(f"{ref} does not exist, or no family rolls it out")

    def run(self, span: timedelta) -> None:
        """Advance the clock, and record what happens."""
        end = self.cluster.now + span
        with _infrequent_gc():
            self._loop.settle()
            self._record_passes()
            while (moment := self._loop.next) is not None and moment <= end:
                self._loop.until(moment)
                self._record_passes()
            self._loop.until(end)

    def _record_passes(self) -> None:
        for one in self._passes:
            ours = one.controller not in self._cluster_controller_names
            failure = str(one.failure) if one.failure is not None and not one.is_outdated else ""
            self.timeline.append(
                TimelineEntry(
                    one.at - self.now, one.controller, one.ref, one.because, one.done, failure, ours
                )
            )
            if ours:
                self._last[one.controller, one.ref] = one
        self._passes.clear()

    # ── the result ──

    def final_states(self) -> list[FinalState]:
        """Return the final state of every owner, and of every changed object that no family owns."""
        found: dict[tuple[GroupKind, str, str], FinalState] = {}
        controlled = by_controller(self.cluster.objects.values())
        for family, world in self._worlds():
            for owner in family.owners(world):
                owner_status = family.owner_status(world, meta.ref(owner))
                if owner_status is not None:
                    ref = meta.ref(owner_status.owner)
                    live = self.cluster.at(ref) or owner_status.owner
                    children = controlled.get(meta.uid(live), ())
                    reconciles = [one for (_, about), one in self._last.items() if about == ref]
                    found[_identity(meta.ref(owner))] = final_state.of_owner(
                        owner_status, live, children, reconciles, self.cluster.now, self.families
                    )
        for key, ref in self._changed.items():
            if key not in found:
                found[key] = final_state.of_object(ref, self.cluster.at(ref), self.families)
        for key, (ref, uid) in self._deleted.items():
            found[key] = final_state.of_deleted(ref, uid, self.cluster.at(ref))
        return list(found.values())

    @property
    def has_changes(self) -> bool:
        return bool(self._changed or self._deleted)

    def is_changed(self, ref: Ref) -> bool:
        """Say whether an object is part of the change."""
        key = _identity(ref)
        return key in self._changed or key in self._deleted

    def _worlds(self) -> Iterator[tuple[Family, Lister]]:
        for family in self.families:
            watches: list[Watch] = [watch for source in family.sources for watch in source.watches]
            world = self._families_process.world(watches)
            wanted = {one.name for one in family.controllers} | {
                one.name for source in family.sources for one in source.controllers(world)
            }
            running = [one for one in self._families_process.controllers if one.name in wanted]
            watches += [watch for one in running for watch in one.watches]
            yield family, self._families_process.world(watches)


@contextmanager
def _infrequent_gc() -> Iterator[None]:
    """Collect garbage rarely: simulated objects stay, and traversing them takes longer than planning."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _identity(ref: Ref) -> tuple[GroupKind, str, str]:
    """Return the identity of an object, independent of its API version."""
    return GroupKind(ref.group, ref.kind), ref.namespace, ref.name
