"""
The namespace lifecycle controller: deletes the content of a namespace that is being deleted.

Pods are deleted first, then all other kinds, each with deletecollection where it
has that verb. The conditions report what remains. Once the cache and live lists
are both empty, the `kubernetes` finalizer is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec import Struct

from lamina.actors.event_ttl import last_written
from lamina.actors.field_manager import MANAGER
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Action, Delete, DeleteAll, Plan, Replace, one_stage, set_status
from lamina.core.model.queries import Answers, Listed, Query, ReadAll
from lamina.core.model.world import Change, World, identity_only, whole
from lamina.errors import LaminaError, PlanFailed
from lamina.objects import meta
from lamina.objects.conditions import with_condition
from lamina.objects.kinds import Kind
from lamina.objects.types import Condition, GroupKind, Obj, Ref

FINALIZER = "kubernetes"
_NAMESPACE = GroupKind("", "Namespace")
_POD = GroupKind("", "Pod")
_EVENT = GroupKind("", "Event")
_AGAIN = timedelta(seconds=5)
"""The resync while content remains; changes of the content enqueue the namespace earlier."""

_DISCOVERY = "NamespaceDeletionDiscoveryFailure"
_PARSING = "NamespaceDeletionGroupVersionParsingFailure"
_CONTENT = "NamespaceDeletionContentFailure"
_REMAINING = "NamespaceContentRemaining"
_FINALIZERS = "NamespaceFinalizersRemaining"

_FINE: Mapping[str, tuple[str, str]] = {
    _DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    _PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    _CONTENT: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    _REMAINING: ("ContentRemoved", "All content successfully removed"),
    _FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""The reason and message of each condition while nothing is wrong, with status False."""


class View(Struct, frozen=True, kw_only=True):
    """A namespace that is being deleted, its cached content, and every namespaced kind."""

    namespace: Obj
    contents: Mapping[Kind, Sequence[Obj]]
    kinds: tuple[Kind, ...]

    @property
    def name(self) -> str:
        return meta.name(self.namespace)


def gather(world: World, ref: Ref) -> View | None:
    namespace = world.get(ref)
    if namespace is None or not meta.is_deleting(namespace) or FINALIZER not in _finalizers(namespace):
        return None
    return View(
        namespace=namespace,
        contents={kind: tuple(objects) for kind, objects in world.in_namespace(ref.name)},
        kinds=tuple(kind for kind in world.kinds if _is_content(kind)),
    )


def _finalizers(namespace: Obj) -> Sequence[str]:
    return (namespace.get("spec") or {}).get("finalizers") or ()


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """
    Ask for live lists of all kinds, once the cache is empty and the conditions say so.

    Until then the cache is good enough, and lists of every kind are expensive.
    """
    if view.contents or not _are_set(view.namespace, _wanted({})):
        return ()
    asked = (ReadAll(kind, view.name) for kind in view.kinds)
    return tuple(question for question in asked if question not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    contents = view.contents or _listed(view, answers)
    not_deleting = {
        kind: [one for one in there if not meta.is_deleting(one)] for kind, there in contents.items()
    }
    remaining = {kind: there for kind, there in not_deleting.items() if there}
    if any(kind.group_kind == _POD for kind in contents):
        # Pods may need the other objects until they have terminated.
        remaining = {kind: there for kind, there in remaining.items() if kind.group_kind == _POD}
    if remaining:
        actions = [action for kind, there in remaining.items() for action in _deletes(view, kind, there)]
        return one_stage("delete content", actions, because=f"deleting {_names(remaining)}", again=_AGAIN)

    report = _report(view.namespace, _wanted(contents), now)
    if report:
        because = f"waiting for {_names(contents)}" if contents else "it is empty"
        return one_stage("write status", report, because=because, again=_AGAIN)
    if contents:
        return Plan(requeue_after=_AGAIN, because=f"waiting for {_names(contents)}")
    return one_stage("finalize", [_finalize(view)], because="it is empty")


def _listed(view: View, answers: Answers) -> Mapping[Kind, Sequence[Obj]]:
    contents: dict[Kind, Sequence[Obj]] = {}
    for kind in view.kinds:
        answer = answers.get(ReadAll(kind, view.name))
        if isinstance(answer, Listed) and answer.objects:
            contents[kind] = answer.objects
    return contents


def _deletes(view: View, kind: Kind, there: Sequence[Obj]) -> Iterable[Action]:
    if kind.can("deletecollection"):
        yield DeleteAll(kind=kind, namespace=view.name)
    else:
        for one in there:
            yield Delete(ref=meta.ref(one), uid=meta.uid(one))


def _finalize(view: View) -> Replace:
    """Return the write that removes the finalizer; the finalize subresource takes whole objects only."""
    kept = [one for one in _finalizers(view.namespace) if one != FINALIZER]
    spec = {**view.namespace["spec"], "finalizers": kept}
    return Replace(obj={**view.namespace, "spec": spec}, subresource="finalize")


def _names(contents: Iterable[Kind]) -> str:
    return ", ".join(sorted(kind.plural for kind in contents))


# Conditions

_Wanted: TypeAlias = Mapping[str, tuple[str, str, str]]
"""The status, reason and message of each condition."""


def _wanted(contents: Mapping[Kind, Sequence[Obj]], failure: str = "") -> _Wanted:
    wanted = {name: ("False", reason, message) for name, (reason, message) in _FINE.items()}
    if failure:
        wanted[_CONTENT] = ("True", "ContentDeletionFailed", failure)
    if contents:
        counts = sorted(
            f"{kind.plural}.{kind.group} has {len(there)} resource instances"
            for kind, there in contents.items()
        )
        message = f"Some resources are remaining: {', '.join(counts)}"
        wanted[_REMAINING] = ("True", "SomeResourcesRemain", message)
    held = Counter(one for there in contents.values() for obj in there for one in meta.finalizers(obj))
    if held:
        counts = sorted(f"{finalizer} in {count} resource instances" for finalizer, count in held.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
        wanted[_FINALIZERS] = ("True", "SomeFinalizersRemain", message)
    return wanted


def _conditions(namespace: Obj) -> Sequence[Condition]:
    return (namespace.get("status") or {}).get("conditions") or ()


def _are_set(namespace: Obj, wanted: _Wanted) -> bool:
    found = {
        one["type"]: (one["status"], one.get("reason", ""), one.get("message", ""))
        for one in _conditions(namespace)
    }
    return all(found.get(name) == condition for name, condition in wanted.items())


def _report(namespace: Obj, wanted: _Wanted, now: datetime) -> Sequence[Action]:
    """Return the write of the conditions, none where they are set already."""
    if _are_set(namespace, wanted):
        return ()
    conditions = _conditions(namespace)
    for name, (status, reason, message) in wanted.items():
        conditions = with_condition(conditions, name, status, now=now, reason=reason, message=message)
    status_now = {**(namespace.get("status") or {}), "phase": "Terminating", "conditions": conditions}
    patch = set_status(namespace, status_now)
    return (patch,) if patch is not None else ()


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Set the condition of a namespace whose content could not be deleted."""
    view = gather(world, ref)
    if view is None:
        return NOTHING
    failures = sorted(map(str, error.failures if isinstance(error, PlanFailed) else (error,)))
    failure = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}"
    return one_stage(
        "write status",
        _report(view.namespace, _wanted(view.contents, failure), now),
        because="its content cannot be deleted",
    )


def enqueue_namespace(world: World, change: Change) -> Iterable[Ref]:
    """A change in a namespace enqueues the namespace, if that is being deleted."""
    namespace = Ref("v1", "Namespace", "", meta.namespace(change.obj))
    there = world.get(namespace)
    return (namespace,) if there is not None and meta.is_deleting(there) else ()


def _is_content(kind: Kind) -> bool:
    # The two groups of Event share their storage; deleting one deletes the other.
    return kind.namespaced and kind.can("delete", "list") and kind.group != "events.k8s.io"


def _is_plain_content(kind: Kind) -> bool:
    return _is_content(kind) and kind.group_kind not in (_POD, _EVENT)


NAMESPACES: Controller[View] = Controller(
    name="namespaces",
    watches=(
        Watch(selects=only(*_NAMESPACE), enqueue=itself, keep=whole),
        Watch(selects=_is_plain_content, enqueue=enqueue_namespace, keep=identity_only, metadata_only=True),
        # Kept as the other controllers keep them, so that all share one informer.
        Watch(selects=only(*_POD), enqueue=enqueue_namespace, keep=whole),
        Watch(selects=only(*_EVENT), enqueue=enqueue_namespace, keep=last_written, metadata_only=True),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    manager=MANAGER,
    complain=complain,
)
