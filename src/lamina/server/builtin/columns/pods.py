"""
The row of a pod, and what its status is in a word.

The word is the phase, unless something more telling is known: what a
container waits for or ended with, how far initialisation has come, or that
the pod is on its way out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lamina.objects.times import moment
from lamina.objects.types import Obj
from lamina.server.builtin.columns.words import (
    NONE,
    age,
    count,
    is_deleting,
    is_true,
    items,
    name_of,
    part,
    text,
)
from lamina.server.tables import human_duration


def pod(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    told = _Telling(obj)
    addresses = items(status, "podIPs")
    return [
        name_of(obj),
        f"{told.ready}/{told.total}",
        told.word,
        _restarts(told, now),
        age(obj, now),
        (text(addresses[0], "ip") if addresses else "") or NONE,
        text(spec, "nodeName") or NONE,
        text(status, "nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _restarts(told: _Telling, now: datetime) -> str:
    if not told.restarts or told.last is None:
        return str(told.restarts)
    return f"{told.restarts} ({human_duration((now - told.last).total_seconds())} ago)"


def _gates(spec: Obj, status: Obj) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    conditions = items(status, "conditions")
    passed = sum(is_true(conditions, text(gate, "conditionType")) for gate in gates)
    return f"{passed}/{len(gates)}"


class _Telling:
    """What there is to tell of a pod's containers."""

    def __init__(self, obj: Obj) -> None:
        spec, status = part(obj, "spec"), part(obj, "status")
        initial = items(spec, "initContainers")
        self._sidecars = {text(one, "name") for one in initial if text(one, "restartPolicy") == "Always"}
        self.total = len(items(spec, "containers")) + sum(
            text(one, "restartPolicy") == "Always" for one in initial
        )
        self.ready = 0
        self.restarts = 0
        self.last: datetime | None = None
        phase = text(status, "phase")
        self.word = text(status, "reason") or phase
        conditions = items(status, "conditions")
        if any(
            text(one, "type") == "PodScheduled" and text(one, "reason") == "SchedulingGated"
            for one in conditions
        ):
            self.word = "SchedulingGated"
        done = self._initial(items(status, "initContainerStatuses"), len(initial))
        if done or is_true(conditions, "Initialized"):
            self._regular(status)
        if is_deleting(obj):
            if text(status, "reason") == "NodeLost":
                self.word = "Unknown"
            elif phase not in {"Succeeded", "Failed"}:
                self.word = "Terminating"

    def _initial(self, statuses: Any, total: int) -> bool:
        """Follow initialisation as far as it has come, and say whether it is done."""
        for index, one in enumerate(statuses):
            self._count(one)
            state = part(one, "state")
            ended = state.get("terminated")
            sidecar = text(one, "name") in self._sidecars
            if ended is not None and count(ended, "exitCode") == 0:
                continue
            if sidecar and one.get("started"):
                self.ready += bool(one.get("ready"))
                continue
            waiting = text(part(state, "waiting"), "reason")
            if ended is not None:
                self.word = f"Init:{_ending(ended)}"
            elif waiting and waiting != "PodInitializing":
                self.word = f"Init:{waiting}"
            else:
                self.word = f"Init:{index}/{total}"
            return False
        return True

    def _regular(self, status: Obj) -> None:
        self.restarts, self.last = 0, None
        for one in items(status, "initContainerStatuses"):
            if text(one, "name") in self._sidecars:
                self._count(one)
        running, failure = False, ""
        for one in reversed(items(status, "containerStatuses")):
            self._count(one)
            state = part(one, "state")
            waiting, ended = text(part(state, "waiting"), "reason"), state.get("terminated")
            if waiting:
                self.word = waiting
            elif ended is not None:
                self.word = _ending(ended)
                if count(ended, "exitCode"):
                    failure = self.word
            elif one.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.word == "Completed":
            if running and is_true(items(status, "conditions"), "Ready"):
                self.word = "Running"
            elif failure or running:
                self.word = failure or "NotReady"

    def _count(self, one: Obj) -> None:
        self.restarts += count(one, "restartCount")
        ended = part(part(one, "lastState"), "terminated")
        when = moment(ended.get("finishedAt"))
        if when is not None and (self.last is None or self.last < when):
            self.last = when


def _ending(ended: Obj) -> str:
    if reason := text(ended, "reason"):
        return reason
    if signal := count(ended, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{count(ended, 'exitCode')}"
