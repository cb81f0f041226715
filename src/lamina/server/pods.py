"""What is done to a Pod beside changing it: bind it to a node, read its log."""

from __future__ import annotations

import orjson

from lamina.errors import BadRequest
from lamina.objects.types import Made
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.builtin.admit.nodes import take_place
from lamina.server.kind import Findings
from lamina.server.options import write_options
from lamina.server.plane import Plane, Target
from lamina.server.request import Answer, Request, json_answer
from lamina.server.reviewing import review_action


async def bind(plane: Plane, request: Request, target: Target) -> Answer:
    """Give a Pod its node, as a scheduler does; once given it stays."""
    options = write_options(request, "CreateOptions")
    binding = bodies.parse(request.body, request.headers.get("content-type", ""), Findings())
    node = (binding.get("target") or {}).get("name") or ""
    if not node:
        raise BadRequest("Binding.target.name: Required value")
    await review_action(plane, request, target, binding, options)
    row, pod = _read(plane, target)
    if pod["spec"].get("nodeName"):
        raise words.conflict(
            target.kind,
            target.name,
            f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"',
        )
    if "deletionTimestamp" in pod["metadata"]:
        raise words.conflict(
            target.kind, target.name, f"pod {target.name} is being deleted, cannot be assigned to a host"
        )
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
