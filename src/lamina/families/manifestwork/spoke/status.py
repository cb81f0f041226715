"""
What is said of a work, and of each of its manifests.

    Applied        whether what it asks for is what is there
    Available      whether everything it means exists; that says nothing about how it does
    feedback       the values that somebody asked for
    rules          the conditions that somebody wrote rules for, and of them all what the work is:
                   Progressing and Degraded if one is, anything else only if all are
    Progressing,   where no rule says so: on its way until everything is applied, there and settled;
    Degraded       degraded if something that is known has failed

Nothing is said of a generation before it is applied: rules would judge what an older one
left there. A work is spoken of once there is something to say of all its manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from lamina.families.manifestwork.spoke.deeds import Deed, Outcome
from lamina.families.manifestwork.spoke.feedback import feedback
from lamina.families.manifestwork.spoke.health import health
from lamina.families.manifestwork.spoke.rules import REASONS, judged
from lamina.families.manifestwork.spoke.said import condition, find_at, resource_meta
from lamina.families.manifestwork.spoke.view import View
from lamina.objects import conditions
from lamina.objects.types import Condition, Made, Obj, Ref

AGGREGATED = "ConditionRulesAggregated"
_ONE_IS_ENOUGH = frozenset(("Progressing", "Degraded"))
_OURS = frozenset(("Applied", "Available", "StatusFeedbackSynced"))


def status(view: View, deeds: Sequence[Deed], now: datetime) -> Made | None:
    """Return what is to be said of a work now, or nothing while there is nothing to say of some manifest."""
    entries: list[Made] = []
    for deed in deeds:
        entry = _entry(view, deed, now)
        if entry is None:
            return None
        entries.append(entry)
    said: Sequence[Condition] = view.status.get("conditions") or ()
    made = {one["type"]: one for one in _work_conditions(view, deeds, entries, now)}
    kept = [made.pop(one["type"], one) for one in said if one["type"] in made or not _is_stale(one, view)]
    return {
        **view.status,
        "conditions": [*kept, *made.values()],
        "resourceStatus": {"manifests": entries},
    }


def refused(view: View, why: Mapping[Ref, str], now: datetime) -> Made:
    """Return what is said of a work when manifests were refused: those of these places on the cluster, and why."""
    entries = []
    for manifest in view.manifests:
        entry = {**view.said.entry(manifest), "resourceMeta": resource_meta(manifest)}
        if manifest.ref in why:
            said = view.said.conditions(manifest)
            message = f"Failed to apply manifest: {why[manifest.ref]}"
            failed = _applied(said, "False", "AppliedManifestFailed", message, view, now)
            entry["conditions"] = [failed, *(one for one in said if one["type"] != "Applied")]
        if entry.get("conditions"):
            entries.append(entry)
    said = view.status.get("conditions") or ()
    failed = _applied(said, "False", "AppliedManifestWorkFailed", "Failed to apply manifest work", view, now)
    rest = [failed if one["type"] == "Applied" else one for one in said]
    return {
        **view.status,
        "conditions": rest if failed in rest else [failed, *rest],
        "resourceStatus": {"manifests": entries},
    }


def _applied(
    said: Sequence[Condition], status: str, reason: str, message: str, view: View, now: datetime
) -> Condition:
    return condition(
        said, "Applied", status, reason, message, now=now, generation=view.generation, restarts=True
    )


# One manifest


def _entry(view: View, deed: Deed, now: datetime) -> Made | None:
    """Return what is said of one manifest, or nothing while nobody knows what became of it."""
    before = view.said.entry(deed.manifest)
    said: Sequence[Condition] = before.get("conditions") or ()
    applied = _outcome(view, deed, said, now)
    if applied is None:
        return None
    made: Made = {"resourceMeta": resource_meta(deed.manifest)}
    available = _available(view, deed, said, now)
    told = [applied, available]
    if deed.there is not None:
        values, synced = _feedback(view, deed, before, now)
        told.append(synced)
        if values:
            made["statusFeedback"] = {"values": values}
    else:
        # What was told of it last may still be of use, and nothing newer is known.
        told += [one for one in said if one["type"] == "StatusFeedbackSynced"]
        if before.get("statusFeedback"):
            made["statusFeedback"] = before["statusFeedback"]
    made["conditions"] = [*told, *_rule_conditions(view, deed, said, applied, now)]
    return made


def _outcome(view: View, deed: Deed, said: Sequence[Condition], now: datetime) -> Condition | None:
    match deed.outcome:
        case Outcome.DONE:
            return _applied(said, "True", "AppliedManifestComplete", "Apply manifest complete", view, now)
        case Outcome.FAILED:
            wrong = "AppliedManifestSSAIgnoreFieldError" if deed.is_ignore_error else "AppliedManifestFailed"
            return _applied(said, "False", wrong, f"Failed to apply manifest: {deed.message}", view, now)
        case Outcome.WRITE:
            # Not known before it is tried, but it may have been tried before.
            return find_at(said, "Applied", view.generation)


def _available(view: View, deed: Deed, said: Sequence[Condition], now: datetime) -> Condition:
    if deed.manifest.kind is None or not deed.manifest.name:
        what = "Unknown", "IncompleteResourceMeta", "Resource meta is incompleted"
    elif deed.seen.unknown:
        what = "Unknown", "FetchingResourceFailed", f"Failed to fetch resource: {deed.seen.unknown}"
    elif deed.there is None:
        what = "False", "ResourceNotAvailable", "Resource is not available"
    else:
        what = "True", "ResourceAvailable", "Resource is available"
    return condition(said, "Available", *what, now=now, generation=view.generation)


def _feedback(view: View, deed: Deed, before: Obj, now: datetime) -> tuple[list[Made], Condition]:
    assert deed.there is not None
    options, rules = view.agent.options, deed.manifest.config.feedback
    found = feedback(deed.there, rules, raw=options.raw_feedback, longest=options.raw_length)
    if not rules:
        what = "True", "NoStatusFeedbackSynced", ""
    elif found.wrong:
        message = f"Sync status feedback failed with error {'; '.join(found.wrong)}"
        what = "False", "StatusFeedbackSyncFailed", message
    else:
        what = "True", "StatusFeedbackSynced", ""
    values = [dict(one) for one in found.values]
    said: Sequence[Condition] = before.get("conditions") or ()
    if values != ((before.get("statusFeedback") or {}).get("values") or []):
        # When the values changed is what people want to know of this condition.
        said = conditions.without_condition(said, "StatusFeedbackSynced")
    return values, condition(said, "StatusFeedbackSynced", *what, now=now, generation=view.generation)


def _rule_conditions(
    view: View, deed: Deed, said: Sequence[Condition], applied: Condition, now: datetime
) -> Iterator[Condition]:
    rules = deed.manifest.config.rules
    is_known = deed.there is not None and deed.outcome is Outcome.DONE and applied["status"] == "True"
    if not is_known:
        named = {rule.condition for rule in rules}
        yield from (one for one in said if one["type"] in named and one.get("reason") in REASONS)
        return
    assert deed.there is not None
    for one in judged(deed.there, rules):
        if one.condition not in _OURS:
            yield condition(
                said, one.condition, one.status, one.reason, one.message, now=now, generation=view.generation
            )


# The work as a whole


def _is_stale(one: Condition, view: View) -> bool:
    """Say whether a condition is of a rule that is there no more, or of an end that is not any more."""
    aggregated = one.get("reason") == AGGREGATED and one.get("observedGeneration") != view.generation
    return one["type"] == "Deleting" or (aggregated and one["type"] not in _named(view))


def _named(view: View) -> frozenset[str]:
    """Return the conditions that somebody wrote rules for."""
    return frozenset(rule.condition for manifest in view.manifests for rule in manifest.config.rules)


def _work_conditions(
    view: View, deeds: Sequence[Deed], entries: Sequence[Made], now: datetime
) -> Iterator[Condition]:
    said: Sequence[Condition] = view.status.get("conditions") or ()

    def told(name: str, status: str, reason: str, message: str) -> Condition:
        return condition(said, name, status, reason, message, now=now, generation=view.generation)

    each = [{one["type"]: one for one in entry["conditions"]} for entry in entries]
    is_applied = all(one["Applied"]["status"] == "True" for one in each)
    if is_applied:
        yield _applied(said, "True", "AppliedManifestWorkComplete", "Apply manifest work complete", view, now)
    else:
        yield _applied(said, "False", "AppliedManifestWorkFailed", "Failed to apply manifest work", view, now)
    yield told("Available", *_availability([one["Available"]["status"] for one in each]))
    ruled: dict[str, list[tuple[Deed, Condition]]] = {}
    for deed, those in zip(deeds, each, strict=True):
        for name, one in those.items():
            if name not in _OURS:
                ruled.setdefault(name, []).append((deed, one))
    if is_applied:
        for name, ones in ruled.items():
            yield told(name, *_aggregated(name, ones))
    named = () if is_applied else _named(view)
    for name, what in _built_in(deeds, each):
        if name not in ruled and name not in named:
            yield told(name, *what)


def _availability(answers: Sequence[str]) -> tuple[str, str, str]:
    missing, unknown = answers.count("False"), answers.count("Unknown")
    if missing:
        message = f"{missing} of {len(answers)} resources are not available"
        return "False", "ResourcesNotAvailable", message
    if unknown or not answers:
        message = f"{unknown} of {len(answers)} resources have unknown status"
        return "Unknown", "ResourcesStatusUnknown", message
    return "True", "ResourcesAvailable", "All resources are available"


def _aggregated(name: str, ones: Sequence[tuple[Deed, Condition]]) -> tuple[str, str, str]:
    order = ("True", "Unknown", "False") if name in _ONE_IS_ENOUGH else ("False", "Unknown", "True")
    decides = next(answer for answer in order if any(one["status"] == answer for _, one in ones))
    those = [(deed, one) for deed, one in ones if one["status"] == decides]
    if len(those) == len(ones) > 1:
        how = {"True": "are", "False": "are not", "Unknown": "may be"}[decides]
        return decides, AGGREGATED, f"All {len(ones)} manifests {how} {name}"
    shown = "; ".join(f"{deed.manifest}: {one.get('message')}" for deed, one in those[:3])
    more = f"; {len(those) - 3} more" if len(those) > 3 else ""
    return decides, AGGREGATED, f"{shown}{more}"


def _built_in(
    deeds: Sequence[Deed], each: Sequence[dict[str, Condition]]
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield whether a work is progressing or degraded where nobody wrote a rule for that."""
    waiting: list[str] = []
    failed: list[str] = []
    for deed, said in zip(deeds, each, strict=True):
        for name, word in (("Applied", "applied"), ("Available", "available")):
            if said[name]["status"] != "True" and not deed.is_kept:
                waiting.append(f"{deed.manifest} is not {word}")
                break
        else:
            if deed.there is not None and deed.manifest.config.strategy.type != "ReadOnly":
                how = health(deed.there)
                waiting += [f"{deed.manifest}: {how.waiting}"] if how.waiting else []
                failed += [f"{deed.manifest}: {how.failed}"] if how.failed else []
    reason = "Applying" if waiting else "Completed"
    if waiting:
        yield "Progressing", ("True", reason, "; ".join(waiting[:3]))
    else:
        yield "Progressing", ("False", reason, "Everything is applied, available and settled")
    if failed:
        yield "Degraded", ("True", "Failed", "; ".join(failed[:3]))
    else:
        yield "Degraded", ("False", reason, "Nothing that is known of has failed")
