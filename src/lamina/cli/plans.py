"""Plans in words."""

from __future__ import annotations

from typing import assert_never

from lamina.core.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Plan, Post, Replace
from lamina.objects.types import Made


def show(plan: Plan) -> str:
    """Return a plan as a person reads it: why, and then what, stage by stage."""
    lines = [plan.because or "nothing to do: everything is as it should be"]
    for stage in plan.stages:
        lines.append(f"  {stage.name}")
        lines += [f"    {words(action)}" for action in stage.actions]
    if plan.failure is not None:
        lines.append(f"  and says that {plan.failure}")
    if plan.look_again is not None:
        lines.append(f"  looks again in {plan.look_again.total_seconds():g}s at the latest")
    return "\n".join(lines)


def words(action: Action) -> str:
    """Return one action in words."""
    match action:
        case Create():
            return f"create {action.ref}"
        case Patch(ref=ref, patch=patch, subresource=subresource):
            return f"change {', '.join(sorted(patch))} of {ref}{_under(subresource)}"
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
            return f"tell: {event['message']}"
        case _:
            assert_never(action)


def _under(subresource: str) -> str:
    return f" ({subresource})" if subresource else ""


def as_json(plan: Plan) -> Made:
    """Return a plan for a program to read."""
    return {
        "because": plan.because,
        "stages": [
            {"name": stage.name, "actions": [_action(action) for action in stage.actions]}
            for stage in plan.stages
        ],
        "lookAgainSeconds": plan.look_again.total_seconds() if plan.look_again is not None else None,
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
        "words": words(action),
    }
