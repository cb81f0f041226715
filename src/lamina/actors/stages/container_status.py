"""
The container statuses of a pod, as a kubelet maintains them.

A record is one container's status with what stages select by: its `spec`, whether
it is an `init` container or a `sidecar` (a restartable init container), whether it
is its `turn` to start, whether it `restarts` after it has terminated, whether its
image has `changed`, its `backoff`, what its image is `called` without a digest (a
digest may spell anything), and what is `said` in its spec: image, command and
arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj

LISTS = (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses"))

_FIRST, _MOST = 10, 300
_RECORD_FIELDS = ("spec", "init", "sidecar", "turn", "restarts", "changed", "backoff", "called", "said")


def records(pod: Obj) -> list[Made]:
    """Return a record for each container of a pod, in the order they start."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    waits_for_init = bool(spec.get("initContainers"))
    made: list[Made] = []
    turn = True
    for listed, reported in LISTS:
        known = {one["name"]: one for one in status.get(reported) or ()}
        for container in spec.get(listed) or ():
            init = listed == "initContainers"
            sidecar = init and container.get("restartPolicy") == "Always"
            one: Made = dict(known.get(container["name"]) or _unstarted(container, waits_for_init))
            one |= {"spec": container, "init": init, "sidecar": sidecar, "turn": turn}
            one["restarts"] = _restarts(pod, container, one, sidecar)
            one["changed"] = one.get("image") != container.get("image")
            one["backoff"] = _duration(min(_MOST, _FIRST * 2 ** min(10, max(0, one["restartCount"] - 1))))
            image = container.get("image") or ""
            one["called"] = image.partition("@")[0]
            one["said"] = " ".join((image, *_command_line(container)))
            made.append(one)
            if init:
                turn = turn and (bool(one.get("started")) if sidecar else _has_succeeded(one))
    return made


def statuses(pod: Obj, made: list[Made]) -> dict[str, list[Made]]:
    """Return the container statuses of records, by the field of the pod's status."""
    found: dict[str, list[Made]] = {}
    for record in made:
        found.setdefault(LISTS[0 if record["init"] else 1][1], []).append(status_of(record))
    return found


def status_of(record: Obj) -> Made:
    """Return the container status of a record."""
    return {field: value for field, value in record.items() if field not in _RECORD_FIELDS}


def changed_record(pod: Obj, record: Obj, changes: Mapping[str, Any]) -> Made:
    """Return a record after a change, with the fields that a kubelet fills in by itself."""
    new: Made = {**record, **changes}
    new = {field: value for field, value in new.items() if value is not None}
    state = dict(new.get("state") or {})
    began = "running" in state and state != record.get("state")
    if began:
        container = record["spec"]
        new["image"] = container.get("image") or ""
        new["imageID"] = _image_id(new["image"])
        new["containerID"] = _container_id(pod, container["name"], new["restartCount"])
        new |= _runtime_fields(container)
        if container.get("startupProbe"):
            new["started"] = False
    if ended := state.get("terminated"):
        filled = {
            "containerID": new.get("containerID"),
            "startedAt": (record.get("state") or {}).get("running", {}).get("startedAt"),
            "reason": "Completed" if not ended.get("exitCode") else "Error",
        }
        filled = {field: value for field, value in filled.items() if value is not None}
        new["state"] = {"terminated": {"exitCode": 0, **filled, **ended}}
    return new


def _command_line(container: Obj) -> Iterator[str]:
    yield from container.get("command") or ()
    yield from container.get("args") or ()


def _unstarted(container: Obj, waits_for_init: bool) -> Made:
    reason = "PodInitializing" if waits_for_init else "ContainerCreating"
    return {
        "name": container["name"],
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": container.get("image") or "",
        "imageID": "",
        "started": False,
    }


def _runtime_fields(container: Obj) -> Iterator[tuple[str, Any]]:
    resources = container.get("resources") or {}
    if resources.get("requests"):
        yield "allocatedResources", resources["requests"]
    yield "resources", resources
    mounts = container.get("volumeMounts")
    if mounts:
        yield "volumeMounts", [_mounted(one) for one in mounts]
    user = (container.get("securityContext") or {}).get("runAsUser") or 0
    yield "user", {"linux": {"uid": user, "gid": 0, "supplementalGroups": [0]}}


def _mounted(mount: Obj) -> Made:
    made: Made = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        made |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return made


def _image_id(image: str) -> str:
    name, _, mark = image.partition("@")
    if mark:
        return image
    head, _, last = name.rpartition("/")
    bare = last.partition(":")[0]
    return f"{head}/{bare}@sha256:{digest(image)}" if head else f"{bare}@sha256:{digest(image)}"


def _container_id(pod: Obj, name: str, run: int) -> str:
    return f"containerd://{digest([meta.uid(pod), name, run])}"


def _has_succeeded(record: Obj) -> bool:
    ended = (record.get("state") or {}).get("terminated")
    return ended is not None and not ended.get("exitCode")


def _restarts(pod: Obj, container: Obj, record: Obj, sidecar: bool) -> bool:
    ended = (record.get("state") or {}).get("terminated")
    if ended is None:
        return False
    policy = container.get("restartPolicy") or (pod.get("spec") or {}).get("restartPolicy") or "Always"
    if sidecar:
        return True
    if record["init"]:
        return policy != "Never" and bool(ended.get("exitCode"))
    return policy == "Always" or (policy == "OnFailure" and bool(ended.get("exitCode")))


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
