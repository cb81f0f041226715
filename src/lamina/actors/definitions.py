"""
The end of a CustomResourceDefinition.

A definition that is to go takes its objects with it: that is said, they are
asked to go, and once the server has none left the definition is let go. Its
kind stays served until then, so that whoever holds an object back can let go of
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.definitions import DEFINITION, conditions_of, is_established, kinds_of, names_only
from lamina.core.plan import (
    NOTHING,
    Action,
    DeleteAll,
    Patch,
    Plan,
    change,
    one_stage,
    remove_finalizer,
)
from lamina.core.questions import Answers, Listed, Question, ReadAll
from lamina.core.world import Change, World, card
from lamina.errors import LaminaError, PlanFailed
from lamina.objects import meta
from lamina.objects.conditions import find, with_condition
from lamina.objects.kinds import Kind
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj, Ref

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_TERMINATING = "Terminating"
_EVENT = GroupKind("events.k8s.io", "Event")
_PATIENCE = timedelta(minutes=1)
_AGAIN = timedelta(seconds=5)

_IN_PROGRESS = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_UNCONFIRMED = (
    "True",
    "InstanceDeletionCheck",
    "could not confirm zero CustomResources remaining: context deadline exceeded",
)
_COMPLETED = ("False", "InstanceDeletionCompleted", "removed all instances")
_BEGUN = (_IN_PROGRESS, _UNCONFIRMED, _COMPLETED)
"""What the condition may say while objects are going, or have just gone."""
_NEVER = ("False", "NeverEstablished", "resource was never established")


class View(Struct, frozen=True, kw_only=True):
    """A definition on its way out, and the objects of its kind that are known."""

    definition: Obj
    kind: Kind | None
    """The kind in the first version that is served, None where none is or ever was."""
    instances: Sequence[Obj]


def gather(world: World, ref: Ref) -> View | None:
    definition = world.get(ref)
    if definition is None or not meta.is_deleting(definition) or FINALIZER not in meta.finalizers(definition):
        return None
    kind = next(iter(kinds_of(definition)), None) if is_established(definition) else None
    instances = world.every(kind.group_kind) if kind is not None else ()
    return View(definition=definition, kind=kind, instances=tuple(instances))


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Ask whether any object is really left, once there seems to be none."""
    if view.kind is None or view.instances or not _is_said(view.definition, _BEGUN):
        return ()
    asked = ReadAll(view.kind, "")
    return () if asked in answers else (asked,)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.kind is None:
        said = _NEVER if not is_established(view.definition) else _COMPLETED
        return _let_go(view, said, now)
    if not _is_said(view.definition, _BEGUN):
        say = _say(view.definition, _IN_PROGRESS, now)
        return one_stage("say so", [say], because="its objects go first", again=_AGAIN)
    answer = answers.get(ReadAll(view.kind, ""))
    instances = view.instances or (answer.objects if isinstance(answer, Listed) else ())
    if not instances:
        return _let_go(view, _COMPLETED, now)
    doomed = {meta.namespace(one) for one in instances if not meta.is_deleting(one)}
    if doomed:
        actions = [DeleteAll(kind=view.kind, namespace=namespace) for namespace in sorted(doomed)]
        return one_stage("delete its objects", actions, because="its objects go first", again=_AGAIN)
    return _wait(view, len(instances), now)


def _wait(view: View, left: int, now: datetime) -> Plan:
    because = f"waiting for {left} of its objects to go"
    since = moment(meta.metadata(view.definition).get("deletionTimestamp")) or now
    if now - since < _PATIENCE:
        return Plan(look_again=since + _PATIENCE - now, because=because)
    if _is_said(view.definition, [_UNCONFIRMED]):
        return Plan(because=because)
    return one_stage("say so", [_say(view.definition, _UNCONFIRMED, now)], because=because)


def _let_go(view: View, said: tuple[str, str, str], now: datetime) -> Plan:
    """Release the definition; if somebody else still holds it, first say that we do not."""
    others = any(one != FINALIZER for one in meta.finalizers(view.definition))
    if others and not _is_said(view.definition, [said]):
        say = _say(view.definition, said, now)
        return one_stage("say so", [say], because="none of its objects is left", again=_AGAIN)
    release: Action = remove_finalizer(view.definition, FINALIZER)
    return one_stage("let it go", [release], because="none of its objects is left")


def _is_said(definition: Obj, wanted: Sequence[tuple[str, str, str]]) -> bool:
    said = find(conditions_of(definition), _TERMINATING)
    return said is not None and (said["status"], said.get("reason"), said.get("message")) in wanted


def _say(definition: Obj, what: tuple[str, str, str], now: datetime) -> Patch:
    status, reason, message = what
    conditions = with_condition(
        conditions_of(definition), _TERMINATING, status, now=now, reason=reason, message=message
    )
    return change(definition, {"status": {"conditions": conditions}}, subresource="status")


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Say on the definition that its objects could not be deleted."""
    view = gather(world, ref)
    if view is None or not isinstance(error, PlanFailed):
        return NOTHING
    failures = [str(failure) for failure in error.failures]
    shown = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
    said = ("True", "InstanceDeletionFailed", f"could not issue all deletes: {shown}")
    if _is_said(view.definition, [said]):
        return NOTHING
    return one_stage("say so", [_say(view.definition, said, now)], because="its objects cannot be deleted")


def concerns(world: World, change: Change) -> Iterable[Ref]:
    """The end of a custom object concerns its definition, once that is on its way out."""
    if change.after is not None:
        return ()
    ref = Ref("apiextensions.k8s.io/v1", DEFINITION.kind, "", f"{change.kind.plural}.{change.kind.group}")
    definition = world.get(ref)
    return (ref,) if definition is not None and meta.is_deleting(definition) else ()


def _may_be_custom(kind: Kind) -> bool:
    # A group without a dot is built in. Of the others only their definitions know,
    # and a watch that is shared anyway costs nothing. Events come in their thousands,
    # and nobody else follows them under their second name.
    return "." in kind.group and kind.group_kind not in (DEFINITION, _EVENT) and kind.can("delete")


DEFINITIONS: Controller[View] = Controller(
    name="definitions",
    watches=(
        Watch(selects=only(*DEFINITION), concerns=itself, keep=names_only),
        Watch(selects=_may_be_custom, concerns=concerns, keep=card, metadata_only=True),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    manager=MANAGER,
    complain=complain,
)
