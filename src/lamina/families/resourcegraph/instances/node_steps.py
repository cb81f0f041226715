"""
The next step of each node of an instance, in topological order.

    skipped     a condition of includeWhen is false, or a dependency is skipped
    waiting     a dependency is not synced, data are pending, or readyWhen does not hold
    blocked     propagateWhen holds back what would be written
    writing     some children are written
    deleting    a child is being deleted
    synced      its children are as desired and ready
    error       an expression fails, or an object belongs to something else

A node is rendered once all of its dependencies are synced: they exist as they are desired
at this input revision, and are ready as they were observed after that. So on an update a
dependent never moves together with what it depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.live_check import Confirmation
from lamina.core.model.queries import Answers, Follow, Listed, Query, ReadAll, Refused
from lamina.families.resourcegraph.instances.child_step import ChildRelation, ChildStep, child_step
from lamina.families.resourcegraph.instances.children import Desired, desired
from lamina.families.resourcegraph.instances.confirm import check_instance
from lamina.families.resourcegraph.instances.goal import Goal
from lamina.families.resourcegraph.instances.view import View
from lamina.graph import evaluate
from lamina.graph.evaluate import ExternalTarget, Failed, Pending, Scope
from lamina.graph.graph import Node
from lamina.graph.pacing import Paced
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref

_Identity: TypeAlias = tuple[GroupKind, str, str]


class Phase(StrEnum):
    """How far a node is."""

    SYNCED = "synced"
    SKIPPED = "skipped"
    WAITING = "waiting"
    BLOCKED = "blocked"
    WRITING = "writing"
    DELETING = "deleting"
    ERROR = "error"


class NodeStep(Struct, frozen=True, kw_only=True):
    """One node: its children, the objects that expressions have of it, and what has to be asked first."""

    node: Node
    phase: Phase
    because: str = ""
    children: tuple[ChildStep, ...] = ()
    observed: tuple[Obj, ...] = ()
    queries: tuple[Query, ...] = ()
    is_rendered: bool = False
    """Whether it is known which children it is to have."""
    is_dependent: bool = False
    """Whether it only waits for another node."""
    listing: ReadAll | None = None
    """The live list of the external objects that it selects."""
    is_refused: bool = False
    """Whether its external objects may not be read, which no event ends."""

    @property
    def is_settled(self) -> bool:
        return self.phase in (Phase.SYNCED, Phase.SKIPPED)


def node_steps(view: View, goal: Goal, answers: Answers) -> tuple[NodeStep, ...]:
    """Return the next step of each node."""
    return tuple(_Walk(view, goal, answers).steps())


def scope_of(view: View, goal: Goal, observed: Mapping[str, Sequence[Obj]]) -> Scope:
    """Return the values of expressions, with the nodes that are observed."""
    return evaluate.scope(goal.graph, view.obj, goal.spec, observed, view.kind.namespaced)


def identity(ref: Ref) -> _Identity:
    """Return what names an object in whatever version it is served."""
    return GroupKind(ref.group, ref.kind), ref.namespace, ref.name


class _Walk:
    """One pass over the nodes: the expressions of each have those before it that are synced."""

    def __init__(self, view: View, goal: Goal, answers: Answers) -> None:
        self._view, self._goal, self._answers = view, goal, answers
        self._graph = goal.graph
        self._steps: dict[str, NodeStep] = {}
        self._synced: dict[str, Sequence[Obj]] = {}
        self._claimed: dict[_Identity, str] = {}
        """The node of each object that is desired."""
        self._above: dict[_Identity, str] = {
            identity(meta.ref(view.obj)): "the instance itself",
            identity(view.setup.definition_ref): "the definition of the instance",
            (CRD, "", f"{view.kind.plural}.{view.kind.group}"): "the CRD of the instance",
        }
        """What may not be a child: the instance would adopt it, prune it and delete it."""

    def steps(self) -> Iterator[NodeStep]:
        for id in self._graph.order:
            step = self._steps[id] = self._step(self._graph.nodes[id])
            if step.phase is Phase.SYNCED:
                self._synced[id] = step.observed
            yield step

    @property
    def _scope(self) -> Scope:
        return scope_of(self._view, self._goal, self._synced)

    def _step(self, node: Node) -> NodeStep:
        if self._view.kinds.find(node.target.api_version, node.target.kind) is None:
            because = (
                f'node "{node.id}": {node.target.kind} of {node.target.api_version} is not served any more'
            )
            return self._unrendered(node, Phase.ERROR, because)
        before = [self._steps[id] for id in node.dependencies]
        if any(one.phase is Phase.SKIPPED for one in before):
            return NodeStep(node=node, phase=Phase.SKIPPED, is_rendered=True)
        found = evaluate.included(self._graph, node, self._scope) if node.has_include_when else True
        if found is False:
            return NodeStep(node=node, phase=Phase.SKIPPED, is_rendered=True)
        waiting = next((one for one in before if one.phase is not Phase.SYNCED), None)
        if waiting is not None and not isinstance(found, Failed):
            because = f'dependent node "{waiting.node.id}" not ready'
            return self._unrendered(node, Phase.WAITING, because, is_dependent=True)
        if isinstance(found, Pending | Failed):
            return self._unresolved(node, found)
        return self._external(node) if node.kind.is_external else self._own(node)

    def _unresolved(self, node: Node, found: Pending | Failed) -> NodeStep:
        phase = Phase.WAITING if isinstance(found, Pending) else Phase.ERROR
        return self._unrendered(node, phase, found.because)

    def _unrendered(self, node: Node, phase: Phase, because: str, *, is_dependent: bool = False) -> NodeStep:
        return NodeStep(node=node, phase=phase, because=because, is_dependent=is_dependent)

    # ── external objects ──

    def _external(self, node: Node) -> NodeStep:
        found = evaluate.external(self._graph, node, self._scope)
        if isinstance(found, Pending | Failed):
            return self._unresolved(node, found)
        kind = node.target
        if isinstance(found, ExternalTarget):
            namespaces = (found.namespace,) if kind.namespaced else None
            follow = Follow(kind=kind, names=(found.name,), namespaces=namespaces, refusable=True)
            shown, listing = kind.ref(found.namespace, found.name), None
        else:
            namespaces = (found.namespace,) if found.namespace else None
            follow = Follow(kind=kind, namespaces=namespaces, labels=found.labels, refusable=True)
            shown, listing = None, ReadAll(kind, found.namespace or "", labels=found.labels)
        answer = self._answers.get(follow)
        if isinstance(answer, Refused):
            because = f'external reference "{node.id}" cannot be read: {answer.because}'
            return NodeStep(node=node, phase=Phase.WAITING, because=because, is_refused=True)
        if not isinstance(answer, Listed):
            return NodeStep(node=node, phase=Phase.WAITING, queries=(follow,))
        objects = tuple(sorted(answer.objects, key=lambda one: (meta.namespace(one), meta.name(one))))
        if shown is not None and not objects:
            because = f'waiting for external reference "{node.id}": {shown} not found'
            return NodeStep(node=node, phase=Phase.WAITING, because=because, is_rendered=True)
        return replace(self._observed(node, objects, ()), listing=listing)

    # ── children ──

    def _own(self, node: Node) -> NodeStep:
        view, goal = self._view, self._goal
        most = view.options.max_collection_size
        rendered = evaluate.render(self._graph, node, self._scope, most_items=most)
        if isinstance(rendered, Pending | Failed):
            return self._unresolved(node, rendered)
        wanted = desired(goal.owner, node, rendered)
        if wrong := self._claim(node, wanted):
            return self._unrendered(node, Phase.ERROR, wrong)
        steps = [
            child_step(goal.owner, node.target, one, view.find(one.ref), self._answers) for one in wanted
        ]
        if goal.restores_only:
            steps = [_restored(goal, one) for one in steps]
        if node.has_propagate_when and any(one.action is not None for one in steps):
            gated = self._gated(node, steps)
            if isinstance(gated, Failed):
                return replace(self._unresolved(node, gated), children=tuple(steps))
            steps = gated
        return self._decided(node, tuple(steps))

    def _claim(self, node: Node, wanted: Sequence[Desired]) -> str:
        """Claim the objects of a node, and return what is wrong where one is claimed already."""
        for one in wanted:
            key = identity(one.ref)
            if key in self._above:
                return f'node "{node.id}" renders {self._above[key]}: {one.ref} cannot be a resource of its own instance'
            other = self._claimed.setdefault(key, node.id)
            if other != node.id:
                return (
                    f"found resources with conflicts: resourceID: {node.id} conflicts with "
                    f"resourceID: {other}: both are {one.ref}"
                )
        return ""

    def _gated(self, node: Node, steps: list[ChildStep]) -> list[ChildStep] | Failed:
        """Hold back what propagateWhen does not let through."""
        population = [self._paced(node, one) for one in steps]
        scope, most = self._scope, self._view.options.max_collection_size
        found: list[ChildStep] = []
        for index, one in enumerate(steps):
            if one.action is None:
                found.append(one)
                continue
            allowed = evaluate.propagates(self._graph, node, scope, population, index, most_items=most)
            if isinstance(allowed, Failed):
                return allowed
            if allowed is True:
                found.append(one)
                continue
            because = allowed.because if isinstance(allowed, Pending) else "propagateWhen does not hold"
            held = f'node "{node.id}": {because}: {one.desired.ref} is left as it is'
            found.append(replace(one, relation=ChildRelation.HELD, action=None, queries=(), because=held))
        return found

    def _paced(self, node: Node, one: ChildStep) -> Paced:
        if one.live is None:
            return Paced(one.desired.body)
        is_ready = evaluate.ready(self._graph, node, self._scope, (one.live,)).is_healthy
        return Paced(one.live, updated=one.is_same, ready=is_ready)

    def _decided(self, node: Node, steps: tuple[ChildStep, ...]) -> NodeStep:
        queries = tuple(query for one in steps for query in one.queries)
        for relation, phase in _PHASES:
            first = next((one for one in steps if one.relation is relation), None)
            if first is not None:
                lives = tuple(one.live for one in steps if one.live is not None)
                return NodeStep(
                    node=node,
                    phase=phase,
                    because=first.because,
                    children=steps,
                    observed=lives,
                    queries=queries,
                    is_rendered=True,
                )
        return self._observed(node, tuple(one.live for one in steps if one.live is not None), steps)

    def _observed(self, node: Node, objects: tuple[Obj, ...], steps: tuple[ChildStep, ...]) -> NodeStep:
        """Return a node whose objects are as they should be: synced if they are ready."""
        desired = None if node.kind.is_external else len(steps)
        result = evaluate.ready(self._graph, node, self._scope, objects, desired=desired)
        phase = Phase.SYNCED if result.is_healthy else Phase.ERROR if result.failed else Phase.WAITING
        return NodeStep(
            node=node,
            phase=phase,
            because="" if result.is_healthy else f'node "{node.id}" is not ready: {result.because}',
            children=steps,
            observed=objects,
            is_rendered=True,
        )


_PHASES = (
    (ChildRelation.CONFLICT, Phase.ERROR),
    (ChildRelation.DELETING, Phase.DELETING),
    (ChildRelation.WRITE, Phase.WRITING),
    (ChildRelation.HELD, Phase.BLOCKED),
    (ChildRelation.WAIT, Phase.WAITING),
)
"""The phase of a node by the relation of its children, the most important first."""


def _restored(goal: Goal, one: ChildStep) -> ChildStep:
    """Leave a child alone that has not reached the revision of the goal."""
    if one.relation not in (ChildRelation.WRITE, ChildRelation.WAIT):
        return one
    is_reached = one.stamp == goal.owner.input_revision if one.live is not None else goal.creates_missing
    if is_reached:
        return one
    because = f"{one.desired.ref} is left as it is: the instance is paused"
    return replace(one, relation=ChildRelation.HELD, action=None, queries=(), because=because)


def check_before_writes(view: View, steps: Sequence[NodeStep], answers: Answers) -> Confirmation[str]:
    """
    Return whether children may be written for the cached instance, or the read that shows it.

    One that was pinned, edited or deleted since has other children, or none.
    """
    is_writing = any(child.relation is ChildRelation.WRITE for one in steps for child in one.children)
    return check_instance(view, answers) if is_writing else Confirmation()


def live_refs(steps: Sequence[NodeStep]) -> frozenset[Ref]:
    """Return the objects that nodes are to have."""
    return frozenset(child.desired.ref for one in steps for child in one.children)
