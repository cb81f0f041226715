"""The events of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from lamina.core.model.events import normal, warning
from lamina.core.model.plan import Emit
from lamina.families.resourcegraph.definitions.findings import PROPAGATED, Finding, rolled_back_message
from lamina.families.resourcegraph.definitions.generated_crd import shadowed
from lamina.families.resourcegraph.labels import MANAGER
from lamina.graph.graph import Graph
from lamina.objects import conditions, meta
from lamina.objects.types import Obj

_normal, _warning = partial(normal, by=MANAGER), partial(warning, by=MANAGER)


def published(
    definition: Obj, revision: Obj, content_from: int, graph: Graph, now: datetime
) -> Iterator[Emit]:
    """Yield what happens when a revision is created, and a rollback ends by that."""
    number = revision["spec"]["revision"]
    message = f"Created revision {number}, {meta.name(revision)}"
    yield Emit(event=_normal(definition, "RevisionCreated", message, now=now))
    if content_from:
        message = rolled_back_message(number, content_from)
        yield Emit(event=_normal(definition, "RollbackSucceeded", message, now=now))
    if fields := shadowed(graph.status_schema):
        message = f"Revision {number} declares status fields that are not written because of it: {', '.join(fields)}"
        yield Emit(event=_warning(definition, "StatusFieldShadowed", message, now=now))


def pruned(definition: Obj, name: str, number: int, now: datetime) -> Emit:
    message = f"Deleted revision {number}, {name}: it is beyond the history limit, and no instance needs it"
    return Emit(event=_normal(definition, "RevisionPruned", message, now=now))


def rolled_back(definition: Obj, finding: Finding, now: datetime) -> Emit:
    """Return the event of a rollback that ended without a new revision."""
    occasion = meta.resource_version(definition)
    if finding.is_true:
        event = _normal(definition, "RollbackSucceeded", finding.message, now=now, occasion=occasion)
    else:
        message = f"{finding.reason}: {finding.message}"
        event = _warning(definition, "RollbackFailed", message, now=now, occasion=occasion)
    return Emit(event=event)


def applied_elsewhere(definition: Obj, managers: str, number: int, now: datetime) -> Emit:
    """Return the event that names the field managers of the spec that a rollback replaces."""
    message = (
        f"The spec was applied by {managers}: unless its source is changed to the content of revision {number},"
        " the next apply publishes the old content again"
    )
    return Emit(event=_warning(definition, "SpecAppliedElsewhere", message, now=now))


def propagated(definition: Obj, finding: Finding, now: datetime) -> Iterator[Emit]:
    """Yield the event of a propagation that has ended, or that an error blocks, where it was not so before."""
    before = conditions.find(conditions.of(definition), PROPAGATED)
    if before is None or before.get("status") == finding.status:
        return
    if finding.is_true:
        yield Emit(event=_normal(definition, "PropagationCompleted", finding.message, now=now))
    elif finding.status == "Unknown":
        yield Emit(event=_warning(definition, "PropagationBlocked", finding.message, now=now))
