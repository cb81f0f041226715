"""
What an instance is to be: the graph, the projected spec and the input revision of its children.

An input revision is recorded before a child is made from it. A paused instance records its
input revision, and keeps the one that was started last.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Action
from lamina.core.model.queries import Answers, Query
from lamina.families.resourcegraph.compiled_graphs import RevisionGraph
from lamina.families.resourcegraph.instances.children import Owner, owner
from lamina.families.resourcegraph.instances.input_revisions import COMPLETED, InputRevision, numbered
from lamina.families.resourcegraph.instances.instance_spec import (
    digest_of,
    is_equal,
    projected,
    what_is_invalid,
)
from lamina.families.resourcegraph.instances.recording import Recording, record
from lamina.families.resourcegraph.instances.resolve import Resolved, graph_at, invalid_spec, resolve
from lamina.families.resourcegraph.instances.view import OBSERVED_INPUT, View
from lamina.graph.graph import Graph
from lamina.objects.types import Obj


class Goal(Struct, frozen=True, kw_only=True):
    """
    What the children of an instance are to be: a graph with a projected spec, at an input revision.

    A goal that `restores_only` undoes changes of children that have reached its revision, and
    moves no other; what is missing is created only where it `creates_missing`.
    """

    graph: Graph
    spec: Obj
    owner: Owner
    restores_only: bool = False
    creates_missing: bool = True


class Choice(Struct, frozen=True, kw_only=True):
    """
    The goal of an instance, or why it has none.

    `target` is the input revision of the goal, `newest` the one that was recorded last, which
    a paused instance does not follow. `record` stores it where it is new. `waits` says what the
    cache does not have yet.
    """

    resolved: Resolved
    goal: Goal | None = None
    target: InputRevision | None = None
    newest: InputRevision | None = None
    record: Action | None = None
    queries: tuple[Query, ...] = ()
    waits: str = ""


def choose(view: View, answers: Answers, now: datetime) -> Choice:
    """Return what an instance is to be."""
    resolved = resolve(view, answers)
    graph, number = resolved.graph, resolved.effective.number
    if graph is None:
        return Choice(resolved=resolved, queries=resolved.queries)
    spec: Obj = view.obj.get("spec") or {}
    newest = view.inputs[-1] if view.inputs else None
    recording = Recording()
    same = newest if newest is not None and _is_of(view, newest, number, graph, spec) else None
    if newest is None or same is None or view.input_stamp > newest.number:
        if wrong := what_is_invalid(graph, projected(graph, spec)):
            return Choice(resolved=invalid_spec(resolved, wrong))
        recording = record(view, number, graph, answers, now, same=same)
        if recording.made is None:
            return Choice(resolved=resolved, queries=recording.queries, waits=recording.waits)
        newest = recording.made
    newest = replace(newest, hash=newest.hash or digest_of(graph, newest.spec or {}, newest.revision))
    if resolved.effective.is_paused:
        return _paused(view, resolved, newest, recording.action, answers)
    made = Goal(graph=graph, spec=projected(graph, spec), owner=owner(view.obj, newest.number, number))
    return Choice(resolved=resolved, goal=made, target=newest, newest=newest, record=recording.action)


def _is_of(view: View, newest: InputRevision, revision: int, graph: Graph, spec: Obj) -> bool:
    """Say whether the newest input revision is that of a spec and a revision."""
    is_on = newest.revision == revision and view.has_revision(newest)
    return is_on and is_equal(graph, newest.spec, spec)


def _paused(
    view: View, resolved: Resolved, newest: InputRevision, action: Action | None, answers: Answers
) -> Choice:
    """Return a goal that restores what the input revision made that was started last, if one was."""
    started = view.started(newest.number)
    target = newest if newest.number == started else numbered(view.inputs, started)
    choice = Choice(resolved=resolved, newest=newest, target=target, record=action)
    if target is None or target.spec is None or not view.has_revision(target):
        return choice
    found = graph_at(view, target.revision, answers)
    if not isinstance(found, RevisionGraph):
        return Choice(resolved=resolved, queries=found)
    graph = found.graph
    if graph is None:
        return choice
    is_complete = target.status == COMPLETED or view.number(OBSERVED_INPUT) == target.number
    made = Goal(
        graph=graph,
        spec=projected(graph, target.spec),
        owner=owner(view.obj, target.number, target.revision),
        restores_only=True,
        creates_missing=is_complete,
    )
    return Choice(resolved=resolved, goal=made, target=target, newest=newest, record=action)
