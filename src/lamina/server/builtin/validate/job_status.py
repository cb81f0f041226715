"""What a Job's status may say, and what it may not take back."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects.conditions import is_true
from lamina.objects.times import moment
from lamina.objects.types import Obj
from lamina.server.builtin.validate.indexes import indexed, overlap
from lamina.server.builtin.validate.parts import count, items, omitted, part, text
from lamina.server.fields import IMMUTABLE, duplicate, invalid, not_negative, required


def job_status(new: Obj, old: Obj) -> list[Cause]:
    status, before, spec = part(new, "status"), part(old, "status"), part(new, "spec")
    said: list[Cause] = []
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        said += not_negative(f"status.{field}", status.get(field))
    said += _uncounted(part(status, "uncountedTerminatedPods"))
    conditions, were = items(status, "conditions"), items(before, "conditions")
    complete, failed, target, met = (
        is_true(conditions, kind) for kind in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    )
    where = "status.conditions"
    for wrong, told in (
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
        if wrong:
            said.append(omitted(where, told))
    said += _times(status, before, complete=complete, finished=complete or failed, spec=spec)
    if complete or failed:
        said += _finished(status)
    if status.get("ready") is not None and count(status, "ready") > count(status, "active"):
        said.append(invalid("status.ready", count(status, "ready"), "cannot set more ready pods than active"))
    said += _indexes(status, spec)
    said += (
        omitted(where, f"cannot disable the terminal {kind}=True condition")
        for kind in ("Failed", "Complete", "FailureTarget")
        if is_true(were, kind) and not is_true(conditions, kind)
    )
    for field in ("failed", "succeeded"):
        if count(status, field) < count(before, field):
            told = f"cannot decrease the {field} counter"
            said.append(invalid(f"status.{field}", count(status, field), told))
    if is_true(were, "SuccessCriteriaMet") and not met:
        said.append(omitted(where, "cannot disable the SuccessCriteriaMet=True condition"))
    return said


def _uncounted(pods: Obj) -> list[Cause]:
    said: list[Cause] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(items(pods, field)):
            here = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                said.append(invalid(here, uid, "must not be empty"))
            elif uid in seen:
                said.append(duplicate(here, uid))
            seen.add(uid)
    return said


def _times(status: Obj, before: Obj, *, complete: bool, finished: bool, spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    started, completed = status.get("startTime"), status.get("completionTime")
    here = "status.completionTime"
    if completed is not None and not complete:
        said.append(
            invalid(here, completed, "cannot set completionTime when there is no Complete=True condition")
        )
    if completed is None and complete:
        said.append(required(here, "completionTime is required for Complete jobs"))
    start, end = moment(started), moment(completed)
    if start and end and end < start:
        said.append(invalid(here, completed, "must be equal to or after `startTime`"))
    never_ran = spec.get("suspend") and spec.get("completions") == 0
    if started is None and finished and not never_ran:
        said.append(required("status.startTime", "startTime is required for finished job"))
    was = before.get("completionTime")
    if completed is not None and was is not None and completed != was:
        said.append(invalid(here, completed, IMMUTABLE))
    had = before.get("startTime")
    is_resumed = is_true(items(before, "conditions"), "Suspended") and not is_true(
        items(status, "conditions"), "Suspended"
    )
    if had is not None and had != started and not spec.get("suspend") and not is_resumed:
        said.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    return said


def _finished(status: Obj) -> list[Cause]:
    said: list[Cause] = []
    for field in ("active", "terminating"):
        if count(status, field) > 0:
            said.append(invalid(f"status.{field}", status[field], f"{field}>0 is invalid for finished job"))
    pods = part(status, "uncountedTerminatedPods")
    if items(pods, "failed") or items(pods, "succeeded"):
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        said.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return said


def _indexes(status: Obj, spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    completions = spec.get("completions")
    done, failed = text(status, "completedIndexes"), status.get("failedIndexes")
    if completions is not None and (wrong := indexed(done, completions)[1]):
        said.append(invalid("status.completedIndexes", done, f"error parsing completedIndexes: {wrong}"))
    if failed is not None and completions is not None and spec.get("backoffLimitPerIndex") is not None:
        if wrong := indexed(failed, completions)[1]:
            said.append(invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {wrong}"))
        elif (index := overlap(done, failed, completions)) is not None:
            told = f"failedIndexes and completedIndexes overlap at index: {index}"
            said.append(invalid("status.failedIndexes", failed, told))
    if done and spec.get("completionMode") != "Indexed":
        told = "cannot set non-empty completedIndexes when non-indexed completion mode"
        said.append(invalid("status.completedIndexes", done, told))
    if failed is not None and spec.get("backoffLimitPerIndex") is None:
        told = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        said.append(invalid("status.failedIndexes", failed, told))
    return said
