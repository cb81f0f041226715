"""
What to watch, how to see it, how to plan: a controller, as a value.

It cannot run by itself. A worker gathers a view out of its world, puts its
questions, has it plan, and carries the plan out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from lamina.core.plan import NOTHING, Plan
from lamina.core.questions import Answers, Question
from lamina.core.world import Change, Keep, World, whole
from lamina.errors import LaminaError
from lamina.objects.kinds import Kind
from lamina.objects.types import Ref

View = TypeVar("View")

Selects: TypeAlias = Callable[[Kind], bool]
Concerns: TypeAlias = Callable[[World, Change], Iterable[Ref]]

EVERYWHERE = "*"
"""The cluster of a watch that is about every cluster its controller is bound to, at home and elsewhere."""


class Watch(Struct, frozen=True, kw_only=True):
    """
    Which kinds a controller follows, and whom a change to one of their objects concerns.

    Every kind the server serves and `selects` wants is watched, from when it
    appears until it disappears, in `api_version` or, without one, in the
    version the server prefers. `named` narrows the watch to objects of one
    name, `namespace` to those of one namespace (kinds without namespaces are
    not narrowed by it). With `metadata_only` nothing but metadata is fetched.

    Without a `cluster` it watches the one its controller is at home on. Another
    has a name that the controller chose for it; whoever runs the controller says
    which cluster that is. Clusters may also come and go, and be watched EVERYWHERE.
    """

    selects: Selects
    concerns: Concerns
    keep: Keep = whole
    metadata_only: bool = False
    named: str = ""
    namespace: str = ""
    api_version: str = ""
    cluster: str = ""
    delay: timedelta = timedelta(0)
    """How long whom it concerns may wait for more of the kind to happen, where many changes mean one step."""


class Controller(Struct, Generic[View], frozen=True, kw_only=True):
    """
    One controller.

    `gather` returns what the world has to say about one key, everything its
    planner may look at, or None if there is nothing to decide. `questions`
    returns what has still to be asked, given the answers so far; nothing once a
    plan can be made. A plan may ask for more yet, where what it is about to do is
    not to rest on what was seen alone (`decide`). `complain` plans how to say on the object that something
    went wrong. `manager` is the name under which the server records who wrote
    which field; `at_once` is how many keys are worked on side by side.
    """

    name: str
    watches: tuple[Watch, ...]
    gather: Callable[[World, Ref], View | None]
    plan: Callable[[View, Answers, datetime], Plan]
    questions: Callable[[View, Answers], tuple[Question, ...]] = lambda view, answers: ()
    complain: Callable[[World, Ref, LaminaError, datetime], Plan] = lambda world, ref, error, now: NOTHING
    manager: str = "lamina"
    at_once: int = 4
    period: timedelta | None = None
    """How long a key is left alone at most, however its last pass ended."""
    minds_kinds: bool = False
    """Whether it has to look at everything anew when other kinds are served than before."""
    farewell: Callable[[datetime], Plan] = lambda now: NOTHING
    """What is done once it has stopped for good."""
    edition: str = ""
    """Two controllers of one name and edition are the same one; another edition takes the place of the old."""


AnyController: TypeAlias = Controller[Any]


class Source(Struct, frozen=True, kw_only=True):
    """
    Controllers that come and go as objects do.

    `controllers` returns which there should be, given what `watches` see; whom a
    change there concerns is of no interest. It is asked again at each change.
    """

    name: str
    watches: tuple[Watch, ...]
    controllers: Callable[[World], tuple[AnyController, ...]]


def decide(
    controller: Controller[View], view: View, answers: Answers, now: datetime
) -> Plan | tuple[Question, ...]:
    """Return what is done about what was seen, or what has to be asked before that is known."""
    if asked := controller.questions(view, answers):
        return asked
    plan = controller.plan(view, answers, now)
    return tuple(one for one in plan.asks if one not in answers) or plan


def nobody(world: World, change: Change) -> Iterable[Ref]:
    """A change concerns nobody in particular."""
    return ()


def only(group: str, kind: str) -> Selects:
    """Select one kind."""
    # Asked of every kind there is, by every watch, whenever kinds come or go: most are told apart by their names.
    return lambda served: served.kind == kind and served.group == group


def itself(world: World, change: Change) -> Iterable[Ref]:
    """A change to an object concerns that object."""
    return (change.ref,)
