"""
Evicting a Pod: deleting it, if the budget that covers it has room.

1.  A Pod that has ended, has not begun or is going already is no loss: it goes,
    whatever a budget says.
2.  A Pod that two budgets cover goes under neither.
3.  A Pod that is not ready counts for nothing: it goes when its budget says
    such Pods always may, or when enough others are well.
4.  Any other Pod takes one of the disruptions its budget allows. That is
    written to the budget before the Pod is touched, so that two evictions never
    share one.

What a budget allows is somebody else's to work out; a budget whose status is
older than its spec allows nothing yet.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from lamina.errors import ApiError, BadRequest, Cause, Conflict, Forbidden, TimedOut, TooManyRequests
from lamina.objects.conditions import find, is_true, with_condition
from lamina.objects.selectors import from_object
from lamina.objects.types import Made, Obj
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import admit_update
from lamina.server.kind import Findings
from lamina.server.options import WriteOptions, check_dry_run, write_options
from lamina.server.plane import Plane, Target
from lamina.server.rendering import remember, shown
from lamina.server.request import Answer, Request, json_answer
from lamina.server.reviewing import review_action
from lamina.server.verbs.delete import DeleteOptions, check, end
from lamina.server.verbs.update import put

BUDGETS: Final = "poddisruptionbudgets"
_VERSIONS: Final = ("policy/v1", "policy/v1beta1")
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED: Final = 2000
_ATTEMPTS: Final = 20
_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def evict(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer 201 when the Pod goes, 429 when its budget is used up."""
    options = await _read(plane, request, target)
    cleared = ""
    for _ in range(_ATTEMPTS):
        pod = _newest(plane, target)
        try:
            if cleared != pod["metadata"]["uid"]:
                if refusal := await _clear(plane, request, target, pod, options):
                    return refusal
                # Paid for, once: whatever becomes of the Pod meanwhile, it goes.
                cleared = pod["metadata"]["uid"]
            await _end(plane, target, cleared, options)
            return json_answer(_SUCCESS, 201)
        except Conflict as conflict:
            # Lost against another writer; a version that the client itself insists on stays lost.
            if options.version or conflict.details:
                raise
    raise TimedOut("couldn't update PodDisruptionBudget due to conflicts", retry_after=10)


def _newest(plane: Plane, target: Target) -> Obj:
    row = plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    found: Obj = orjson.loads(row.value)
    return found


async def _clear(
    plane: Plane, request: Request, target: Target, pod: Obj, options: DeleteOptions
) -> Answer | None:
    """See to it that no budget stands in the way, or return why one does; raises where it is used up."""
    if _is_no_loss(pod):
        return None
    budgets = _budgets(plane, pod)
    if len(budgets) > 1:
        several = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": several}
        return json_answer({**said, "code": 500}, 500)
    if budgets and not _goes_unready(pod, budgets[0]):
        await _take_one(plane, request, target, budgets[0], options)
    return None


def _is_no_loss(pod: Obj) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def _budgets(plane: Plane, pod: Obj) -> list[Obj]:
    """Return the budgets that cover a Pod; one without a selector covers none."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    found: list[Obj] = []
    for budget in plane.records.every(f"{BUDGETS}.policy"):
        if budget["metadata"]["namespace"] != metadata["namespace"]:
            continue
        selector = from_object(budget["spec"].get("selector"))
        if selector.matches(labels):
            newest = plane.records.get(f"{BUDGETS}.policy", metadata["namespace"], budget["metadata"]["name"])
            if newest is not None:
                found.append(newest)
    return found


def _goes_unready(pod: Obj, budget: Obj) -> bool:
    """Say whether a Pod goes because it is not ready, and its budget does not mind."""
    if is_true((pod.get("status") or {}).get("conditions") or (), "Ready"):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


async def _take_one(
    plane: Plane, request: Request, target: Target, budget: Obj, options: DeleteOptions
) -> None:
    """Take one of the disruptions that a budget allows, or refuse."""
    status: Made = dict(budget.get("status") or {})
    metadata = budget["metadata"]
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _used_up(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods") or {}
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        raise _forbidden(
            name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if not allowed:
        raise _used_up(
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
            now=plane.now(),
            generation=status.get("observedGeneration", 0),
        )
    status["disruptedPods"] = {**disrupted, target.name: plane.stamp()}
    await _write_status(plane, request, budget, status)


async def _write_status(plane: Plane, request: Request, budget: Obj, status: Made) -> None:
    kind = plane.registry.find("policy", "v1", BUDGETS)
    assert kind is not None, "budgets are built in"
    metadata = budget["metadata"]
    spot = Target(kind, metadata["namespace"], metadata["name"], "status", kind.subresource("status"))
    row = plane.store.newest(spot.key)
    if row is None or str(row.version) != metadata["resourceVersion"]:
        raise Conflict("the budget has changed")
    old = orjson.loads(shown(kind, row))
    ours = WriteOptions(False, "Ignore", "kube-apiserver", False)
    new = await admit_update(plane, request, spot, {**orjson.loads(row.value), "status": status}, old, ours)
    await put(plane, spot, new, old, row, ours)


def _used_up(why: str, retry_after: int | None = None) -> TooManyRequests:
    return TooManyRequests(_VIOLATES, causes=[Cause("DisruptionBudget", why, "")], retry_after=retry_after)


def _forbidden(name: str, why: str) -> ApiError:
    return Forbidden(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudget"},
    )


async def _end(plane: Plane, target: Target, cleared: str, options: DeleteOptions) -> None:
    """Say on the Pod that was cleared why it goes, and have it go."""
    row = plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    pod: Made = orjson.loads(row.value)
    if pod["metadata"]["uid"] != cleared:
        # Another has its name by now, and for that one nothing has been paid.
        raise Conflict("the pod is another one")
    if options.dry_run:
        await end(plane, target, row, options)
        return
    check(target, pod["metadata"], options)
    status = pod.setdefault("status", {})
    said = find(status.get("conditions") or (), "DisruptionTarget")
    if said is None or said.get("status") != "True" or said.get("reason") != "EvictionByEvictionAPI":
        status["conditions"] = _with_target(status.get("conditions") or (), plane.stamp())
        row = await plane.store.append(target.key, pod, expect=row.version)
        remember(target.kind, row)
    await end(plane, target, row, options._replace(version=""))


def _with_target(conditions: Any, stamp: str) -> list[Made]:
    said = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": stamp,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    kept = [one for one in conditions if one.get("type") != "DisruptionTarget"]
    return [*kept, said]


# ── what is asked ──


async def _read(plane: Plane, request: Request, target: Target) -> DeleteOptions:
    """Return how the Pod is to be deleted; raises for a body that is no eviction of it, or not allowed."""
    created = write_options(request, "CreateOptions")
    body = bodies.parse(request.body, request.headers.get("content-type", ""), Findings())
    _check_type(plane, body)
    metadata = body.get("metadata") or {}
    if metadata.get("namespace", target.namespace) != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if metadata.get("name") != target.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    await review_action(plane, request, target, body, created)
    asked = body.get("deleteOptions") or {}
    required = asked.get("preconditions") or {}
    return DeleteOptions(
        asked.get("propagationPolicy"),
        asked.get("gracePeriodSeconds"),
        required.get("uid") or "",
        required.get("resourceVersion") or "",
        created.dry_run or check_dry_run(list(asked.get("dryRun") or ()), "DeleteOptions"),
    )


def _check_type(plane: Plane, body: Obj) -> None:
    api_version, kind = body.get("apiVersion") or _VERSIONS[0], body.get("kind") or "Eviction"
    if kind == "Eviction" and api_version in _VERSIONS:
        return
    group, _, version = str(api_version).rpartition("/")
    said = f'{kind} in version "{version}" cannot be handled as a Eviction'
    known = plane.registry.named(group, kind)
    if known is not None and known.version == version and not known.custom:
        raise BadRequest(f"{said}: converting ({version}.{kind}) to (policy.Eviction): unknown conversion")
    raise BadRequest(
        f'{said}: no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    )
