"""
What a job's own rules say about pods that failed, and about when enough have succeeded.

Nothing here counts anything: a rule that matches gives its verdict, and the
first one that matches counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from lamina.actors.workloads import job_indexes
from lamina.objects import meta
from lamina.objects.types import Condition, Obj


class Verdict(StrEnum):
    """What becomes of a job, or of its count of failures, when a pod fails."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


class Judged(Struct, frozen=True):
    """A verdict, and for one that ends the job the sentence that says why."""

    verdict: Verdict
    because: str = ""

    @property
    def counts(self) -> bool:
        return self.verdict is not Verdict.IGNORE


_COUNTED = Judged(Verdict.COUNT)


def judge(job: Obj, pod: Obj) -> Judged:
    """Return what a job's failure policy says about a pod that failed; without a policy it counts."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for place, rule in enumerate(rules):
        because = _match(rule, pod)
        if because is None:
            continue
        verdict = Verdict(rule["action"])
        if verdict is not Verdict.FAIL_JOB:
            return Judged(verdict)
        return Judged(verdict, f"{because} matching {verdict} rule at index {place}")
    return _COUNTED


def _match(rule: Obj, pod: Obj) -> str | None:
    """Return what a rule found on a pod, in words, or None if it found nothing."""
    where = f"{meta.namespace(pod)}/{meta.name(pod)}"
    status: Obj = pod.get("status") or {}
    if rule.get("onExitCodes"):
        for container, code in _exits(status):
            if _is_code(rule["onExitCodes"], container, code):
                return f"Container {container} for pod {where} failed with exit code {code}"
        return None
    conditions: Iterable[Condition] = status.get("conditions") or ()
    for condition in conditions:
        for pattern in rule.get("onPodConditions") or ():
            if (condition["type"], condition["status"]) == (pattern["type"], pattern.get("status", "True")):
                return f"Pod {where} has condition {condition['type']}"
    return None


def _exits(status: Obj) -> Iterator[tuple[str, int]]:
    """Yield the containers that ended badly, and how."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or ():
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if code:
                yield container["name"], code


def _is_code(requirement: Obj, container: str, code: int) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    listed: bool = code in requirement["values"]
    wanted: bool = requirement["operator"] == "In"
    return listed == wanted


def enough(job: Obj, succeeded: Collection[int]) -> str | None:
    """Return why a job has succeeded before all its indexes have, in words, or None if it has not."""
    completions = job["spec"].get("completions") or 0
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or ()
    if not succeeded:
        return None
    for place, rule in enumerate(rules):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes") is None:
            met = count is not None and len(succeeded) >= count
        else:
            wanted = job_indexes.read(rule["succeededIndexes"], completions)
            reached = len(wanted.intersection(succeeded))
            met = bool(wanted) and (reached == len(wanted) or (count is not None and reached >= count))
        if met:
            return f"Matched rules at index {place}"
    return None
