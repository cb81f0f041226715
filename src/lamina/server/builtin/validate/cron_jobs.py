"""CronJobs."""

from __future__ import annotations

import re
import zoneinfo

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.builtin.validate import cron
from lamina.server.builtin.validate.jobs import job_spec
from lamina.server.builtin.validate.parts import part, supported, text
from lamina.server.fields import invalid, not_negative, not_supported, required


def cron_job(obj: Obj) -> list[Cause]:
    said = _cron_spec(part(obj, "spec"), None)
    name = text(part(obj, "metadata"), "name")
    if len(name) > 52:
        said.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return said


def cron_job_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return [] if subresource == "status" else _cron_spec(part(new, "spec"), part(old, "spec"))


def _cron_spec(spec: Obj, before: Obj | None) -> list[Cause]:
    said: list[Cause] = []
    schedule, zone = text(spec, "schedule"), spec.get("timeZone")
    if not schedule:
        said.append(required("spec.schedule"))
    else:
        if wrong := cron.complaint(schedule):
            said.append(invalid("spec.schedule", schedule, wrong))
        had_zone = before is not None and "TZ" in text(before, "schedule")
        if "TZ" in schedule and not had_zone:
            told = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            said.append(invalid("spec.schedule", schedule, told))
        elif "TZ" in schedule and zone is not None:
            told = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            said.append(invalid("spec.schedule", schedule, told))
    said += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None and (before is None or before.get("timeZone") != zone):
        said += _time_zone(zone)
    policy = text(spec, "concurrencyPolicy")
    said += (
        supported("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace"))
        if policy
        else [required("spec.concurrencyPolicy")]
    )
    made = part(part(spec, "jobTemplate"), "spec")
    said += job_spec(made, "spec.jobTemplate.spec")
    if (selector := made.get("selector")) is not None:
        told = "`selector` will be auto-generated"
        said.append(invalid("spec.jobTemplate.spec.selector", dict(selector), told))
    if made.get("manualSelector"):
        said.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        said += not_negative(f"spec.{field}", spec.get(field))
    return said


def _time_zone(zone: str) -> list[Cause]:
    path = "spec.timeZone"
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = invalid(path, zone, f"unknown time zone {zone}")
    for one in zone.split("/"):
        if one in {".", ".."} or one.startswith("-") or not re.fullmatch(r"[A-Za-z.\-_0-9+]{1,14}", one):
            return [unknown]
    if zone.lower() == "local":
        told = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, told)] if zone == "Local" else [invalid(path, zone, told), unknown]
    return [] if zone in zoneinfo.available_timezones() else [unknown]
