"""
The end of a namespace.

A namespace that is to go is emptied first: its pods, then everything else, each
kind asked to go as a whole and each object leaving in its own time. What is
still there is said in the conditions. Once memory and server agree that nothing
is left, the namespace is let go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec import Struct

from lamina.actors.events import last_written
from lamina.actors.names import MANAGER
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import (
    NOTHING,
    Action,
    Delete,
    DeleteAll,
    Plan,
    Replace,
    one_stage,
    set_status,
)
from lamina.core.questions import Answers, Listed, Question, ReadAll
from lamina.core.world import Change, World, card, whole
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
"""When to look again if nothing is heard. Everything that helps a namespace to its end is; this is for the rest."""

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
"""Each condition, and what it says while nothing is wrong: its reason and its message, with status False."""


class View(Struct, frozen=True, kw_only=True):
    """A namespace on its way out, what is known to be in it, and every kind that could be."""

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


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """
    Ask what is really there, once there seems to be nothing and that has been said.

    Until then memory is good enough, and asking about every kind at every step is not.
    """
    if view.contents or not _is_said(view.namespace, _wanted({})):
        return ()
    asked = (ReadAll(kind, view.name) for kind in view.kinds)
    return tuple(question for question in asked if question not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    contents = view.contents or _listed(view, answers)
    staying = {kind: [one for one in there if not meta.is_deleting(one)] for kind, there in contents.items()}
    doomed = {kind: there for kind, there in staying.items() if there}
    if any(kind.group_kind == _POD for kind in contents):
        # What the others hold may be what a pod needs to end well.
        doomed = {kind: there for kind, there in doomed.items() if kind.group_kind == _POD}
    if doomed:
        actions = [action for kind, there in doomed.items() for action in _end(view, kind, there)]
        return one_stage("empty it", actions, because=f"deleting {_names(doomed)}", again=_AGAIN)

    say = _report(view.namespace, _wanted(contents), now)
    if say:
        because = f"waiting for {_names(contents)}" if contents else "it is empty"
        return one_stage("say so", say, because=because, again=_AGAIN)
    if contents:
        return Plan(look_again=_AGAIN, because=f"waiting for {_names(contents)}")
    return one_stage("let it go", [_finalize(view)], because="it is empty")


def _listed(view: View, answers: Answers) -> Mapping[Kind, Sequence[Obj]]:
    contents: dict[Kind, Sequence[Obj]] = {}
    for kind in view.kinds:
        answer = answers.get(ReadAll(kind, view.name))
        if isinstance(answer, Listed) and answer.objects:
            contents[kind] = answer.objects
    return contents


def _end(view: View, kind: Kind, there: Sequence[Obj]) -> Iterable[Action]:
    if kind.can("deletecollection"):
        yield DeleteAll(kind=kind, namespace=view.name)
    else:
        for one in there:
            yield Delete(ref=meta.ref(one), uid=meta.uid(one))


def _finalize(view: View) -> Replace:
    """Return the namespace without our hold on it; this endpoint takes whole objects only."""
    kept = [one for one in _finalizers(view.namespace) if one != FINALIZER]
    spec = {**view.namespace["spec"], "finalizers": kept}
    return Replace(obj={**view.namespace, "spec": spec}, subresource="finalize")


def _names(contents: Iterable[Kind]) -> str:
    return ", ".join(sorted(kind.plural for kind in contents))


# ── what the conditions say ──

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


def _is_said(namespace: Obj, wanted: _Wanted) -> bool:
    said = {
        one["type"]: (one["status"], one.get("reason", ""), one.get("message", ""))
        for one in _conditions(namespace)
    }
    return all(said.get(name) == what for name, what in wanted.items())


def _report(namespace: Obj, wanted: _Wanted, now: datetime) -> Sequence[Action]:
    """Return the write that says what there is to say, if it has not been said."""
    if _is_said(namespace, wanted):
        return ()
    conditions = _conditions(namespace)
    for name, (status, reason, message) in wanted.items():
        conditions = with_condition(conditions, name, status, now=now, reason=reason, message=message)
    status_now = {**(namespace.get("status") or {}), "phase": "Terminating", "conditions": conditions}
    patch = set_status(namespace, status_now)
    return (patch,) if patch is not None else ()


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Say on the namespace that some of its content could not be deleted."""
    view = gather(world, ref)
    if view is None:
        return NOTHING
    failures = sorted(map(str, error.failures if isinstance(error, PlanFailed) else (error,)))
    failure = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}"
    return one_stage(
        "say so",
        _report(view.namespace, _wanted(view.contents, failure), now),
        because="it cannot be emptied",
    )


def concerns(world: World, change: Change) -> Iterable[Ref]:
    """What happens in a namespace concerns the namespace, once it is on its way out."""
    namespace = Ref("v1", "Namespace", "", meta.namespace(change.obj))
    there = world.get(namespace)
    return (namespace,) if there is not None and meta.is_deleting(there) else ()


def _is_content(kind: Kind) -> bool:
    # One store is served as two kinds of Event; emptying one empties the other.
    return kind.namespaced and kind.can("delete", "list") and kind.group != "events.k8s.io"


def _is_plain_content(kind: Kind) -> bool:
    return _is_content(kind) and kind.group_kind not in (_POD, _EVENT)


NAMESPACES: Controller[View] = Controller(
    name="namespaces",
    watches=(
        Watch(selects=only(*_NAMESPACE), concerns=itself, keep=whole),
        Watch(selects=_is_plain_content, concerns=concerns, keep=card, metadata_only=True),
        # Followed as others follow them: there are many, and one stream of each serves everybody.
        Watch(selects=only(*_POD), concerns=concerns, keep=whole),
        Watch(selects=only(*_EVENT), concerns=concerns, keep=last_written, metadata_only=True),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    manager=MANAGER,
    complain=complain,
)
