"""What the conditions of an instance say after a pass over its nodes."""

from __future__ import annotations

from lamina.families.resourcegraph.definitions.findings import Finding
from lamina.families.resourcegraph.instances import built_in
from lamina.families.resourcegraph.instances.goal import Choice
from lamina.families.resourcegraph.instances.progress import Progress
from lamina.families.resourcegraph.instances.restored import has_become
from lamina.families.resourcegraph.instances.view import MANAGED_RESOURCES, MOST_LISTED, View
from lamina.objects import conditions


def findings(view: View, choice: Choice, found: Progress) -> dict[str, Finding | None]:
    """Return what the conditions say by their types; None removes one."""
    effective = choice.resolved.effective
    made: dict[str, Finding | None] = {
        built_in.INSTANCE_MANAGED: built_in.MANAGED,
        built_in.GRAPH_RESOLVED: built_in.graph_resolved(effective),
        built_in.RESOURCES_READY: found.resources,
        built_in.REVISION_RESOLVED: built_in.revision_resolved(effective),
        built_in.PROPAGATED: _propagated(choice, found),
    }
    # It was about to be restored when that was reported, and has no annotation any more.
    begun = conditions.find(conditions.of(view.obj), built_in.ROLLED_BACK)
    if begun is not None and begun["status"] == "Unknown":
        message, graph = begun.get("message") or "", choice.goal.graph if choice.goal is not None else None
        is_done = has_become(view, message, effective.number, graph)
        made[built_in.ROLLED_BACK] = Finding("True", "RolledBack", message) if is_done else None
    return made


def _propagated(choice: Choice, found: Progress) -> Finding:
    number = choice.target.number if choice.target is not None else 0
    cut = f"; status.{MANAGED_RESOURCES} lists the first {MOST_LISTED}" if found.total > MOST_LISTED else ""
    counted = f"{found.at}/{found.total} resources at input revision {number}{cut}"
    if found.is_propagated:
        return Finding("True", "AllResourcesUpdated", counted)
    return Finding("False", f"Propagation{found.propagation}", f"{counted}: {found.because}")
