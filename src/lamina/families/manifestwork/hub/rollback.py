"""Rollback: writes an older revision's template into the spec, which is rolled out like any other change."""

from __future__ import annotations

from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers
from lamina.core.rollout.history import history
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.rollback import rollback as write_back
from lamina.families.manifestwork.hub.history import revisions
from lamina.families.manifestwork.hub.view import View
from lamina.objects.types import Obj


def rollback(view: View, to: int | None) -> Plan:
    """
    Return the plan that writes an old template into the spec, whole; nothing but the spec changes.

    Raises RevisionNotFound for a revision that does not exist, or whose content cannot be read.
    """
    known = revisions(view, Answers())
    readable = history(one for one in (*known.found.others, known.wanted) if one.snapshot)

    def restored(revision: Revision) -> Obj:
        spec = {**(view.obj.get("spec") or {}), "manifestWorkTemplate": revision.snapshot}
        return {**view.obj, "spec": spec}

    return write_back(view.obj, readable, known.wanted.number, to, restored)
