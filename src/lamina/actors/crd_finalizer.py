"""
The CRD finalizer: deletes the custom resources of a CustomResourceDefinition that is being deleted.

It sets the Terminating condition, deletes all objects of the kind, and removes
its finalizer once a live list is empty. The kind is served until then, so that
controllers can remove their finalizers from the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.core.crd.kinds import DEFINITION, conditions_of, is_established, kinds_of, names_only
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import (
    NOTHING,
    Action,
    DeleteAll,
    Patch,
    Plan,
    change,
    one_stage,
    remove_finalizer,
)
from lamina.core.model.queries import Answers, Listed, Query, ReadAll
from lamina.core.model.world import Change, World, identity_only
from lamina.errors import LaminaError, PlanFailed
from lamina.objects import meta
from lamina.objects.conditions import find, with_condition
from lamina.objects.kinds import Kind
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj, Ref

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_TERMINATING = "Terminating"
_EVENT = GroupKind("events.k8s.io", "Event")
_CONFIRM_TIMEOUT = timedelta(minutes=1)
_AGAIN = timedelta(seconds=5)

_IN_PROGRESS = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_UNCONFIRMED = (
    "True",
    "InstanceDeletionCheck",
    "could not confirm zero CustomResources remaining: context deadline exceeded",
)
_COMPLETED = ("False", "InstanceDeletionCompleted", "removed all instances")
_BEGUN = (_IN_PROGRESS, _UNCONFIRMED, _COMPLETED)
"""The states of the condition from the first delete on."""
_NEVER = ("False", "NeverEstablished", "resource was never established")


class View(Struct, frozen=True, kw_only=True):
    """A definition that is being deleted, and the cached objects of its kind."""

    definition: Obj
    kind: Kind | None
    """The kind in its first served version; None where no version is served."""
    instances: Sequence[Obj]


def gather(world: World, ref: Ref) -> View | None:
    definition = world.get(ref)
    if definition is None or not meta.is_deleting(definition) or FINALIZER not in meta.finalizers(definition):
        return None
    kind = next(iter(kinds_of(definition)), None) if is_established(definition) else None
    instances = world.every(kind.group_kind) if kind is not None else ()
    return View(definition=definition, kind=kind, instances=tuple(instances))


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Ask for a live list once the cache has no object left."""
    if view.kind is None or view.instances or not _is_set(view.definition, _BEGUN):
        return ()
    asked = ReadAll(view.kind, "")
    return () if asked in answers else (asked,)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.kind is None:
        wanted = _NEVER if not is_established(view.definition) else _COMPLETED
        return _release(view, wanted, now)
    if not _is_set(view.definition, _BEGUN):
        write = _set_condition(view.definition, _IN_PROGRESS, now)
        return one_stage("set condition", [write], because="its objects are deleted first", again=_AGAIN)
    answer = answers.get(ReadAll(view.kind, ""))
    instances = view.instances or (answer.objects if isinstance(answer, Listed) else ())
    if not instances:
        return _release(view, _COMPLETED, now)
    remaining = {meta.namespace(one) for one in instances if not meta.is_deleting(one)}
    if remaining:
        actions = [DeleteAll(kind=view.kind, namespace=namespace) for namespace in sorted(remaining)]
        return one_stage("delete objects", actions, because="its objects are deleted first", again=_AGAIN)
    return _wait(view, len(instances), now)


def _wait(view: View, left: int, now: datetime) -> Plan:
    because = f"waiting for the deletion of {left} objects"
    since = moment(meta.metadata(view.definition).get("deletionTimestamp")) or now
    if now - since < _CONFIRM_TIMEOUT:
        return Plan(requeue_after=since + _CONFIRM_TIMEOUT - now, because=because)
    if _is_set(view.definition, [_UNCONFIRMED]):
        return Plan(because=because)
    return one_stage("set condition", [_set_condition(view.definition, _UNCONFIRMED, now)], because=because)


def _release(view: View, wanted: tuple[str, str, str], now: datetime) -> Plan:
    """Remove the finalizer; where others remain, set the condition first."""
    others = any(one != FINALIZER for one in meta.finalizers(view.definition))
    if others and not _is_set(view.definition, [wanted]):
        write = _set_condition(view.definition, wanted, now)
        return one_stage("set condition", [write], because="none of its objects is left", again=_AGAIN)
    release: Action = remove_finalizer(view.definition, FINALIZER)
    return one_stage("remove finalizer", [release], because="none of its objects is left")


def _is_set(definition: Obj, wanted: Sequence[tuple[str, str, str]]) -> bool:
    found = find(conditions_of(definition), _TERMINATING)
    return found is not None and (found["status"], found.get("reason"), found.get("message")) in wanted


def _set_condition(definition: Obj, wanted: tuple[str, str, str], now: datetime) -> Patch:
    status, reason, message = wanted
    conditions = with_condition(
        conditions_of(definition), _TERMINATING, status, now=now, reason=reason, message=message
    )
    return change(definition, {"status": {"conditions": conditions}}, subresource="status")


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Set the condition of a definition whose objects could not be deleted."""
    view = gather(world, ref)
    if view is None or not isinstance(error, PlanFailed):
        return NOTHING
    failures = [str(failure) for failure in error.failures]
    shown = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
    wanted = ("True", "InstanceDeletionFailed", f"could not issue all deletes: {shown}")
    if _is_set(view.definition, [wanted]):
        return NOTHING
    write = _set_condition(view.definition, wanted, now)
    return one_stage("set condition", [write], because="its objects cannot be deleted")


def enqueue_definition(world: World, change: Change) -> Iterable[Ref]:
    """The deletion of a custom resource enqueues its definition, if that is being deleted."""
    if change.after is not None:
        return ()
    ref = Ref("apiextensions.k8s.io/v1", DEFINITION.kind, "", f"{change.kind.plural}.{change.kind.group}")
    definition = world.get(ref)
    return (ref,) if definition is not None and meta.is_deleting(definition) else ()


def _may_be_custom(kind: Kind) -> bool:
    # A group without a dot is built in. Of the others only their definitions know
    # whether they are custom, and a shared watch costs nothing. Events are many, and
    # no other controller watches them in this group.
    return "." in kind.group and kind.group_kind not in (DEFINITION, _EVENT) and kind.can("delete")


DEFINITIONS: Controller[View] = Controller(
    name="definitions",
    watches=(
        Watch(selects=only(*DEFINITION), enqueue=itself, keep=names_only),
        Watch(selects=_may_be_custom, enqueue=enqueue_definition, keep=identity_only, metadata_only=True),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    manager=MANAGER,
    complain=complain,
)
