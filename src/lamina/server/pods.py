"""What is done to a Pod beside changing it: bind it to a node, read its log."""

from __future__ import annotations

import orjson

from lamina.errors import BadRequest, Conflict
from lamina.objects.printing import quoted
from lamina.objects.types import Made, Obj
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import read_body
from lamina.server.builtin.admit.nodes import take_place
from lamina.server.kind import Findings
from lamina.server.options import WriteOptions, write_options
from lamina.server.plane import Plane, Target
from lamina.server.request import Answer, Request, json_answer
from lamina.server.reviewing import review, review_action


async def bind(plane: Plane, request: Request, target: Target) -> Answer:
    """Give a Pod its node, as a scheduler does; once given it stays."""
    options = write_options(request, "CreateOptions")
    binding = bodies.parse(request.body, request.headers.get("content-type", ""), Findings())
    if (binding.get("metadata") or {}).get("name") != target.name:
        raise BadRequest("name in URL does not match name in Binding object")
    if wrong := _wrong_with(binding):
        return wrong
    await review_action(plane, request, target, binding, options)
    return await _assign(plane, target, binding, options)


async def bind_by_name(plane: Plane, request: Request, target: Target) -> Answer:
    """Do the same where it is asked for beside the Pods: schedulers once did, and still may."""
    options = write_options(request, "CreateOptions")
    binding = read_body(request, target, options)
    metadata = binding.setdefault("metadata", {})
    if metadata.setdefault("namespace", target.namespace) != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = metadata.get("name")
    if not name:
        raise BadRequest("Name parameter required.")
    if wrong := _wrong_with(binding):
        return wrong
    kind = target.kind
    said = {"apiVersion": kind.api_version, "kind": kind.kind, **binding}
    await review(plane, request, target._replace(name=name), said, None, options)
    pods = plane.registry.find("", "v1", "pods")
    assert pods is not None, "pods are built in"
    return await _assign(plane, Target(pods, target.namespace, name), binding, options)


def _wrong_with(binding: Obj) -> Answer | None:
    """Return what is said to a binding that leads nowhere: a real server takes that for its own failure."""
    bound_to = binding.get("target") or {}
    kind = bound_to.get("kind") or "Node"
    if kind != "Node":
        why = f'target.kind: Unsupported value: {quoted(kind)}: supported values: "Node", "<empty>"'
    elif not bound_to.get("name"):
        why = "target.name: Required value"
    else:
        return None
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": why}
    return json_answer({**status, "code": 500}, 500)


async def _assign(plane: Plane, target: Target, binding: Obj, options: WriteOptions) -> Answer:
    row, pod = _read(plane, target)
    if pod["spec"].get("nodeName"):
        raise _unbound(
            target.name, f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        )
    if "deletionTimestamp" in pod["metadata"]:
        raise _unbound(target.name, f"pod {target.name} is being deleted, cannot be assigned to a host")
    node = binding["target"]["name"]
    pod["spec"]["nodeName"] = node
    given = binding.get("metadata") or {}
    for field in ("labels", "annotations"):
        if given.get(field):
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **given[field]}
    take_place(pod, node, plane.records)
    status = pod.setdefault("status", {})
    conditions = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": plane.stamp()}
    )
    status["conditions"] = conditions
    if not options.dry_run:
        await plane.store.append(target.key, pod, expect=row)
    return json_answer(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
    )


def _unbound(name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        details={"name": name, "kind": "pods/binding"},
    )


async def log_of(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with what a Pod's container wrote. Nothing runs here, so that is nothing; a wrong name is still an error."""
    _, pod = _read(plane, target)
    names = [one["name"] for one in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])]
    asked = request.parameter("container")
    if asked and asked not in names:
        raise BadRequest(f"container {asked} is not valid for pod {target.name}")
    if not asked and len(pod["spec"]["containers"]) > 1:
        listed = " ".join(one["name"] for one in pod["spec"]["containers"])
        raise BadRequest(
            f"a container name must be specified for pod {target.name}, choose one of: [{listed}]"
        )
    return Answer(200, b"", "text/plain")


def _read(plane: Plane, target: Target) -> tuple[int, Made]:
    row = plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    return row.version, orjson.loads(row.value)
