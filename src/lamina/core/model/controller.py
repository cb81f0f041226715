"""
A controller as a value: its watches, and the functions that gather a view and plan.

It does not run by itself. A worker gathers a view from its world, answers the
queries of the controller, and performs its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from lamina.core.model.plan import NOTHING, Plan
from lamina.core.model.queries import Answers, Query
from lamina.core.model.state import State
from lamina.core.model.world import CachedObject, Change, Derive, Keep, KeepDerived, World, whole
from lamina.errors import LaminaError
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, Ref

View = TypeVar("View")

Selects: TypeAlias = Callable[[Kind], bool]
Enqueue: TypeAlias = Callable[[World, Change], Iterable[Ref]]

EVERYWHERE = "*"
"""The cluster of a watch on every cluster: the primary one and all others that are bound."""


class Watch(Struct, frozen=True, kw_only=True):
    """
    The kinds that a controller watches, and the keys that a change of one of their objects enqueues.

    Every served kind for which `selects` is true is watched, from when it is
    served until it is not, in `api_version` or, without one, in the version the
    server prefers. `named` narrows the watch to objects of one
    name, `namespace` to those of one namespace (kinds without namespaces are
    not narrowed by it). With `metadata_only` nothing but metadata is fetched.
    `keep` reduces what is cached of an object; what `derive` computes from all of
    it is computed once per version and cached beside that (`world.derived`).

    Without a `cluster` it watches the primary cluster. Another cluster has a name
    that the controller chose; the manager binds the name to a cluster. A watch
    EVERYWHERE is on all clusters that are bound at the time.
    """

    selects: Selects
    enqueue: Enqueue
    keep: Keep = whole
    derive: Derive | None = None
    metadata_only: bool = False
    named: str = ""
    namespace: str = ""
    api_version: str = ""
    cluster: str = ""
    delay: timedelta = timedelta(0)
    """How long enqueued keys wait for more changes, where many changes lead to one reconcile."""

    @property
    def cached(self) -> Keep:
        """Return what a cache holds of an object; watches for which it is equal share a cache."""
        return self.keep if self.derive is None else KeepDerived(self.keep, self.derive)


class Controller(Struct, Generic[View], frozen=True, kw_only=True):
    """
    One controller.

    `gather` returns what the world holds about one key, which is all that its plan
    is made from, or None if there is nothing to decide. `queries` returns what has
    still to be queried, given the answers so far; nothing once a plan can be made.
    A plan may name more queries, where an action must not rest on a cache alone
    (`decide`). `complain` plans how an error is reported on the object. `manager`
    is the field manager; `at_once` is the number of concurrent reconciles.
    """

    name: str
    watches: tuple[Watch, ...]
    gather: Callable[[World, Ref], View | None]
    plan: Callable[[View, Answers, datetime], Plan]
    queries: Callable[[View, Answers], tuple[Query, ...]] = lambda view, answers: ()
    complain: Callable[[World, Ref, LaminaError, datetime], Plan] = lambda world, ref, error, now: NOTHING
    manager: str = "lamina"
    at_once: int = 4
    period: timedelta | None = None
    """The longest time between two reconciles of a key, however the last one ended."""
    resync_on_discovery: bool = False
    """Whether every key is enqueued when the served kinds change."""
    on_removed: Callable[[datetime], Plan] = lambda now: NOTHING
    """What is performed once the controller has been removed."""
    owner_state: Callable[[World, Ref], State | None] | None = None
    """Returns the state of the owner of a key, None for a key that is no owner; where keys are owners."""
    config_hash: str = ""
    """A controller of the same name with another hash replaces the old one."""


AnyController: TypeAlias = Controller[Any]


class Options(Struct, frozen=True, kw_only=True):
    """How many objects a controller reconciles at once, and how often each at least."""

    workers: int = 5
    flush: timedelta = timedelta(minutes=30)


DEFAULT_OPTIONS = Options()


class Source(Struct, frozen=True, kw_only=True):
    """
    Controllers that are created from objects.

    `controllers` returns the wanted controllers, given the world of `watches`, and
    is called again when what these watches keep of an object changes; their `enqueue`
    is not called. A watch that keeps no status is not affected by one that is written.
    """

    name: str
    watches: tuple[Watch, ...]
    controllers: Callable[[World], tuple[AnyController, ...]]


def is_same_but_newer(change: Change) -> bool:
    """Say whether a change is to nothing that is cached of an object but its version."""
    return change.preserves(_unversioned)


def _unversioned(obj: Obj) -> tuple[Obj, Any]:
    metadata = {name: value for name, value in meta.metadata(obj).items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}, obj.derived if isinstance(obj, CachedObject) else None


def decide(
    controller: Controller[View], view: View, answers: Answers, now: datetime
) -> Plan | tuple[Query, ...]:
    """Return the plan of a view, or the queries that have to be answered first."""
    if asked := controller.queries(view, answers):
        return asked
    plan = controller.plan(view, answers, now)
    return tuple(one for one in plan.queries if one not in answers) or plan


def no_keys(world: World, change: Change) -> Iterable[Ref]:
    """A change enqueues nothing."""
    return ()


def only(group: str, kind: str) -> Selects:
    """Select one kind; the same function each time, so that which kinds it selects is found out once."""
    return _only(group, kind)


@lru_cache(maxsize=4096)
def _only(group: str, kind: str) -> Selects:
    # Called for every kind and watch whenever kinds change: most differ by name, which is compared first.
    return lambda served: served.kind == kind and served.group == group


def one_of(kinds: Collection[GroupKind]) -> Selects:
    """Select these kinds."""
    return lambda served: served.group_kind in kinds


def itself(world: World, change: Change) -> Iterable[Ref]:
    """A change of an object enqueues that object."""
    return (change.ref,)
