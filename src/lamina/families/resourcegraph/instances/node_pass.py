"""
A pass over the nodes of an instance: what is written next, or what is reported.

The stages of a pass come in the order in which a process may end between them: the finalizer
and the labels, the input revision, the inventory, and then every child that can be written.
The events of these writes lead to the next pass. Before children are written, the instance is
read live: one that was pinned or edited since has others. Children are pruned once all others are as
desired. A status is written by a pass that writes nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lamina.core.model.plan import Action, Apply, Plan, Stage
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.instances import applyset
from lamina.families.resourcegraph.instances.goal import Choice
from lamina.families.resourcegraph.instances.node_steps import NodeStep, check_before_writes, node_steps
from lamina.families.resourcegraph.instances.progress import progress
from lamina.families.resourcegraph.instances.prune import Pruning, prune, superset
from lamina.families.resourcegraph.instances.report import report
from lamina.families.resourcegraph.instances.view import View
from lamina.objects import meta
from lamina.objects.types import Made

_AT_ONCE = timedelta(0)
_SOON = timedelta(seconds=1)
_LATER = timedelta(seconds=10)
"""How often it is tried again to read external objects that may not be read, and to compile a graph."""


def managing(view: View, steps: Sequence[NodeStep] = ()) -> tuple[Stage, ...]:
    """Return the stage that sets the finalizer, the labels and the inventory, where one was never set or was edited."""
    assert view.definition is not None, "without its definition an instance is only deleted"
    managed = applyset.manage(view.obj, view.definition, lambda: superset(view, steps))
    if managed is None and not applyset.is_intact(view.obj):
        managed = applyset.record(view.obj, superset(view, steps))
    return () if managed is None else (Stage("manage", (managed,)),)


def node_pass(view: View, choice: Choice, answers: Answers, now: datetime) -> Plan:
    """Return what is written next, or what is reported."""
    goal = choice.goal
    steps = node_steps(view, goal, answers) if goal is not None else ()
    check = check_before_writes(view, steps, answers)
    asked = dict.fromkeys(query for one in steps for query in one.queries)
    if queries := (*check.pending, *asked):
        return Plan(queries=queries)
    if not check.is_confirmed:
        return Plan(because="waiting for the cache to have the latest instance", requeue_after=_SOON)
    if written := _writes(view, choice, steps):
        # A record alone brings no event that leads to the next pass.
        is_silent = all(one.name in (_HOME, _RECORD, _INVENTORY) for one in written)
        again = _AT_ONCE if is_silent else None
        return Plan(stages=written, because=_because(choice, steps), requeue_after=again)
    pruning = Pruning()
    if goal is not None and not goal.restores_only:
        pruning = prune(view, goal.graph, steps, answers)
    if pruning.queries:
        return Plan(queries=pruning.queries)
    if pruning.stages:
        names = [str(action.ref) for stage in pruning.stages for action in stage.actions]
        return Plan(stages=pruning.stages, because=f"pruning {', '.join(names[:5])}")
    shrunk = applyset.record(view.obj, pruning.shrunk) if pruning.shrunk is not None else None
    if shrunk is not None:
        because = "all of its resources of another kind or namespace are gone"
        return Plan(stages=(Stage(_INVENTORY, (shrunk,)),), because=because, requeue_after=_AT_ONCE)
    found = progress(view, choice, steps, pruning.left)
    return Plan(
        stages=report(view, choice, steps, found, now),
        because=found.because or found.resources.message,
        requeue_after=_again(pruning, choice, steps),
    )


_HOME = "create the namespace of input revisions"
_RECORD, _INVENTORY = "record the input revision", "record the inventory"


def _writes(view: View, choice: Choice, steps: Sequence[NodeStep]) -> tuple[Stage, ...]:
    """Return the stages of a pass; two that need the same version of the instance are never in one."""
    managed = managing(view, steps)
    inventory = None
    if not managed and choice.goal is not None:
        inventory = applyset.record(view.obj, superset(view, steps))
    first = managed or ((Stage(_INVENTORY, (inventory,)),) if inventory is not None else ())
    if first and view.is_inline:
        return first
    records = (choice.record,) if choice.record is not None else ()
    home = (_home(view),) if records and not view.inputs and not meta.namespace(view.obj) else ()
    children: tuple[Action, ...] = tuple(
        child.action for one in steps for child in one.children if child.action is not None
    )
    stages = (
        *first,
        Stage(_HOME, home),
        Stage(_RECORD, records),
        Stage("apply resources", children),
    )
    return tuple(one for one in stages if one.actions)


def _home(view: View) -> Action:
    """Return what creates the namespace in which the input revisions of cluster-scoped instances are."""
    metadata = {"name": view.options.controller_namespace}
    namespace: Made = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    # Where it is there, and may not be written, the record is created all the same.
    return Apply(obj=namespace, optional=True)


def _because(choice: Choice, steps: Sequence[NodeStep]) -> str:
    number = choice.newest.number if choice.newest is not None else 0
    writing = [one for one in steps if any(child.action is not None for child in one.children)]
    if not writing:
        return f"recording input revision {number}"
    first = next(child.because for child in writing[0].children if child.action is not None)
    names = ", ".join(f'"{one.node.id}"' for one in writing[:5])
    return f"applying resources of {names} for input revision {number}: {first}"


def _again(pruning: Pruning, choice: Choice, steps: Sequence[NodeStep]) -> timedelta | None:
    if pruning.is_stale or any(child.is_unseen for one in steps for child in one.children):
        return _SOON
    is_refused = any(one.is_refused for one in steps) or choice.resolved.effective.is_uncompiled
    return _LATER if is_refused else None
