"""What writes of this family are counted as: the counters of upstream that have a meaning here, and one of our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.core.model.plan import Counter
from lamina.objects import meta
from lamina.objects.types import Obj

DEFINITION, INSTANCE = "definition", "instance"
"""The levels of rollbacks."""
RESTORED = "RolledBack"
"""The result of a rollback that restores something."""


def issued(revision: Obj) -> Counter:
    """Return what the creation of a revision of a definition is counted as."""
    is_first = revision["spec"]["revision"] == 1
    return Counter(
        name="rgd_graph_revision_issue_total",
        help="Revisions of definitions that were created.",
        labels=(("reason", "no_revision" if is_first else "spec_changed"),),
    )


def pruned() -> Counter:
    """Return what the deletion of a revision of a definition is counted as."""
    text = "Revisions of definitions that were deleted because of the history limit."
    return Counter(name="rgd_graph_revision_gc_deleted_total", help=text)


def deleted(definition: Obj) -> Counter:
    """Return what the end of a definition is counted as."""
    labels = (("name", meta.name(definition)),)
    return Counter(name="rgd_deletions_total", help="Definitions that were deleted.", labels=labels)


def rolled_back(level: str, result: str) -> Counter:
    """Return what the end of a rollback is counted as; `result` is the reason of RollbackSucceeded."""
    text = "Rollbacks of definitions and of instances, by their result."
    return Counter(name="rollback_total", help=text, labels=(("level", level), ("result", result)))


def of_definition(definition: Obj, status: Obj) -> Iterator[Counter]:
    """Yield what a new status of a definition is counted as; the first one is no transition."""
    before, after = _state(definition.get("status")), _state(status)
    if before and before != after:
        text = "Changes of the state of definitions."
        labels = (("name", meta.name(definition)), ("from", before), ("to", after))
        yield Counter(name="rgd_state_transitions_total", help=text, labels=labels)


def of_instance(instance: Obj, status: Obj) -> Iterator[Counter]:
    """Yield what a new status of an instance is counted as."""
    before, after = _state(instance.get("status")), _state(status)
    if before != after:
        text = "Changes of the state of instances, by their kind."
        # Upstream has the kind in this form in the label that it calls `gvr`.
        kind = f"{instance['apiVersion']}, Kind={instance['kind']}"
        labels = (("gvr", kind), ("from_state", before), ("to_state", after))
        yield Counter(name="instance_state_transitions_total", help=text, labels=labels)


def _state(status: Any) -> str:
    return str((status or {}).get("state") or "")
