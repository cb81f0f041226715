"""The status of a Job, and which changes of it are allowed."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects.conditions import is_true
from lamina.objects.index_set import checked_count, overlap
from lamina.objects.times import moment
from lamina.objects.types import Obj
from lamina.server.field_errors import IMMUTABLE, duplicate, invalid, not_negative, required
from lamina.server.kinds.builtin.validate.parts import count, items, omitted, part, text


def job_status(new: Obj, old: Obj) -> list[Cause]:
    status, before, spec = part(new, "status"), part(old, "status"), part(new, "spec")
    causes: list[Cause] = []
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        causes += not_negative(f"status.{field}", status.get(field))
    causes += _uncounted(part(status, "uncountedTerminatedPods"))
    conditions, were = items(status, "conditions"), items(before, "conditions")
    complete, failed, target, met = (
        is_true(conditions, kind) for kind in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    )
    where = "status.conditions"
    for problem, detail in (
        (complete and failed, "cannot set Complete=True and Failed=true conditions"),
        (complete and target, "cannot set Complete=True and FailureTarget=true conditions"),
        (failed and not target, "cannot set Failed=True condition without the FailureTarget=true condition"),
        (
            complete and not met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (met and failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (met and target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    ):
        if problem:
            causes.append(omitted(where, detail))
    causes += _times(status, before, complete=complete, finished=complete or failed, spec=spec)
    if complete or failed:
        causes += _finished(status)
    if status.get("ready") is not None and count(status, "ready") > count(status, "active"):
        causes.append(
            invalid("status.ready", count(status, "ready"), "cannot set more ready pods than active")
        )
    causes += _indexes(status, spec)
    causes += (
        omitted(where, f"cannot disable the terminal {kind}=True condition")
        for kind in ("Failed", "Complete", "FailureTarget")
        if is_true(were, kind) and not is_true(conditions, kind)
    )
    for field in ("failed", "succeeded"):
        if count(status, field) < count(before, field):
            detail = f"cannot decrease the {field} counter"
            causes.append(invalid(f"status.{field}", count(status, field), detail))
    if is_true(were, "SuccessCriteriaMet") and not met:
        causes.append(omitted(where, "cannot disable the SuccessCriteriaMet=True condition"))
    return causes


def _uncounted(pods: Obj) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(items(pods, field)):
            item_path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                causes.append(invalid(item_path, uid, "must not be empty"))
            elif uid in seen:
                causes.append(duplicate(item_path, uid))
            seen.add(uid)
    return causes


def _times(status: Obj, before: Obj, *, complete: bool, finished: bool, spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    started, completed = status.get("startTime"), status.get("completionTime")
    item_path = "status.completionTime"
    if completed is not None and not complete:
        causes.append(
            invalid(
                item_path, completed, "cannot set completionTime when there is no Complete=True condition"
            )
        )
    if completed is None and complete:
        causes.append(required(item_path, "completionTime is required for Complete jobs"))
    start, end = moment(started), moment(completed)
    if start and end and end < start:
        causes.append(invalid(item_path, completed, "must be equal to or after `startTime`"))
    never_ran = spec.get("suspend") and spec.get("completions") == 0
    if started is None and finished and not never_ran:
        causes.append(required("status.startTime", "startTime is required for finished job"))
    was = before.get("completionTime")
    if completed is not None and was is not None and completed != was:
        causes.append(invalid(item_path, completed, IMMUTABLE))
    had = before.get("startTime")
    is_resumed = is_true(items(before, "conditions"), "Suspended") and not is_true(
        items(status, "conditions"), "Suspended"
    )
    if had is not None and had != started and not spec.get("suspend") and not is_resumed:
        causes.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    return causes


def _finished(status: Obj) -> list[Cause]:
    causes: list[Cause] = []
    for field in ("active", "terminating"):
        if count(status, field) > 0:
            causes.append(invalid(f"status.{field}", status[field], f"{field}>0 is invalid for finished job"))
    pods = part(status, "uncountedTerminatedPods")
    if items(pods, "failed") or items(pods, "succeeded"):
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        causes.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return causes


def _indexes(status: Obj, spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    completions = spec.get("completions")
    done, failed = text(status, "completedIndexes"), status.get("failedIndexes")
    if completions is not None and (problem := checked_count(done, completions)[1]):
        causes.append(invalid("status.completedIndexes", done, f"error parsing completedIndexes: {problem}"))
    if failed is not None and completions is not None and spec.get("backoffLimitPerIndex") is not None:
        if problem := checked_count(failed, completions)[1]:
            causes.append(invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {problem}"))
        elif (index := overlap(done, failed, completions)) is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {index}"
            causes.append(invalid("status.failedIndexes", failed, detail))
    if done and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        causes.append(invalid("status.completedIndexes", done, detail))
    if failed is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        causes.append(invalid("status.failedIndexes", failed, detail))
    return causes
