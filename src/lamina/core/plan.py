"""
What to do, as a value.

A plan is made once and carried out by somebody else, or printed, or thrown
away. It runs from the record to the deed: a later stage starts when the
earlier one is on the server.

An action on an object that exists names the uid and the resourceVersion it was
decided on. The server refuses it if either has moved on, and a refused action
leads to a new plan, never to the same action again.

An action is carried out on the cluster that its `ref` names; without a name,
that is the one the controller is at home on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct, field

from lamina.core.questions import Question
from lamina.errors import AlreadyExists, ApiError, Conflict, LaminaError, NotFound
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref


class Propagation(StrEnum):
    """What becomes of the dependents of an object that is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Create(Struct, frozen=True, kw_only=True):
    """Make an object that is not there."""

    obj: Obj
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


class Patch(Struct, frozen=True, kw_only=True):
    """
    Change the fields named in `patch` (a JSON merge patch: null removes), and no others.

    Without a version, whatever has become of the object since is no hindrance.
    """

    ref: Ref
    uid: str
    version: str
    patch: Obj
    subresource: str = ""


class Replace(Struct, frozen=True, kw_only=True):
    """Put an object in the place of the one it was made from, for endpoints that take nothing less."""

    obj: Obj
    subresource: str = ""
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


class Apply(Struct, frozen=True, kw_only=True):
    """
    State the fields we care about, and let the server keep the rest.

    With `force`, a field that another manager states is taken over. The object
    may name the uid it is meant for, and need not be there yet otherwise.
    """

    obj: Obj
    force: bool = False
    manager: str = ""
    """Under which name, where it is not the controller's own."""
    subresource: str = ""
    optional: bool = False
    """Whether it holds nothing up where the server refuses it."""
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


class Post(Struct, frozen=True, kw_only=True):
    """Hand something to a subresource that takes no less: a binding, an eviction. The server says what it did."""

    ref: Ref
    body: Obj
    subresource: str


class Delete(Struct, frozen=True, kw_only=True):
    """Ask for the end of one object. Without a version, whatever has become of it since counts as decided."""

    ref: Ref
    uid: str
    version: str = ""
    propagation: Propagation = Propagation.BACKGROUND
    grace: int | None = None
    """How many seconds it is given; None: as many as it asks for itself."""


class DeleteAll(Struct, frozen=True, kw_only=True):
    """Ask for the end of every object of a kind in a namespace, known or not; no namespace: the cluster."""

    kind: Kind
    namespace: str
    propagation: Propagation = Propagation.BACKGROUND
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return self.kind.ref(self.namespace, "", self.cluster)


class Emit(Struct, frozen=True, kw_only=True):
    """Tell whoever asks what happened. An event that is there already, or is refused, holds nothing up."""

    event: Obj
    counts: bool = False
    """Whether telling it again raises the count of the one that is there."""
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return meta.ref(self.event, self.cluster)


Action: TypeAlias = Create | Patch | Replace | Apply | Post | Delete | DeleteAll | Emit


class Stage(Struct, frozen=True):
    """
    Actions that may be done side by side, all of them, whatever fails.

    The next stage starts only if none failed, unless it is marked
    `even_after_failure`: a status that is a report. One with `patience` is a
    report that nothing depends on: it is made at most once in that time, and
    whatever has come together by then is in it.
    """

    name: str
    actions: tuple[Action, ...]
    even_after_failure: bool = False
    patience: timedelta = timedelta(0)


class Plan(Struct, frozen=True, kw_only=True):
    """
    What happens next, why, and when to look again if nothing is heard before.

    What a plan writes is heard of like everything else, so a next step needs no
    appointment. An empty plan says that everything is as it should be, or that
    somebody else has to move first.
    """

    stages: tuple[Stage, ...] = ()
    look_again: timedelta | None = None
    appointment: timedelta | None = None
    """When to look again whatever is heard before; of two such appointments the earlier stands."""
    because: str = ""
    failure: LaminaError | None = None
    """What is wrong all the same. The plan is carried out; then it is said on the object, and tried again later."""
    progress: Mapping[str, int] = field(default_factory=dict)
    """How many targets of a rollout stand where."""
    asks: tuple[Question, ...] = ()
    """What has to be looked at for real before it is carried out; with the answers, it is planned anew."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """Return everything the plan would do, in order."""
        return tuple(action for stage in self.stages for action in stage.actions)


NOTHING = Plan()


def is_outdated(action: Action, error: LaminaError) -> bool:
    """
    Say whether an action was refused only because what it was decided on has moved on.

    What is not found when something is made is not that thing, but what it was
    to be in; and fields that another manager states stay stated, however often one looks.
    """
    match action:
        case Create():
            return isinstance(error, AlreadyExists | Conflict)
        case Apply():
            return isinstance(error, AlreadyExists | Conflict) and not _is_disputed(error)
        case _:
            return isinstance(error, AlreadyExists | Conflict | NotFound)


def _is_disputed(error: ApiError) -> bool:
    return any(cause.reason == "FieldManagerConflict" for cause in error.causes)


def change(obj: Obj, patch: Obj, subresource: str = "", cluster: str = "") -> Patch:
    """Return the patch of an object as it was seen."""
    return Patch(
        ref=meta.ref(obj, cluster),
        uid=meta.uid(obj),
        version=meta.resource_version(obj),
        patch=patch,
        subresource=subresource,
    )


def change_metadata(obj: Obj, *, cluster: str = "", **fields: Any) -> Patch:
    """Return the patch that sets these fields of an object's metadata; an empty value removes the field."""
    return change(obj, {"metadata": {name: value or None for name, value in fields.items()}}, cluster=cluster)


def remove_finalizer(obj: Obj, finalizer: str, cluster: str = "") -> Patch:
    """Return the patch that lets an object go, as far as one finalizer is concerned."""
    left = [one for one in meta.finalizers(obj) if one != finalizer]
    return change_metadata(obj, cluster=cluster, finalizers=left)


def set_status(obj: Obj, status: Obj, cluster: str = "") -> Patch | None:
    """Return the patch that gives an object this status, or nothing where it has it already."""
    old = obj.get("status") or {}
    if old == status:
        return None
    # What is no object is replaced whole.
    patch = {"status": create_merge_patch(old, status) if isinstance(old, Mapping) else status}
    return change(obj, patch, subresource="status", cluster=cluster)


def delete(obj: Obj, propagation: Propagation = Propagation.BACKGROUND, cluster: str = "") -> Delete:
    """Return the deletion of an object as it was seen."""
    return Delete(
        ref=meta.ref(obj, cluster),
        uid=meta.uid(obj),
        version=meta.resource_version(obj),
        propagation=propagation,
    )


def one_stage(name: str, actions: Sequence[Action], *, because: str, again: timedelta | None = None) -> Plan:
    """Return a plan that is a single stage, or is empty if there is nothing to do in it."""
    stages = (Stage(name, tuple(actions)),) if actions else ()
    return Plan(stages=stages, look_again=again, because=because)
