"""
Which instances may move to a revision.

Where a definition has no propagateWhen, or the revision is a rollback that is not gated,
all may. Else the controller of definitions decides, and records in the status of the
revision those that may and have not moved yet; instances only read it.
"""

from __future__ import annotations

from lamina.families.resourcegraph.labels import CONTENT_FROM, ROLLBACK_MODE
from lamina.objects import meta
from lamina.objects.types import Obj

GATED = "Gated"
"""The value of `kro.run/rollback-mode` with which a rollback moves instances as an edit does."""


def is_gated(definition: Obj, revision: Obj) -> bool:
    """Say whether instances need to be admitted to a revision."""
    if not (definition.get("spec") or {}).get("propagateWhen"):
        return False
    annotations = meta.annotations(revision)
    return CONTENT_FROM not in annotations or annotations.get(ROLLBACK_MODE) == GATED


def admitted(revision: Obj) -> tuple[str, ...]:
    """Return the uids of the instances that may move to a revision and were not on it when that was recorded."""
    return tuple((revision.get("status") or {}).get("admitted") or ())
