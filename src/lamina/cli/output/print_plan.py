"""Prints plans, as text and as JSON."""

from __future__ import annotations

from typing import assert_never

from lamina.core.model.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Plan, Post, Replace
from lamina.objects.types import Made


def plan_text(plan: Plan) -> str:
    """Return a plan as text: the reason, then the actions stage by stage, the failure, and the requeue."""
    lines = [plan.because or "nothing to do: the objects are in their desired state"]
    for stage in plan.stages:
        lines.append(f"  {stage.name}")
        lines += [f"    {action_text(action)}" for action in stage.actions]
    if plan.failure is not None:
        lines.append(f"  reports an error: {plan.failure}")
    if plan.requeue_after is not None:
        lines.append(f"  requeues after {plan.requeue_after.total_seconds():g}s at the latest")
    return "\n".join(lines)


def action_text(action: Action) -> str:
    """Return one action in words."""
    match action:
        case Create():
            return f"create {action.ref}"
        case Patch(ref=ref, patch=patch, subresource=subresource):
            return f"patch {', '.join(sorted(patch))} of {ref}{_under(subresource)}"
        case Replace(subresource=subresource):
            return f"replace {action.ref}{_under(subresource)}"
        case Apply(subresource=subresource):
            return f"apply {action.ref}{_under(subresource)}"
        case Post(ref=ref, subresource=subresource):
            return f"post to {subresource} of {ref}"
        case Delete(ref=ref):
            return f"delete {ref}"
        case DeleteAll(kind=kind, namespace=namespace):
            return f"delete all {kind.plural}{f' in {namespace}' if namespace else ''}"
        case Emit(event=event):
            return f"event: {event['message']}"
        case _:
            assert_never(action)


def _under(subresource: str) -> str:
    return f" ({subresource})" if subresource else ""


def plan_json(plan: Plan) -> Made:
    """Return a plan as JSON."""
    return {
        "because": plan.because,
        "stages": [
            {"name": stage.name, "actions": [_action(action) for action in stage.actions]}
            for stage in plan.stages
        ],
        "lookAgainSeconds": plan.requeue_after.total_seconds() if plan.requeue_after is not None else None,
        "failure": str(plan.failure) if plan.failure is not None else None,
    }


def _action(action: Action) -> Made:
    ref = action.ref
    return {
        "action": type(action).__name__.lower(),
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "words": action_text(action),
    }
