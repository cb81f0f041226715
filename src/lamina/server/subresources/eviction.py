"""
The eviction subresource: deletes a Pod if its PodDisruptionBudget allows it.

1.  A Pod that is pending, finished or terminating is deleted, whatever its budget.
2.  A Pod that two budgets select is not evicted.
3.  A Pod that is not ready is deleted if its budget always allows that, or if enough other Pods are
    healthy.
4.  Any other Pod uses one of the disruptions its budget allows. The budget is updated before the
    Pod is deleted, so that two evictions never use the same disruption.

The disruption controller computes what a budget allows; a budget whose status is older than its spec allows
nothing.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from lamina.errors import ApiError, BadRequest, Cause, Conflict, Forbidden, TimedOut, TooManyRequests
from lamina.objects.conditions import find, is_true, with_condition
from lamina.objects.selectors import from_object
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.chain import review_subresource
from lamina.server.admission.options import WriteOptions, check_dry_run, write_options
from lamina.server.admission.pipeline import admit_update
from lamina.server.codec import body as bodies
from lamina.server.codec.response import mark_current, versioned_json
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response, json_response
from lamina.server.kinds.kind import Findings
from lamina.server.kinds.target import Target
from lamina.server.verbs.delete import DeleteOptions, check_preconditions, delete_row
from lamina.server.verbs.update import store_update

BUDGETS: Final = "poddisruptionbudgets"
_VERSIONS: Final = ("policy/v1", "policy/v1beta1")
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED: Final = 2000
_ATTEMPTS: Final = 20
_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def evict(context: ServerContext, request: Request, target: Target) -> Response:
    """Return 201 if the Pod is evicted, 429 if its budget allows no disruption."""
    options = await _parse_eviction(context, request, target)
    approved_uid = ""
    for _ in range(_ATTEMPTS):
        pod = _newest_pod(context, target)
        try:
            if approved_uid != pod["metadata"]["uid"]:
                if refusal := await _check_budgets(context, request, target, pod, options):
                    return refusal
                # The disruption is used up once: the Pod is deleted whatever changes on it meanwhile.
                approved_uid = pod["metadata"]["uid"]
            await _delete_pod(context, target, approved_uid, options)
            return json_response(_SUCCESS, 201)
        except Conflict as conflict:
            # Another writer won, so the eviction is retried; a version that the client requires stays a
            # conflict.
            if options.version or conflict.details:
                raise
    raise TimedOut("couldn't update PodDisruptionBudget due to conflicts", retry_after=10)


def _newest_pod(context: ServerContext, target: Target) -> Obj:
    row = context.store.newest(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    found: Obj = orjson.loads(row.value)
    return found


async def _check_budgets(
    context: ServerContext, request: Request, target: Target, pod: Obj, options: DeleteOptions
) -> Response | None:
    """Use a disruption of the Pod's budget where it needs one; return or raise what prevents the eviction."""
    if _needs_no_budget(pod):
        return None
    budgets = _budgets(context, pod)
    if len(budgets) > 1:
        several = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": several,
        }
        return json_response({**status, "code": 500}, 500)
    if budgets and not _is_unhealthy_evictable(pod, budgets[0]):
        await _use_disruption(context, request, target, budgets[0], options)
    return None


def _needs_no_budget(pod: Obj) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def _budgets(context: ServerContext, pod: Obj) -> list[Obj]:
    """Return the budgets that select a Pod; one without a selector selects none."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    found: list[Obj] = []
    for budget in context.lister.list(f"{BUDGETS}.policy"):
        if budget["metadata"]["namespace"] != metadata["namespace"]:
            continue
        selector = from_object(budget["spec"].get("selector"))
        if selector.matches(labels):
            newest = context.lister.get(
                f"{BUDGETS}.policy", metadata["namespace"], budget["metadata"]["name"]
            )
            if newest is not None:
                found.append(newest)
    return found


def _is_unhealthy_evictable(pod: Obj, budget: Obj) -> bool:
    """Return whether a Pod that is not ready may be evicted without using a disruption."""
    if is_true((pod.get("status") or {}).get("conditions") or (), "Ready"):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


async def _use_disruption(
    context: ServerContext, request: Request, target: Target, budget: Obj, options: DeleteOptions
) -> None:
    """Use one of the disruptions that a budget allows, or raise."""
    status: Made = dict(budget.get("status") or {})
    metadata = budget["metadata"]
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _too_many_disruptions(
            f"The disruption budget {name} is still being processed by the server.", 10
        )
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods") or {}
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        raise _forbidden(
            name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if not allowed:
        raise _too_many_disruptions(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
    if options.dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        status["conditions"] = with_condition(
            status.get("conditions") or (),
            "DisruptionAllowed",
            "False",
            reason="InsufficientPods",
            now=context.now(),
            generation=status.get("observedGeneration", 0),
        )
    status["disruptedPods"] = {**disrupted, target.name: context.stamp()}
    await _write_status(context, request, budget, status)


async def _write_status(context: ServerContext, request: Request, budget: Obj, status: Made) -> None:
    kind = context.registry.find("policy", "v1", BUDGETS)
    assert kind is not None, "budgets are built in"
    metadata = budget["metadata"]
    item_target = Target(kind, metadata["namespace"], metadata["name"], "status", kind.subresource("status"))
    row = context.store.newest(item_target.key)
    if row is None or str(row.version) != metadata["resourceVersion"]:
        raise Conflict("the budget has changed")
    old = orjson.loads(versioned_json(kind, row))
    ours = WriteOptions(False, "Ignore", "kube-apiserver", False)
    new = await admit_update(
        context, request, item_target, {**orjson.loads(row.value), "status": status}, old, ours
    )
    await store_update(context, item_target, new, old, row, ours)


def _too_many_disruptions(why: str, retry_after: int | None = None) -> TooManyRequests:
    return TooManyRequests(_VIOLATES, causes=[Cause("DisruptionBudget", why, "")], retry_after=retry_after)


def _forbidden(name: str, why: str) -> ApiError:
    return Forbidden(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudget"},
    )


async def _delete_pod(
    context: ServerContext, target: Target, approved_uid: str, options: DeleteOptions
) -> None:
    """Set the DisruptionTarget condition on the approved Pod, and delete it."""
    row = context.store.newest(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    pod: Made = orjson.loads(row.value)
    if pod["metadata"]["uid"] != approved_uid:
        # A new Pod has the name, and no disruption was used for it.
        raise Conflict("the pod is another one")
    if options.dry_run:
        await delete_row(context, target, row, options)
        return
    check_preconditions(target, pod["metadata"], options)
    status = pod.setdefault("status", {})
    condition = find(status.get("conditions") or (), "DisruptionTarget")
    if (
        condition is None
        or condition.get("status") != "True"
        or condition.get("reason") != "EvictionByEvictionAPI"
    ):
        status["conditions"] = _with_disruption_target(status.get("conditions") or (), context.stamp())
        row = await context.store.append(target.key, pod, expect=row.version)
        mark_current(target.kind, row)
    await delete_row(context, target, row, options._replace(version=""))


def _with_disruption_target(conditions: Any, stamp: str) -> list[Made]:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": stamp,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    kept = [one for one in conditions if one.get("type") != "DisruptionTarget"]
    return [*kept, condition]


# ── the Eviction object ──


async def _parse_eviction(context: ServerContext, request: Request, target: Target) -> DeleteOptions:
    """Return the delete options of an eviction; raises for an invalid or denied one."""
    created = write_options(request, "CreateOptions")
    body = bodies.parse(request.body, request.headers.get("content-type", ""), Findings())
    _check_type(context, body)
    metadata = body.get("metadata") or {}
    if metadata.get("namespace", target.namespace) != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if metadata.get("name") != target.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    await review_subresource(context, request, target, body, created)
    delete_options = body.get("deleteOptions") or {}
    required = delete_options.get("preconditions") or {}
    return DeleteOptions(
        delete_options.get("propagationPolicy"),
        delete_options.get("gracePeriodSeconds"),
        required.get("uid") or "",
        required.get("resourceVersion") or "",
        created.dry_run or check_dry_run(list(delete_options.get("dryRun") or ()), "DeleteOptions"),
    )


def _check_type(context: ServerContext, body: Obj) -> None:
    api_version, kind = body.get("apiVersion") or _VERSIONS[0], body.get("kind") or "Eviction"
    if kind == "Eviction" and api_version in _VERSIONS:
        return
    group, _, version = str(api_version).rpartition("/")
    message = f'{kind} in version "{version}" cannot be handled as a Eviction'
    known = context.registry.named(group, kind)
    if known is not None and known.version == version and not known.custom:
        raise BadRequest(f"{message}: converting ({version}.{kind}) to (policy.Eviction): unknown conversion")
    raise BadRequest(
        f'{message}: no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    )
