"""
The actions of a reconcile, as a value.

A plan is performed by an executor, or printed, or dropped. Its stages run in
order: a record is written before the actions that rely on it, since a later
stage starts when the earlier one is on the server.

An action on an existing object names the uid and the resourceVersion it was
decided on. The server refuses it if either has changed, and a refused action
leads to a new plan, never to the same action again.

An action is performed on the cluster that its `ref` names; without a name, on
the primary cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct, field

from lamina.core.model.queries import Query
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


class Counter(Struct, frozen=True, kw_only=True):
    """A metric that an action adds one to, once the server has accepted it; its name ends in `_total`."""

    name: str
    help: str
    labels: tuple[tuple[str, str], ...] = ()


class Create(Struct, frozen=True, kw_only=True):
    """Create an object."""

    obj: Obj
    cluster: str = ""
    counters: tuple[Counter, ...] = ()

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


class Patch(Struct, frozen=True, kw_only=True):
    """
    Change the fields named in `patch` (a JSON merge patch: null removes), and no others.

    Without a version, the patch applies to any later version of the object.
    """

    ref: Ref
    uid: str
    version: str
    patch: Obj
    subresource: str = ""
    counters: tuple[Counter, ...] = ()


class Replace(Struct, frozen=True, kw_only=True):
    """Update an object as a whole, for endpoints that accept nothing less."""

    obj: Obj
    subresource: str = ""
    cluster: str = ""
    counters: tuple[Counter, ...] = ()

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


class Apply(Struct, frozen=True, kw_only=True):
    """
    Server-side apply of the fields in `obj`.

    With `force`, fields that other managers own are taken over. With a uid it
    applies to that object only; without one it creates the object if it is absent.
    """

    obj: Obj
    force: bool = False
    manager: str = ""
    """The field manager, where it is not the controller's."""
    subresource: str = ""
    optional: bool = False
    """Whether the plan goes on where the server refuses it."""
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


class Post(Struct, frozen=True, kw_only=True):
    """Post a body to a subresource: a binding, an eviction."""

    ref: Ref
    body: Obj
    subresource: str


class Delete(Struct, frozen=True, kw_only=True):
    """Delete one object. Without a version, any later version of it is deleted as well."""

    ref: Ref
    uid: str
    version: str = ""
    propagation: Propagation = Propagation.BACKGROUND
    grace: int | None = None
    """The grace period in seconds; None for the object's own."""
    counters: tuple[Counter, ...] = ()


class DeleteAll(Struct, frozen=True, kw_only=True):
    """Delete every object of a kind in a namespace, cached or not; without a namespace, in the cluster."""

    kind: Kind
    namespace: str
    propagation: Propagation = Propagation.BACKGROUND
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return self.kind.ref(self.namespace, "", self.cluster)


class Emit(Struct, frozen=True, kw_only=True):
    """Create an Event. One that exists already, or is refused, does not fail the plan."""

    event: Obj
    counts: bool = False
    """Whether a repetition increments the count of the existing Event."""
    cluster: str = ""

    @property
    def ref(self) -> Ref:
        return meta.ref(self.event, self.cluster)


Action: TypeAlias = Create | Patch | Replace | Apply | Post | Delete | DeleteAll | Emit


def verb(action: Action) -> str:
    """Return the verb of an action's request, as in a rule of RBAC."""
    match action:
        case Create() | Post() | Emit():
            return "create"
        case Patch() | Apply():
            return "patch"
        case Replace():
            return "update"
        case Delete():
            return "delete"
        case DeleteAll():
            return "deletecollection"


class Stage(Struct, frozen=True):
    """
    Actions that are performed concurrently, all of them, whatever fails.

    The next stage starts only if none failed, unless it is marked
    `run_after_failure`, as a status that is a report. A stage with `min_interval`
    is a report that nothing depends on: it runs at most once in that time.
    """

    name: str
    actions: tuple[Action, ...]
    run_after_failure: bool = False
    min_interval: timedelta = timedelta(0)


class Gauge(Struct, frozen=True, kw_only=True):
    """A value of an owner that is shown as a metric, for as long as each of its plans has it."""

    name: str
    help: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Plan(Struct, frozen=True, kw_only=True):
    """
    The next actions, the reason, and when to reconcile again if no event comes before.

    The writes of a plan come back as events, so a next step needs no appointment.
    An empty plan means that nothing is left to do, or that something else has to
    change first.
    """

    stages: tuple[Stage, ...] = ()
    requeue_after: timedelta | None = None
    appointment: timedelta | None = None
    """When to reconcile again even if events come before; of two such appointments the earlier stands."""
    because: str = ""
    failure: LaminaError | None = None
    """An error that is reported on the object after the plan has been performed, and retried with backoff."""
    progress: Mapping[str, int] = field(default_factory=dict)
    """The number of targets of a rollout, by state."""
    gauges: tuple[Gauge, ...] = ()
    queries: tuple[Query, ...] = ()
    """What has to be read live before the plan is performed; with the answers, a new plan is made."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """Return all actions, in order."""
        return tuple(action for stage in self.stages for action in stage.actions)


NOTHING = Plan()


def is_outdated(action: Action, error: LaminaError) -> bool:
    """
    Say whether an action was refused only because the object has changed since the plan was made.

    NotFound on a create names the namespace, not the object; and a conflict with
    another field manager is not resolved by another read.
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
    """Return a patch of an object at the version that was read."""
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


def remove_finalizer(obj: Obj, *finalizers: str, cluster: str = "") -> Patch:
    """Return the patch that removes a finalizer, or several."""
    left = [one for one in meta.finalizers(obj) if one not in finalizers]
    return change_metadata(obj, cluster=cluster, finalizers=left)


def set_status(obj: Obj, status: Obj, cluster: str = "") -> Patch | None:
    """Return the patch that gives an object this status, or nothing where it has it already."""
    old = obj.get("status") or {}
    if old == status:
        return None
    # A status that is not an object is replaced as a whole.
    patch = {"status": create_merge_patch(old, status) if isinstance(old, Mapping) else status}
    return change(obj, patch, subresource="status", cluster=cluster)


def delete(obj: Obj, propagation: Propagation = Propagation.BACKGROUND, cluster: str = "") -> Delete:
    """Return the deletion of an object at the version that was read."""
    return Delete(
        ref=meta.ref(obj, cluster),
        uid=meta.uid(obj),
        version=meta.resource_version(obj),
        propagation=propagation,
    )


def in_stages(stages: Iterable[Stage], *, because: str, again: timedelta | None = None) -> Plan:
    """Return a plan with those of these stages that have actions."""
    left = tuple(one for one in stages if one.actions)
    return Plan(stages=left, requeue_after=again, because=because)


def one_stage(name: str, actions: Sequence[Action], *, because: str, again: timedelta | None = None) -> Plan:
    """Return a plan with a single stage, or an empty one if there are no actions."""
    stages = (Stage(name, tuple(actions)),) if actions else ()
    return Plan(stages=stages, requeue_after=again, because=because)
