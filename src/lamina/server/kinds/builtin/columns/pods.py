"""
The table row of a pod, and its status.

The status is the phase, unless there is more specific information: the reason why a
container waits or terminated, the progress of init containers, or termination.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lamina.objects.times import moment
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns.cells import NONE, age, is_deleting, is_true, name_of
from lamina.server.kinds.builtin.validate.parts import count, items, part, text
from lamina.server.kinds.columns import human_duration


def pod(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    states = _ContainerStates(obj)
    addresses = items(status, "podIPs")
    return [
        name_of(obj),
        f"{states.ready}/{states.total}",
        states.word,
        _restarts(states, now),
        age(obj, now),
        (text(addresses[0], "ip") if addresses else "") or NONE,
        text(spec, "nodeName") or NONE,
        text(status, "nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _restarts(states: _ContainerStates, now: datetime) -> str:
    if not states.restarts or states.last is None:
        return str(states.restarts)
    return f"{states.restarts} ({human_duration((now - states.last).total_seconds())} ago)"


def _gates(spec: Obj, status: Obj) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    conditions = items(status, "conditions")
    passed = sum(is_true(conditions, text(gate, "conditionType")) for gate in gates)
    return f"{passed}/{len(gates)}"


class _ContainerStates:
    """Readiness, restarts and status of a pod's containers."""

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
        done = self._init_containers(items(status, "initContainerStatuses"), len(initial))
        if done or is_true(conditions, "Initialized"):
            self._containers(status)
        if is_deleting(obj):
            if text(status, "reason") == "NodeLost":
                self.word = "Unknown"
            elif phase not in {"Succeeded", "Failed"}:
                self.word = "Terminating"

    def _init_containers(self, statuses: Any, total: int) -> bool:
        """Evaluate the init containers; return whether initialization is done."""
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
                self.word = f"Init:{_termination_reason(ended)}"
            elif waiting and waiting != "PodInitializing":
                self.word = f"Init:{waiting}"
            else:
                self.word = f"Init:{index}/{total}"
            return False
        return True

    def _containers(self, status: Obj) -> None:
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
                self.word = _termination_reason(ended)
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


def _termination_reason(ended: Obj) -> str:
    if reason := text(ended, "reason"):
        return reason
    if signal := count(ended, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{count(ended, 'exitCode')}"
