"""
What is done about the CRD that a definition generates.

One that was edited or deleted by hand is restored; one of another owner is not touched.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from lamina.core.apply.change_check import Check, Effect, check_replace
from lamina.core.crd.kinds import conditions_of, is_established
from lamina.core.model.plan import Action, Create, Replace
from lamina.core.model.queries import Answers, DryRun, Refused
from lamina.families.resourcegraph.definitions.crd_cache import conflict
from lamina.families.resourcegraph.definitions.crd_schema import (
    Schemas,
    desired,
    incompatibility,
    live_schemas,
    replacement,
    used_schemas,
)
from lamina.families.resourcegraph.definitions.findings import (
    CONTROLLER,
    KIND,
    RUNNING,
    Finding,
    awaiting,
    failed,
)
from lamina.families.resourcegraph.definitions.queried import Unanswered, answer, compiled, live_needed
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.labels import MANAGER
from lamina.graph.graph import Graph, GraphError
from lamina.objects import conditions, meta
from lamina.objects.digest import digest
from lamina.objects.types import Obj


class Served(Struct, frozen=True, kw_only=True):
    """What is done about the CRD, and what is reported of it; `ready` once its kind is served as it is to be."""

    kind: Finding
    controller: Finding = awaiting(CONTROLLER)
    action: Action | None = None
    ready: bool = False


def serve(view: View, current: Revision, needed: Collection[int], answers: Answers) -> Served:
    """Return what is done about the CRD of the current revision; raises Unanswered."""
    graph, live = compiled(view, current.content, answers), view.crd
    if isinstance(graph, GraphError):
        # The schema of its status is not known: the CRD stays as it is.
        return as_it_is(view)
    if live is not None and (because := conflict(live, view.name)):
        return Served(kind=failed(because))
    if live is not None and meta.is_deleting(live):
        return Served(
            kind=failed(f"CRD {view.crd_name} is being deleted; it is created again once it is gone")
        )
    others = _others(view, current, needed, answers)
    wanted = desired(view, current.content, current.number, graph, others)
    if live is None:
        message = f"creating CRD {view.crd_name} of revision {current.number}"
        return Served(kind=awaiting(KIND, message), action=Create(obj=wanted))
    check = _check(view, live, wanted, answers)
    if check.effect is Effect.CHANGE and live["spec"] != wanted["spec"]:
        # A field that goes is pruned from instances: none that the cache lacks may need it.
        if view.awaits_discovery:
            return as_it_is(view)
        more = live_needed(view, answers)
        others = (
            (*others, live_schemas(live))
            if more is None
            else _others(view, current, {*needed, *more}, answers)
        )
        wanted = desired(view, current.content, current.number, graph, others)
        check = _check(view, live, wanted, answers)
    if check.effect is Effect.REFUSED:
        return Served(kind=failed(check.because))
    if check.effect is Effect.CHANGE:
        message = f"updating CRD {view.crd_name} to revision {current.number}"
        return Served(kind=awaiting(KIND, message), action=Replace(obj=replacement(view, live, wanted)))
    return as_it_is(view)


def _others(view: View, current: Revision, needed: Collection[int], answers: Answers) -> tuple[Schemas, ...]:
    return tuple(used_schemas(view, [one for one in needed if one != current.number], answers))


def as_it_is(view: View) -> Served:
    """Return what is reported of the CRD, where nothing is done about it."""
    live = view.crd
    if live is None:
        return Served(kind=failed(f"CRD {view.crd_name} does not exist"))
    if because := conflict(live, view.name):
        return Served(kind=failed(because))
    kind = view.stated.schema.kind
    if not is_established(live):
        return Served(kind=_unestablished(live))
    accepted = Finding("True", "Ready", f"kind {kind} has been accepted and ready")
    if view.kind is None:
        return Served(kind=accepted, controller=awaiting(CONTROLLER, f"waiting until kind {kind} is served"))
    return Served(kind=accepted, controller=RUNNING, ready=True)


def _unestablished(crd: Obj) -> Finding:
    names = conditions.find(conditions_of(crd), "NamesAccepted")
    if names is not None and names.get("status") == "False":
        return failed(f"CRD {meta.name(crd)} is not served: {names.get('message') or names.get('reason')}")
    return awaiting(KIND, f"waiting until CRD {meta.name(crd)} is established")


def _check(view: View, live: Obj, wanted: Obj, answers: Answers) -> Check:
    """Return what the write of a CRD would do; raises Unanswered."""
    new = replacement(view, live, wanted)
    for field in ("labels", "annotations"):
        if meta.metadata(new).get(field) != meta.metadata(live).get(field):
            return Check(Effect.CHANGE)
    found = check_replace(live, new, MANAGER, answers)
    if found.effect is Effect.UNKNOWN and found.query is not None:
        raise Unanswered((found.query,))
    return found


def problem(
    view: View,
    graph: Graph,
    number: int,
    needed: Collection[int],
    answers: Answers,
    *,
    checks_compatibility: bool,
) -> str:
    """Return why the kind of an edited definition may not be served; empty where it may. Raises Unanswered."""
    if view.crd is not None and (because := conflict(view.crd, view.name)):
        return because
    if checks_compatibility and (because := incompatibility(view, graph, answers)):
        return because
    others = tuple(used_schemas(view, needed, answers))
    return _refusal(view, desired(view, view.content, number, graph, others), answers)


def _refusal(view: View, wanted: Obj, answers: Answers) -> str:
    """Return why the server would refuse a CRD, by a dry run; empty where it takes it. Raises Unanswered."""
    live = view.crd
    body = wanted if live is None else replacement(view, live, wanted)
    version = "" if live is None else meta.resource_version(live)
    asked = DryRun(
        obj=body,
        manager=MANAGER,
        key=digest(["generated CRD", body, version]),
        creates=live is None,
        replaces=live is not None,
        fresh=True,
    )
    found = answer(answers, asked)
    return found.because if isinstance(found, Refused) else ""
