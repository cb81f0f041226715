"""The binding and log subresources of Pods."""

from __future__ import annotations

import orjson

from lamina.errors import BadRequest, Conflict
from lamina.objects.go_quote import quoted
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.chain import review_subresource, review_write
from lamina.server.admission.options import WriteOptions, write_options
from lamina.server.admission.pipeline import read_body
from lamina.server.admission.plugins.topology_labels import copy_topology_labels
from lamina.server.codec import body as bodies
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response, json_response
from lamina.server.kinds.kind import Findings
from lamina.server.kinds.target import Target


async def bind(context: ServerContext, request: Request, target: Target) -> Response:
    """Assign a Pod to a node, as a scheduler does."""
    options = write_options(request, "CreateOptions")
    binding = bodies.parse(request.body, request.headers.get("content-type", ""), Findings())
    if (binding.get("metadata") or {}).get("name") != target.name:
        raise BadRequest("name in URL does not match name in Binding object")
    if error := _target_error(binding):
        return error
    await review_subresource(context, request, target, binding, options)
    return await _assign(context, target, binding, options)


async def create_binding(context: ServerContext, request: Request, target: Target) -> Response:
    """Bind a Pod through the `bindings` resource of its namespace, the older form of the request."""
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
    if error := _target_error(binding):
        return error
    kind = target.kind
    said = {"apiVersion": kind.api_version, "kind": kind.kind, **binding}
    await review_write(context, request, target._replace(name=name), said, None, options)
    pods = context.registry.find("", "v1", "pods")
    assert pods is not None, "pods are built in"
    return await _assign(context, Target(pods, target.namespace, name), binding, options)


def _target_error(binding: Obj) -> Response | None:
    """Return the error for an invalid target: kube-apiserver returns a 500."""
    bound_to = binding.get("target") or {}
    kind = bound_to.get("kind") or "Node"
    if kind != "Node":
        why = f'target.kind: Unsupported value: {quoted(kind)}: supported values: "Node", "<empty>"'
    elif not bound_to.get("name"):
        why = "target.name: Required value"
    else:
        return None
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": why}
    return json_response({**status, "code": 500}, 500)


async def _assign(context: ServerContext, target: Target, binding: Obj, options: WriteOptions) -> Response:
    row, pod = _read(context, target)
    if pod["spec"].get("nodeName"):
        raise _binding_conflict(
            target.name, f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        )
    if "deletionTimestamp" in pod["metadata"]:
        raise _binding_conflict(
            target.name, f"pod {target.name} is being deleted, cannot be assigned to a host"
        )
    node = binding["target"]["name"]
    pod["spec"]["nodeName"] = node
    given = binding.get("metadata") or {}
    for field in ("labels", "annotations"):
        if given.get(field):
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **given[field]}
    copy_topology_labels(pod, node, context.lister)
    status = pod.setdefault("status", {})
    conditions = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
    conditions.append(
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": context.stamp(),
        }
    )
    status["conditions"] = conditions
    if not options.dry_run:
        await context.store.append(target.key, pod, expect=row)
    return json_response(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
    )


def _binding_conflict(name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        details={"name": name, "kind": "pods/binding"},
    )


async def read_log(context: ServerContext, request: Request, target: Target) -> Response:
    """Return an empty log, since no container runs; a wrong container name is still an error."""
    _, pod = _read(context, target)
    names = [one["name"] for one in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])]
    container = request.parameter("container")
    if container and container not in names:
        raise BadRequest(f"container {container} is not valid for pod {target.name}")
    if not container and len(pod["spec"]["containers"]) > 1:
        choices = " ".join(one["name"] for one in pod["spec"]["containers"])
        raise BadRequest(
            f"a container name must be specified for pod {target.name}, choose one of: [{choices}]"
        )
    return Response(200, b"", "text/plain")


def _read(context: ServerContext, target: Target) -> tuple[int, Made]:
    row = context.store.newest(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    return row.version, orjson.loads(row.value)
