"""CronJobs."""

from __future__ import annotations

import re
import zoneinfo

from lamina.errors import Cause
from lamina.objects.cron import BadSchedule, parse
from lamina.objects.types import Obj
from lamina.server.field_errors import invalid, not_negative, not_supported, required
from lamina.server.kinds.builtin.validate.jobs import job_spec
from lamina.server.kinds.builtin.validate.parts import part, supported, text


def cron_job(obj: Obj) -> list[Cause]:
    causes = _cron_spec(part(obj, "spec"), None)
    name = text(part(obj, "metadata"), "name")
    if len(name) > 52:
        causes.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return causes


def cron_job_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return [] if subresource == "status" else _cron_spec(part(new, "spec"), part(old, "spec"))


def _cron_spec(spec: Obj, before: Obj | None) -> list[Cause]:
    causes: list[Cause] = []
    schedule, zone = text(spec, "schedule"), spec.get("timeZone")
    if not schedule:
        causes.append(required("spec.schedule"))
    else:
        try:
            parse(schedule)
        except BadSchedule as problem:
            causes.append(invalid("spec.schedule", schedule, str(problem)))
        had_zone = before is not None and "TZ" in text(before, "schedule")
        if "TZ" in schedule and not had_zone:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            causes.append(invalid("spec.schedule", schedule, detail))
        elif "TZ" in schedule and zone is not None:
            detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            causes.append(invalid("spec.schedule", schedule, detail))
    causes += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None and (before is None or before.get("timeZone") != zone):
        causes += _time_zone(zone)
    policy = text(spec, "concurrencyPolicy")
    causes += (
        supported("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace"))
        if policy
        else [required("spec.concurrencyPolicy")]
    )
    made = part(part(spec, "jobTemplate"), "spec")
    causes += job_spec(made, "spec.jobTemplate.spec")
    if (selector := made.get("selector")) is not None:
        detail = "`selector` will be auto-generated"
        causes.append(invalid("spec.jobTemplate.spec.selector", dict(selector), detail))
    if made.get("manualSelector"):
        causes.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        causes += not_negative(f"spec.{field}", spec.get(field))
    return causes


def _time_zone(zone: str) -> list[Cause]:
    path = "spec.timeZone"
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = invalid(path, zone, f"unknown time zone {zone}")
    for one in zone.split("/"):
        if one in {".", ".."} or one.startswith("-") or not re.fullmatch(r"[A-Za-z.\-_0-9+]{1,14}", one):
            return [unknown]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, detail)] if zone == "Local" else [invalid(path, zone, detail), unknown]
    return [] if zone in zoneinfo.available_timezones() else [unknown]
