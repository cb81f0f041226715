"""The built-in conditions of an instance, and the conditions that its author declares in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from lamina.families.resourcegraph.definitions.findings import READY, Finding, with_finding, worst
from lamina.families.resourcegraph.instances.effective_revision import Effective
from lamina.objects import conditions
from lamina.objects.types import Condition, Obj

INSTANCE_MANAGED: Final = "InstanceManaged"
GRAPH_RESOLVED: Final = "GraphResolved"
RESOURCES_READY: Final = "ResourcesReady"
REVISION_RESOLVED: Final = "RevisionResolved"
PROPAGATED: Final = "ResourcesPropagated"
ROLLED_BACK: Final = "RollbackSucceeded"
_DEPENDENTS = (INSTANCE_MANAGED, GRAPH_RESOLVED, RESOURCES_READY)
"""What the root condition Ready depends on."""
_OVERLAID = (REVISION_RESOLVED, PROPAGATED, ROLLED_BACK)
"""Those that are shown beside the author's while they are not true."""
_LONGEST = 4096
_UNKNOWN = Finding("Unknown", "AwaitingReconciliation", "it has not been reconciled yet")


MANAGED: Final = Finding("True", "Managed", "it has the finalizer and the labels of the controller")
GRAPH_IS_RESOLVED: Final = Finding("True", "Resolved", "the graph of its revision is compiled")
ALL_READY: Final = Finding("True", "AllResourcesReady", "all resources are created and ready")
SUSPENDED: Final = Finding(
    "False",
    "ReconciliationSuspended",
    "reconciliation is suspended via the kro.run/reconcile annotation: nothing is written to its resources",
)


def graph_resolved(effective: Effective) -> Finding:
    """Return whether the graph of a revision compiles."""
    failed = Finding("False", "ResolutionFailed", effective.message)
    return failed if effective.is_uncompiled or not effective.number else GRAPH_IS_RESOLVED


def revision_resolved(effective: Effective) -> Finding:
    """Return whether an instance has the revision that it is to have."""
    return Finding("True" if effective.is_resolved else "False", str(effective.reason), effective.message)


def not_ready(message: str) -> Finding:
    """Return the finding that resources are not ready, and why."""
    return Finding("False", "NotReady", message)


def built_in(obj: Obj, findings: Mapping[str, Finding | None], now: datetime) -> list[Condition]:
    """Return the built-in conditions with these findings, the root first; others stay, and None removes one."""
    known = (READY, *_DEPENDENTS, *_OVERLAID)
    found = [one for one in conditions.of(obj) if one.get("type") in known]
    for name, finding in findings.items():
        if finding is None:
            found = conditions.without_condition(found, name)
        else:
            found = _set(found, name, finding, obj, now)
    dependents = [one for one in found if one["type"] in _DEPENDENTS]
    found = _set(found, READY, _root(dependents), obj, now)
    return sorted(found, key=lambda one: known.index(one["type"]))


def _set(found: Sequence[Condition], name: str, finding: Finding, obj: Obj, now: datetime) -> list[Condition]:
    message = finding.message
    cut = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
    return with_finding(found, name, finding._replace(message=cut), obj, now)


def _root(dependents: Sequence[Condition]) -> Finding:
    """Return the worst of the conditions that the root depends on."""
    if (bad := worst(dependents)) is not None:
        return bad
    is_known = len(dependents) == len(_DEPENDENTS)
    return Finding("True", READY) if is_known else _UNKNOWN


def authored(
    obj: Obj,
    made: Iterable[Condition],
    own: Sequence[Condition],
    now: datetime,
    *,
    is_partial: bool,
    overlays: Sequence[str] = (),
) -> list[Condition]:
    """
    Return the author's conditions, with the built-in ones that are shown all the same.

    With `is_partial` some could not be evaluated: earlier ones of other types stay.
    """
    shown = {one["type"] for one in own if one["status"] != "True" and one["type"] in (*_OVERLAID, *overlays)}
    found = list(conditions.of(obj))
    types: list[str] = []
    for one in made:
        types.append(one["type"])
        finding = Finding(one["status"], one.get("reason") or "", one.get("message") or "")
        found = _set(found, one["type"], finding, obj, now)
    hidden = (READY, *_DEPENDENTS, *_OVERLAID)
    kept = [one for one in found if one["type"] in types or (is_partial and one["type"] not in hidden)]
    return [*kept, *(one for one in own if one["type"] in shown and one["type"] not in types)]
