"""
Rollbacks and pins, as edits of annotations.

A controller carries them out and reports on the object: a rollback with the condition
RollbackSucceeded after it has removed the annotation, a pin with RevisionResolved. A
report that was there before the edit may be about an earlier one, so it counts only once
the object has not changed for a while, or where it differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lamina.core.model.revision_commands import AnnotationEdit, Result, Wait
from lamina.errors import SettingsError
from lamina.families.resourcegraph.commands.facts import Facts, number
from lamina.families.resourcegraph.commands.rows import current_revision
from lamina.families.resourcegraph.definitions.instance_facts import facts as instance_facts
from lamina.families.resourcegraph.definitions.view import revision_of
from lamina.families.resourcegraph.instances.built_in import REVISION_RESOLVED
from lamina.families.resourcegraph.instances.built_in import ROLLED_BACK as ROLLBACK_SUCCEEDED
from lamina.families.resourcegraph.instances.effective_revision import Reason, Situation, effective_revision
from lamina.families.resourcegraph.labels import PIN, ROLLBACK, ROLLBACK_INPUT, ROLLBACK_SCOPE
from lamina.objects import conditions, meta
from lamina.objects.diff import is_same
from lamina.objects.types import Condition, Obj

_ROLLED_BACK = "RolledBack"
_REFUSES_PIN = (
    Reason.INVALID_PIN,
    Reason.PINNED_NOT_FOUND,
    Reason.NOT_FOUND,
    Reason.FAILED,
    Reason.SPEC_INVALID,
)


def rollback(found: Facts, to: int | None, to_input: int | None) -> AnnotationEdit:
    """Return the rollback of a definition to a revision, or of an instance to an input revision."""
    wanted, other, flag = (
        (to, to_input, "--to-revision") if found.is_definition else (to_input, to, "--to-input-revision")
    )
    if wanted is None or other is not None:
        raise SettingsError(f"{found.title} is rolled back with {flag} N")
    before = conditions.find(conditions.of(found.owner), ROLLBACK_SUCCEEDED)
    if found.is_definition:
        return AnnotationEdit(
            ref=found.ref,
            annotations={ROLLBACK: str(wanted)},
            announced=f"Rolling back to revision {wanted}...",
            result=partial(_definition_result, before, _moving(found, wanted)),
        )
    # With the scope `spec`, it stays on the revision that it is on.
    is_pair = meta.annotations(found.owner).get(ROLLBACK_SCOPE) != "spec"
    stored = next((one for one in found.revisions if is_pair and number(one) == wanted), None)
    return AnnotationEdit(
        ref=found.ref,
        annotations={ROLLBACK_INPUT: str(wanted)},
        announced=f"Rolling back to input revision {wanted}...",
        result=partial(_instance_result, before, stored),
    )


def _moving(found: Facts, wanted: int) -> int:
    """Return how many instances follow new revisions, and get other content by a rollback."""
    hashes = {one.number: one.hash for one in map(revision_of, found.revisions)}
    current = current_revision(found)
    following = (one for one in map(instance_facts, found.instances) if one.is_following)
    return sum(hashes.get(one.current or current) != hashes.get(wanted) for one in following)


def _definition_result(before: Condition | None, moving: int, now: Obj, wait: Wait) -> Result | None:
    def done(reported: Condition) -> Result:
        lines = [reported.get("message") or ""]
        if reported.get("reason") == _ROLLED_BACK:
            instances = "1 instance" if moving == 1 else f"{moving} instances"
            lines.append(f"{instances} will reconcile to new revision")
        return Result(lines=tuple(lines))

    # Its message names the new revision, so one that has been there before is not the result.
    return _rollback_result(before, ROLLBACK, now, wait, done, is_unique=True)


def _instance_result(before: Condition | None, wanted: Obj | None, now: Obj, wait: Wait) -> Result | None:
    stored = (wanted or {}).get("spec") or {}
    revision = f"Instance will reconcile to RGD revision {stored.get('rgdRevision')}"

    def done(reported: Condition) -> Result:
        rolled_back = reported.get("reason") == _ROLLED_BACK and wanted is not None
        return Result(lines=(revision if rolled_back else reported.get("message") or "",))

    reported = conditions.find(conditions.of(now), ROLLBACK_SUCCEEDED)
    if reported is None and wait is not Wait.JUST_CHANGED and ROLLBACK_INPUT not in meta.annotations(now):
        # Where the author declares conditions, the built-in ones are shown only while they are not true.
        is_restored = wanted is not None and is_same(now.get("spec"), stored.get("instanceSpec"))
        return Result(lines=(revision,)) if is_restored else None
    return _rollback_result(before, ROLLBACK_INPUT, now, wait, done)


def _rollback_result(
    before: Condition | None,
    annotation: str,
    now: Obj,
    wait: Wait,
    done: Callable[[Condition], Result],
    *,
    is_unique: bool = False,
) -> Result | None:
    found = conditions.find(conditions.of(now), ROLLBACK_SUCCEEDED)
    if found is None or found.get("status") not in ("True", "False"):
        return None
    is_new = found != before
    if annotation in meta.annotations(now):
        # It is tried again.
        is_failing = is_new and wait is Wait.TIMED_OUT and found["status"] == "False"
        return Result(error=found.get("message") or "") if is_failing else None
    if not is_new:
        is_about_this = found.get("observedGeneration") in (None, meta.generation(now))
        is_unique_success = is_unique and found.get("reason") == _ROLLED_BACK
        if wait is Wait.JUST_CHANGED or not is_about_this or is_unique_success:
            return None
    return done(found) if found["status"] == "True" else Result(error=found.get("message") or "")


def pin(found: Facts, revision: int | None) -> AnnotationEdit:
    """Return the pin of an instance to a revision of its definition, or its removal."""
    if found.is_definition:
        raise SettingsError(f"{found.title} has no pins: its instances have them")
    if revision is None:
        unpinned = Result(lines=("Instance unpinned, will use latest RGD revision",))
        return AnnotationEdit(ref=found.ref, annotations={PIN: None}, result=lambda now, wait: unpinned)
    return AnnotationEdit(
        ref=found.ref,
        annotations={PIN: str(revision)},
        result=partial(_pin_result, found, revision),
    )


def _pin_result(before: Facts, revision: int, now: Obj, wait: Wait) -> Result | None:
    stated = meta.annotations(now).get(PIN)
    if stated != str(revision):
        return Result(error=f"its pin has been changed to {stated}" if stated else "its pin has been removed")
    found = conditions.find(conditions.of(now), REVISION_RESOLVED)
    if found is not None and found["status"] == "False" and found.get("reason") in _REFUSES_PIN:
        was_pinned = meta.annotations(before.owner).get(PIN) == stated
        is_new = found != conditions.find(conditions.of(before.owner), REVISION_RESOLVED)
        if is_new or was_pinned or wait is Wait.TIMED_OUT:
            hint = f"the pin stays; remove it with `kro unpin {before.title}`"
            return Result(error=found.get("message") or "", hint=hint)
        return None
    # An author may declare a status field of that name; then only the condition names the revision.
    is_on_it = (now.get("status") or {}).get("currentRGDRevision") == revision
    if is_on_it or (found is not None and found.get("message") == _resolved(revision)):
        pinned = f"Instance pinned to RGD revision {revision}"
        return Result(lines=(pinned, "Will not receive updates from newer RGD revisions"))
    return None


def _resolved(revision: int) -> str:
    """Return what the condition says of an instance that is pinned to a revision."""
    return effective_revision(Situation(current=revision, available=(revision,), pin=str(revision))).message
