"""The writes that make children as they are desired: what is deleted, recreated, created and updated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.apply.children import Child, ChildAction, Method, sort_out
from lamina.core.model.events import warning
from lamina.core.model.object_map import differing
from lamina.core.model.plan import Action, Emit, Stage, delete
from lamina.families.metacontroller.labels import MANAGER
from lamina.families.metacontroller.sync.apply_strategy import ApplyStrategy
from lamina.families.metacontroller.sync.desired import (
    Desired,
    DesiredChildren,
    Key,
    desired_index,
    existing,
    observed,
    undesired,
)
from lamina.objects import meta
from lamina.objects.types import Condition, Obj

_RECREATE_FUTILE, _RECREATE_DELAYED = "RecreateFutile", "RecreateDelayed"


class ChildStages(Struct, frozen=True, kw_only=True):
    """The stages that write children, when to come back for those that have to wait, and what the status says of others."""

    stages: tuple[Stage, ...]
    requeue_after: timedelta | None
    condition: Condition | None
    """The condition AsDesired, where children are left otherwise than they are desired."""
    written: str
    """How many children are written, in words; empty for none."""
    differing: str
    """How many children are not as desired and are not written, in words; empty for none."""


def child_stages(
    strategy: ApplyStrategy, desired: DesiredChildren, names_in_use: Mapping[Key, Obj], now: datetime
) -> ChildStages:
    """Return the writes of all children; `names_in_use` has other objects with the name of a missing child."""
    view = strategy.view
    index = desired_index(view, desired.latest)
    unsettled = view.memo.update(
        _unsettled, "unsettled", desired.children, existing(view, index), strategy
    ).places
    by_key = {index.keys[place]: desired.children[place] for place in unsettled}
    there = observed(view)
    compared = _compared(strategy, by_key, desired.waiting, there, undesired(view, index))
    actions = sort_out(list(compared))
    deleted = [_existing(one) for one in actions.get(ChildAction.DELETE, ())]
    delays: list[timedelta] = []
    delayed: list[str] = []
    for one in actions.get(ChildAction.REPLACE, ()):
        delay = strategy.recreation_delay(by_key[one.key], _existing(one), now)
        if delay is not None:
            delays.append(delay)
            delayed.append(f"{one.key} was changed soon after it was made, and is recreated a little later")
        else:
            deleted.append(_existing(one))
    replaced = len(actions.get(ChildAction.REPLACE, ())) - len(delays)
    written: list[Action] = []
    taken = 0
    for one in actions.get(ChildAction.CREATE, ()):
        other = names_in_use.get(one.key)
        child = by_key[one.key]
        taken += other is not None
        written.append(
            strategy.create(child) if other is None else _name_taken(view.parent, one.key, other, now)
        )
    for one in actions.get(ChildAction.UPDATE, ()):
        written += strategy.update(by_key[one.key], _existing(one))
    futile = [
        f"{one.key} is not as its hook wants it, and recreating it would end the same: the server makes it so"
        for one in actions.get(ChildAction.KEEP, ())
        if _is_futile(strategy, by_key[one.key], _existing(one))
    ]
    written += [
        Emit(event=warning(view.parent, _RECREATE_FUTILE, text, by=MANAGER, now=now)) for text in futile
    ]
    stages = [Stage("delete children", tuple(map(delete, deleted)))] if deleted else []
    # A child that cannot be deleted delays no other; a claim that could not be written delays all.
    if written:
        after_failure = not desired.follows_claims
        stages.append(Stage("create and update children", tuple(written), run_after_failure=after_failure))

    def count(action: ChildAction) -> int:
        return len(actions.get(action, ()))

    # With server-side apply, only a dry run would show whether a child that is left differs.
    differ = "may differ" if view.setup.applies else "differ{s}"
    return ChildStages(
        stages=tuple(stages),
        requeue_after=min(delays, default=None),
        written=_listed(
            (count(ChildAction.CREATE) - taken, "{} created"),
            (count(ChildAction.UPDATE), "{} updated"),
            (replaced, "{} recreated"),
            (count(ChildAction.DELETE), "{} deleted"),
        ),
        differing=_listed(
            (count(ChildAction.LEAVE), f"{{children}} {differ} and {{are}} left (OnDelete)"),
            (count(ChildAction.WAIT), "{children} {are} being deleted"),
            (taken, "{children} cannot be created, because other objects have their names"),
            (len(futile), "{children} differ{s} and {are} left, because recreating would not help"),
            (len(delays), "{children} differ{s} and {are} recreated later"),
        ),
        condition=_not_as_desired(_RECREATE_FUTILE, futile) or _not_as_desired(_RECREATE_DELAYED, delayed),
    )


def _listed(*counts: tuple[int, str]) -> str:
    """Return how many children each of these holds of, without those that hold of none."""
    return ", ".join(what.format(number, **_agreeing(number)) for number, what in counts if number)


def _agreeing(number: int) -> dict[str, str]:
    """Return the words that differ between one child and several."""
    if number == 1:
        return {"children": "1 child", "are": "is", "s": "s"}
    return {"children": f"{number} children", "are": "are", "s": ""}


def _not_as_desired(reason: str, messages: Sequence[str]) -> Condition | None:
    if not messages:
        return None
    return Condition(type="AsDesired", status="False", reason=reason, message="; ".join(messages))


class Unsettled(Struct, frozen=True):
    """The places of the children that need a write or a message, and what they were found from."""

    desired: Sequence[Desired] = ()
    found: Sequence[Obj | None] = ()
    places: tuple[int, ...] = ()


def _unsettled(
    last: Unsettled | None, desired: Sequence[Desired], found: Sequence[Obj | None], strategy: ApplyStrategy
) -> Unsettled:
    """Compare the children that were unsettled or of which something changed; the others are still settled."""
    places: set[int] | range = range(len(desired))
    if last is not None and len(last.desired) == len(desired):
        places = {*last.places, *differing(desired, last.desired), *differing(found, last.found)}
    unsettled = sorted(
        place
        for place in places
        if (there := found[place]) is None or not strategy.is_settled(desired[place], there)
    )
    return Unsettled(desired, found, tuple(unsettled))


def _compared(
    strategy: ApplyStrategy,
    by_key: Mapping[Key, Desired],
    waiting: frozenset[Key],
    there: Mapping[Key, Obj],
    unwanted: Iterable[Key],
) -> Iterator[Child[Key]]:
    """Yield children as they are desired and as they are, those that are not desired first."""
    for key in sorted(unwanted):
        yield Child(key=key, desired=None, observed=there[key])
    for key, child in by_key.items():
        found, waits = there.get(key), key in waiting
        yield Child(
            key=key,
            desired=child.obj,
            observed=found,
            differs=found is not None and not waits and not strategy.is_as_desired(child, found),
            method=Method.ON_DELETE if waits else child.rule.method,
        )


def _existing(child: Child[Key]) -> Obj:
    assert child.observed is not None, "it exists"
    return child.observed


def _is_futile(strategy: ApplyStrategy, child: Desired, there: Obj) -> bool:
    """Say whether a child differs for good: the server makes something else of what is desired."""
    if child.rule.method is not Method.RECREATE or strategy.is_as_merged(child, there):
        return False
    return strategy.is_recreation_futile(child, there)


def _name_taken(parent: Obj, key: Key, other: Obj, now: datetime) -> Emit:
    """Report that another object has the name of a child; it is not ours, and is left alone."""
    owner = meta.controller_of(other)
    whose = (
        f"{owner['kind'].lower()} {owner['name']} controls it" if owner is not None else "it is not its own"
    )
    message = f"{meta.ref(parent)} cannot have {key}: {whose}"
    return Emit(event=warning(parent, "NameTaken", message, by=MANAGER, now=now))
