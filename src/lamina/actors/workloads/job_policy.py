"""
The pod failure policy and the success policy of a Job.

The first matching rule decides. This module does not count pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from lamina.objects import index_set, meta
from lamina.objects.types import Condition, Obj


class Action(StrEnum):
    """The action of a rule of the pod failure policy."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


class PolicyMatch(Struct, frozen=True):
    """The action for a failed pod and, for FailJob, the message."""

    action: Action
    because: str = ""

    @property
    def counts(self) -> bool:
        return self.action is not Action.IGNORE


_COUNTED = PolicyMatch(Action.COUNT)


def match_failure_policy(job: Obj, pod: Obj) -> PolicyMatch:
    """Return the action for a failed pod; without a policy it counts."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for place, rule in enumerate(rules):
        because = _match(rule, pod)
        if because is None:
            continue
        action = Action(rule["action"])
        if action is not Action.FAIL_JOB:
            return PolicyMatch(action)
        return PolicyMatch(action, f"{because} matching {action} rule at index {place}")
    return _COUNTED


def _match(rule: Obj, pod: Obj) -> str | None:
    """Return the message of a rule that matches a pod; None if it does not match."""
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
    """Yield the containers with a non-zero exit code."""
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


def matched_success_rule(job: Obj, succeeded: Collection[int]) -> str | None:
    """Return the message of a matching success rule; None if none matches."""
    completions = job["spec"].get("completions") or 0
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or ()
    if not succeeded:
        return None
    for place, rule in enumerate(rules):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes") is None:
            met = count is not None and len(succeeded) >= count
        else:
            wanted = index_set.parse(rule["succeededIndexes"], completions)
            reached = len(wanted.intersection(succeeded))
            met = bool(wanted) and (reached == len(wanted) or (count is not None and reached >= count))
        if met:
            return f"Matched rules at index {place}"
    return None
