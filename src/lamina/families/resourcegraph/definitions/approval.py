"""
Whether an edit of a definition may be published: at once, by approval, or as a rollback.

A rollback writes old content into the definition, with an annotation that says from which
revision it is. As long as the content is that of the revision, it is published without
approval, and without the check that an edit has to pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lamina.families.resourcegraph.api import RevisionPolicy
from lamina.families.resourcegraph.definitions.findings import PUBLISHED, STALE_APPROVAL, Finding
from lamina.families.resourcegraph.definitions.view import View
from lamina.families.resourcegraph.labels import (
    ALLOW_BREAKING,
    CONTENT_FROM,
    CREATE_REVISION,
    ROLLBACK,
    ROLLBACK_MODE,
)
from lamina.objects import conditions, meta
from lamina.objects.numbers import positive

_TRUE = "true"


class Approval(Struct, frozen=True, kw_only=True):
    """
    What an edit may do.

    `awaited` says that it has to be approved first. `content_from` is the revision that a
    rollback took the content from, 0 for an edit; `mode` says how instances move to the
    content of a rollback.
    """

    awaited: Finding | None = None
    content_from: int = 0
    mode: str = ""
    checks_compatibility: bool = True


def approval(view: View) -> Approval:
    """Return what an edit that is not published yet may do."""
    annotations = meta.annotations(view.definition)
    restored = restored_from(view)
    if restored:
        mode = annotations.get(ROLLBACK_MODE) or ""
        return Approval(content_from=restored, mode=mode, checks_compatibility=False)
    return Approval(awaited=_awaited(view), checks_compatibility=annotations.get(ALLOW_BREAKING) != _TRUE)


def restored_from(view: View) -> int:
    """Return the revision that a rollback wrote into the definition, 0 where its content is another one by now."""
    number = positive(meta.annotations(view.definition).get(CONTENT_FROM) or "")
    revision = view.numbered(number) if number else None
    return number if revision is not None and revision.hash == view.hash else 0


def _awaited(view: View) -> Finding | None:
    policy = view.stated.revision_management.update_policy.type
    if policy is not RevisionPolicy.MANUAL or view.current is None:
        return None
    generation = meta.generation(view.definition)
    approved = meta.annotations(view.definition).get(CREATE_REVISION)
    if approved in (_TRUE, str(generation)):
        return None
    if approved is not None:
        return _stale(f"generation {approved} was approved, and the definition is at generation {generation}")
    if (reported := _reported_stale(view)) is not None:
        return reported
    return Finding(
        "False",
        "AwaitingApproval",
        f"the definition has changed since revision {view.current.number}; "
        f"annotate it with {CREATE_REVISION}={generation} to publish it",
    )


def _stale(because: str) -> Finding:
    return Finding("False", STALE_APPROVAL, because)


def _reported_stale(view: View) -> Finding | None:
    """Return what is reported of a stale approval, as long as the definition stays as it is."""
    found = conditions.find(conditions.of(view.definition), PUBLISHED)
    if found is None or found.get("reason") != STALE_APPROVAL:
        return None
    if found.get("observedGeneration") != meta.generation(view.definition):
        return None
    return _stale(found.get("message", ""))


def leftovers(view: View) -> Iterator[str]:
    """Yield the annotations that have had their effect, or can have none any more."""
    annotations = meta.annotations(view.definition)
    if CREATE_REVISION in annotations and (view.is_published or _is_reported(view)):
        yield CREATE_REVISION
    if CONTENT_FROM in annotations and (view.is_published or not restored_from(view)):
        yield CONTENT_FROM
        if ROLLBACK_MODE in annotations and ROLLBACK not in annotations:
            yield ROLLBACK_MODE


def _is_reported(view: View) -> bool:
    """Say whether the annotation approves another generation, and that has been reported."""
    awaited, reported = _awaited(view), _reported_stale(view)
    return awaited is not None and reported is not None and awaited == reported
