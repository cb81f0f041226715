"""The lifecycle of one object in memory: stages planned and executed on a dict, with a clock that moves to the next."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lamina.actors.stages import Stage
from lamina.actors.stages.controller import View, plan
from lamina.control_plane.load_stages import load_stages
from lamina.core.model.plan import Delete, Emit, Patch
from lamina.core.model.queries import Answers
from lamina.objects import conditions, meta
from lamina.objects.times import stamp
from lamina.objects.types import GroupKind, Made, Obj

START = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULTS = load_stages()
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "sim-0"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "172.18.0.2"}],
    },
}


def container(image: str = "nginx:1", name: str = "c", **more: Any) -> Made:
    return {"name": name, "image": image, "resources": {}, **more}


def pod(
    *containers: Made,
    uid: str = "uid-1",
    annotations: Mapping[str, str] | None = None,
    policy: str = "Always",
    **spec: Any,
) -> Made:
    """Return a pod that has just been given its node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": uid,
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": stamp(START),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "nodeName": "sim-0",
            "restartPolicy": policy,
            "containers": list(containers) or [container()],
            **spec,
        },
        "status": {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(START)}],
        },
    }


@dataclass
class Life:
    """What becomes of one object."""

    obj: Made
    stages: tuple[Stage, ...] = DEFAULTS
    node: Obj = field(default_factory=lambda: NODE)
    now: datetime = START
    events: list[tuple[str, str]] = field(default_factory=list)
    writes: int = 0
    ended: bool = False

    def step(self) -> timedelta | None:
        """Do what is due now, and return how long until there is more."""
        ours = tuple(one for one in self.stages if one.kind == GroupKind("", self.obj["kind"]))
        runs = self.obj["kind"] == "Pod" and any(one.selector.containers is not None for one in ours)
        view = View(obj=deepcopy(self.obj), stages=ours, node=self.node, runs=runs)
        planned = plan(view, Answers(), self.now)
        assert view.obj == self.obj, "planning changes nothing"
        for action in planned.actions:
            match action:
                case Patch(patch=patch):
                    self.obj = _merged(self.obj, patch)
                    self.obj["metadata"]["resourceVersion"] = str(int(meta.resource_version(self.obj)) + 1)
                    self.writes += 1
                case Emit(event=event):
                    self.events.append((event["reason"], event["message"]))
                case Delete(grace=0):
                    self.ended = not meta.finalizers(self.obj)
                    self.obj["metadata"]["deletionGracePeriodSeconds"] = 0
                case _:
                    raise AssertionError(f"a stage does not {action}")
        return planned.requeue_after

    def pass_time(self, seconds: float) -> "Life":
        """Wind the clock, stopping wherever something is due; what was done leaves nothing else to do."""
        until = self.now + timedelta(seconds=seconds)
        for _ in range(1000):
            again = self.step()
            assert again is None or again > timedelta(0)
            if self.ended or again is None or self.now + again > until:
                self.now = until
                return self
            self.now += again
        raise AssertionError("it never comes to rest")

    def delete(self, grace: int = 30) -> None:
        """Ask for its end."""
        self.obj["metadata"]["deletionTimestamp"] = stamp(self.now + timedelta(seconds=grace))
        self.obj["metadata"]["deletionGracePeriodSeconds"] = grace

    @property
    def phase(self) -> str:
        return str(self.obj["status"]["phase"])

    @property
    def is_ready(self) -> bool:
        return conditions.is_true(self.obj["status"]["conditions"], "Ready")

    def condition(self, kind: str) -> tuple[str, str, str]:
        found = conditions.find(self.obj["status"]["conditions"], kind)
        assert found is not None
        return found["status"], found.get("reason", ""), found.get("message", "")

    def status(self, name: str = "c") -> Made:
        """Return the status of one container."""
        listed = (
            self.obj["status"].get(field) or () for field in ("initContainerStatuses", "containerStatuses")
        )
        return next(one for statuses in listed for one in statuses if one["name"] == name)

    def state(self, name: str = "c") -> str:
        """Return what a container is doing, and why it waits or how it ended."""
        ((what, more),) = self.status(name)["state"].items()
        return f"{what} {more['reason']}" if more.get("reason") else what


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    new = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merged(new.get(key), value)
    return new
