"""
The status of a work, and of each of its manifests.

    Applied        whether the live objects are as the manifests want them
    Available      whether all objects exist, healthy or not
    feedback       the values that feedbackRules name
    rules          the conditions of conditionRules, aggregated for the work: Progressing and
                   Degraded if they hold for one manifest, any other if they hold for all
    Progressing,   without a rule: True until every object is applied, exists and is settled;
    Degraded       without a rule: True if an object of a known kind has failed

Rules are not evaluated before the generation is applied: they would judge the objects of
an older one. The status is written once all manifests have an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeAlias

from lamina.core.health.kstatus import SETTLED, health
from lamina.core.rollout.step import listed
from lamina.families.manifestwork.agent.condition_rules import REASONS, evaluated
from lamina.families.manifestwork.agent.feedback import feedback
from lamina.families.manifestwork.agent.manifest_step import ManifestOutcome, ManifestStep
from lamina.families.manifestwork.agent.reported_status import condition, find_at, resource_meta
from lamina.families.manifestwork.agent.view import View
from lamina.objects import conditions
from lamina.objects.types import Condition, GroupKind, Made, Obj, Ref

AGGREGATED = "ConditionRulesAggregated"
_ONE_IS_ENOUGH = frozenset(("Progressing", "Degraded"))
_OURS = frozenset(("Applied", "Available", "StatusFeedbackSynced"))
_WORK_APPLIED = "True", "AppliedManifestWorkComplete", "Apply manifest work complete"
_WORK_FAILED = "False", "AppliedManifestWorkFailed", "Failed to apply manifest work"

_Maker: TypeAlias = Callable[[Sequence[Condition], str, str, str, str], Condition]
"""Returns a condition at the generation of a work, given those before, its type, status, reason and message."""


def status(view: View, steps: Sequence[ManifestStep], now: datetime) -> Made | None:
    """Return the status of a work, or None while a manifest has no outcome yet."""
    make, entries = _maker(view, now), list[Made]()
    for step in steps:
        entry = _entry(view, step, make)
        if entry is None:
            return None
        entries.append(entry)
    reported: Sequence[Condition] = view.status.get("conditions") or ()
    made = {one["type"]: one for one in _work_conditions(view, steps, entries, make)}
    kept = [made.pop(one["type"], one) for one in reported if one["type"] in made or not _is_stale(one, view)]
    return {**view.status, "conditions": [*kept, *made.values()], "resourceStatus": {"manifests": entries}}


def refused(view: View, why: Mapping[Ref, str], now: datetime) -> Made:
    """Return the status of a work whose manifests for these objects were refused, with the reasons."""
    make, entries = _maker(view, now), []
    for manifest in view.manifests:
        entry = {**view.reported.entry(manifest), "resourceMeta": resource_meta(manifest)}
        if manifest.ref in why:
            reported = view.reported.conditions(manifest)
            message = f"Failed to apply manifest: {why[manifest.ref]}"
            failed = make(reported, "Applied", "False", "AppliedManifestFailed", message)
            entry["conditions"] = [failed, *(one for one in reported if one["type"] != "Applied")]
        if entry.get("conditions"):
            entries.append(entry)
    reported = view.status.get("conditions") or ()
    failed = make(reported, "Applied", *_WORK_FAILED)
    rest = [failed if one["type"] == "Applied" else one for one in reported]
    return {
        **view.status,
        "conditions": rest if failed in rest else [failed, *rest],
        "resourceStatus": {"manifests": entries},
    }


def deleting(view: View, now: datetime) -> Made:
    """Return the status of a work whose objects are being deleted."""
    before = view.status.get("conditions") or ()
    message = "The applied objects are being deleted"
    made = _maker(view, now)(before, "Deleting", "True", "WorkDeleting", message)
    return {**view.status, "conditions": [*conditions.without_condition(before, "Deleting"), made]}


def _maker(view: View, now: datetime) -> _Maker:
    return partial(condition, now=now, generation=view.generation)


# One manifest


def _entry(view: View, step: ManifestStep, make: _Maker) -> Made | None:
    """Return the status of one manifest, or None while it has no outcome yet."""
    before = view.reported.entry(step.manifest)
    reported: Sequence[Condition] = before.get("conditions") or ()
    applied = _outcome(view, step, reported, make)
    if applied is None:
        return None
    made: Made = {"resourceMeta": resource_meta(step.manifest)}
    available = _available(step, reported, make)
    found = [applied, available]
    if step.live is not None:
        values, synced = _feedback(view, step, before, make)
        found.append(synced)
        if values:
            made["statusFeedback"] = {"values": values}
    else:
        # The last reported values are kept: nothing newer is known.
        found += [one for one in reported if one["type"] == "StatusFeedbackSynced"]
        if before.get("statusFeedback"):
            made["statusFeedback"] = before["statusFeedback"]
    made["conditions"] = [*found, *_rule_conditions(step, reported, applied, make)]
    return made


def _outcome(view: View, step: ManifestStep, reported: Sequence[Condition], make: _Maker) -> Condition | None:
    match step.outcome:
        case ManifestOutcome.DONE:
            message = "Apply manifest complete"
            if not step.is_kept and (others := view.rivals.yielding(step.manifest)):
                message += f"; other content of {listed(others)} does not replace it"
            return make(reported, "Applied", "True", "AppliedManifestComplete", message)
        case ManifestOutcome.FAILED:
            wrong = "AppliedManifestSSAIgnoreFieldError" if step.is_ignore_error else "AppliedManifestFailed"
            return make(reported, "Applied", "False", wrong, f"Failed to apply manifest: {step.message}")
        case ManifestOutcome.WRITE:
            # Unknown before the write is made, but an earlier pass may have made it.
            return find_at(reported, "Applied", view.generation)


def _available(step: ManifestStep, reported: Sequence[Condition], make: _Maker) -> Condition:
    if step.manifest.kind is None or not step.manifest.name:
        what = "Unknown", "IncompleteResourceMeta", "Resource meta is incompleted"
    elif step.found.unknown:
        what = "Unknown", "FetchingResourceFailed", f"Failed to fetch resource: {step.found.unknown}"
    elif step.live is None:
        what = "False", "ResourceNotAvailable", "Resource is not available"
    else:
        what = "True", "ResourceAvailable", "Resource is available"
    return make(reported, "Available", *what)


def _feedback(view: View, step: ManifestStep, before: Obj, make: _Maker) -> tuple[list[Made], Condition]:
    assert step.live is not None
    options, rules = view.agent.options, step.manifest.config.feedback
    found = feedback(step.live, rules, raw=options.raw_feedback, longest=options.raw_length)
    if not rules:
        what = "True", "NoStatusFeedbackSynced", ""
    elif found.wrong:
        message = f"Sync status feedback failed with error {'; '.join(found.wrong)}"
        what = "False", "StatusFeedbackSyncFailed", message
    else:
        what = "True", "StatusFeedbackSynced", ""
    values = [dict(one) for one in found.values]
    reported: Sequence[Condition] = before.get("conditions") or ()
    if values != ((before.get("statusFeedback") or {}).get("values") or []):
        # The transition time of this condition is that of the values.
        reported = conditions.without_condition(reported, "StatusFeedbackSynced")
    return values, make(reported, "StatusFeedbackSynced", *what)


def _rule_conditions(
    step: ManifestStep, reported: Sequence[Condition], applied: Condition, make: _Maker
) -> Iterator[Condition]:
    rules = step.manifest.config.rules
    is_known = step.live is not None and step.outcome is ManifestOutcome.DONE and applied["status"] == "True"
    if not is_known:
        named = {rule.condition for rule in rules}
        yield from (one for one in reported if one["type"] in named and one.get("reason") in REASONS)
        return
    assert step.live is not None
    for one in evaluated(step.live, rules):
        if one.condition not in _OURS:
            yield make(reported, one.condition, one.status, one.reason, one.message)


# The work as a whole


def _is_stale(one: Condition, view: View) -> bool:
    """Say whether a condition is of a rule that was removed, or of a deletion that is over."""
    aggregated = one.get("reason") == AGGREGATED and one.get("observedGeneration") != view.generation
    return one["type"] == "Deleting" or (aggregated and one["type"] not in _named(view))


def _named(view: View) -> frozenset[str]:
    """Return the conditions that the manifests have rules for."""
    return frozenset(rule.condition for manifest in view.manifests for rule in manifest.config.rules)


def _work_conditions(
    view: View, steps: Sequence[ManifestStep], entries: Sequence[Made], make: _Maker
) -> Iterator[Condition]:
    reported: Sequence[Condition] = view.status.get("conditions") or ()
    each = [{one["type"]: one for one in entry["conditions"]} for entry in entries]
    is_applied = all(one["Applied"]["status"] == "True" for one in each)
    yield make(reported, "Applied", *(_WORK_APPLIED if is_applied else _WORK_FAILED))
    yield make(reported, "Available", *_availability([one["Available"]["status"] for one in each]))
    ruled: dict[str, list[tuple[ManifestStep, Condition]]] = {}
    for step, those in zip(steps, each, strict=True):
        for name, one in those.items():
            if name not in _OURS:
                ruled.setdefault(name, []).append((step, one))
    if is_applied:
        for name, ones in ruled.items():
            yield make(reported, name, *_aggregated(name, ones))
    named = () if is_applied else _named(view)
    for name, what in _built_in(steps, each):
        if name not in ruled and name not in named:
            yield make(reported, name, *what)


def _availability(answers: Sequence[str]) -> tuple[str, str, str]:
    missing, unknown = answers.count("False"), answers.count("Unknown")
    if missing:
        message = f"{missing} of {len(answers)} resources are not available"
        return "False", "ResourcesNotAvailable", message
    if unknown or not answers:
        message = f"{unknown} of {len(answers)} resources have unknown status"
        return "Unknown", "ResourcesStatusUnknown", message
    return "True", "ResourcesAvailable", "All resources are available"


def _aggregated(name: str, ones: Sequence[tuple[ManifestStep, Condition]]) -> tuple[str, str, str]:
    order = ("True", "Unknown", "False") if name in _ONE_IS_ENOUGH else ("False", "Unknown", "True")
    decides = next(answer for answer in order if any(one["status"] == answer for _, one in ones))
    those = [(step, one) for step, one in ones if one["status"] == decides]
    if len(those) == len(ones) > 1:
        how = {"True": "are", "False": "are not", "Unknown": "may be"}[decides]
        return decides, AGGREGATED, f"All {len(ones)} manifests {how} {name}"
    shown = "; ".join(f"{step.manifest}: {one.get('message')}" for step, one in those[:3])
    more = f"; {len(those) - 3} more" if len(those) > 3 else ""
    return decides, AGGREGATED, f"{shown}{more}"


_SETTLING = (
    GroupKind("apps", "Deployment"),
    GroupKind("apps", "StatefulSet"),
    GroupKind("apps", "DaemonSet"),
    GroupKind("batch", "Job"),
)
"""The kinds whose objects a work waits for; what else it has is settled once it is available."""


def _built_in(
    steps: Sequence[ManifestStep], each: Sequence[dict[str, Condition]]
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield Progressing and Degraded of a work without rules for them."""
    waiting: list[str] = []
    failed: list[str] = []
    for step, reported in zip(steps, each, strict=True):
        for name, word in (("Applied", "applied"), ("Available", "available")):
            if reported[name]["status"] != "True" and not step.is_kept:
                waiting.append(f"{step.manifest} is not {word}")
                break
        else:
            if step.live is not None and step.manifest.config.strategy.type != "ReadOnly":
                how = health(step.live) if step.manifest.group_kind in _SETTLING else SETTLED
                waiting += [f"{step.manifest}: {how.waiting}"] if how.waiting else []
                failed += [f"{step.manifest}: {how.failed}"] if how.failed else []
    reason = "Applying" if waiting else "Completed"
    if waiting:
        yield "Progressing", ("True", reason, "; ".join(waiting[:3]))
    else:
        yield "Progressing", ("False", reason, "All manifests are applied, available and settled")
    if failed:
        yield "Degraded", ("True", "Failed", "; ".join(failed[:3]))
    else:
        yield "Degraded", ("False", reason, "No object of a known kind has failed")
