"""
A stage: one step that simulated objects go through, as a value.

Which objects, after how long, and what is different then. A stage that selects
containers is about each container it selects, and not about the pod as a whole.
Whatever is left to chance is a digest of the object's uid and the stage's name:
the same object always has the same luck.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import translate
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.actors.stages.expression import Expression
from lamina.actors.stages.template import Template
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.selectors import LabelSelector
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj

_UNIT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
Test: TypeAlias = Callable[[Mapping[str, Any]], bool]
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Like", "NotLike")


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """What one expression must or must not lead to. `Like` compares with patterns that have `*` and `?` in them."""

    key: Expression
    operator: str
    values: tuple[str, ...] = ()
    is_met: Test = field(init=False)
    lasts: bool = field(init=False)
    """Whether no stage can change the answer: it is about what an object was made to be."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_met", _test(self.key, self.operator, self.values))
        object.__setattr__(self, "lasts", _lasts(self.key))


def _lasts(key: Expression) -> bool:
    way = key.way or ()
    # Of its metadata, finalizers are what stages add and remove.
    return not key.root and (
        way[:1] == ("spec",) or (way[:1] == ("metadata",) and way[1:2] not in ((), ("finalizers",)))
    )


class Known:
    """
    What has been found out about one object, by the identity of what was asked: many stages require the same.

    `later` is the same for the object as the next stage leaves it.
    """

    __slots__ = ("_found", "_lasting")

    def __init__(self, lasting: dict[int, bool] | None = None) -> None:
        self._found: dict[int, bool] = {}
        self._lasting: dict[int, bool] = {} if lasting is None else lasting

    def later(self) -> Known:
        return Known(self._lasting)

    def all_met(self, requirements: tuple[Requirement, ...], roots: Mapping[str, Any]) -> bool:
        """Say whether all are met, and remember it."""
        found, lasting, asked = self._found, self._lasting, id(requirements)
        met = found.get(asked)
        if met is not None:
            return met
        for one in requirements:
            memo = lasting if one.lasts else found
            so = memo.get(id(one))
            if so is None:
                so = memo[id(one)] = one.is_met(roots)
            if not so:
                found[asked] = False
                return False
        found[asked] = True
        return True


def _test(key: Expression, operator: str, values: tuple[str, ...]) -> Test:
    """Return the question a requirement puts, made ready: it is put very often."""
    find = key.values
    match operator:
        case "Exists":
            return lambda roots: bool(find(roots))
        case "DoesNotExist":
            return lambda roots: not find(roots)
        case "In" | "NotIn":
            wanted, met = frozenset(values), operator == "In"

            def among(roots: Mapping[str, Any]) -> bool:
                for value in find(roots):
                    if (value if value.__class__ is str else _text(value)) in wanted:
                        return met
                return not met

            return among
        case _:
            alike = operator == "Like"

            def like(roots: Mapping[str, Any]) -> bool:
                for value in find(roots):
                    if _is_like(_text(value), values):
                        return alike
                return not alike

            return like


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@lru_cache(maxsize=4096)
def _is_like(text: str, patterns: tuple[str, ...]) -> bool:
    return any(re.match(translate(pattern), text) for pattern in patterns)


class Share(Struct, frozen=True, kw_only=True):
    """How many of those that would be selected are: a fixed part, or the part the object itself names."""

    part: float = 1.0
    named: Expression | None = None

    def takes(self, obj: Obj, name: str) -> bool:
        if self is EVERYBODY:
            return True
        part = self.part
        if self.named is not None:
            part = share_of(self.named.first({"": obj}), otherwise=part)
        return part >= 1.0 or chance(obj, name) < part


EVERYBODY = Share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which objects a stage is for and, where it is about containers, which of theirs."""

    labels: LabelSelector | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    containers: tuple[Requirement, ...] | None = None
    share: Share = EVERYBODY

    only_requires: bool = field(init=False)
    """Whether there is nothing to it but requirements: so it is with most."""

    def __post_init__(self) -> None:
        shared = self.share is not EVERYBODY and self.containers is None
        asks_more = self.labels is not None or bool(self.annotations) or shared
        object.__setattr__(self, "only_requires", not asks_more)

    def asks_for(self, obj: Obj, name: str) -> bool:
        """
        Say whether an object that meets the requirements is one of those the stage of that name is for.

        Where it is for some of the containers, whether it is for a share of them is asked once they are known.
        """
        if self.labels is not None and not self.labels.matches(meta.labels(obj)):
            return False
        if self.annotations:
            given = meta.annotations(obj)
            if any(given.get(key) != value for key, value in self.annotations):
                return False
        return self.containers is not None or self.share.takes(obj, name)


class Delay(Struct, frozen=True, kw_only=True):
    """
    How long after its base a stage is due.

    The base is the latest of the times that `since` leads to; where it leads to
    none, the latest that is known of the object. `length` is in seconds, up to
    `most` by the object's luck. `named` leads to what the object says about it
    itself. With `doubles_with` the length doubles with each count beyond the
    first, up to `limit`. After `expires` the stage is due no more. With `rounds`
    the base comes round again, after pauses that double from the first to the
    longest, and with `lasts` a stage that is missed waits for the next round.
    """

    length: float = 0.0
    most: float | None = None
    since: tuple[Expression, ...] = ()
    since_deletion: bool = False
    named: Expression | None = None
    doubles_with: Expression | None = None
    limit: float | None = None
    expires: Expression | None = None
    at_most: Expression | None = None
    rounds: tuple[float, float] | None = None
    lasts: float | None = None

    def due(self, obj: Obj, container: Obj | None, name: str, now: datetime) -> datetime | None:
        """Return when the stage is due for an object, or None where its time has passed."""
        roots = {"": obj, "container": container}
        base = self._base(obj, roots) or now
        if self.expires is not None:
            lasts = seconds(self.expires.first(roots), now)
            if lasts is not None and now >= base + timedelta(seconds=lasts):
                return None
        length = timedelta(seconds=self._length(obj, roots, name, now))
        if self.rounds is None:
            return base + length
        began, following, _ = _round(base, self.rounds, now)
        missed = self.lasts is not None and now >= began + length + timedelta(seconds=self.lasts)
        return (following if missed else began) + length

    def round_of(self, obj: Obj, container: Obj | None, now: datetime) -> int:
        """Return how many times the base has come round; nothing where it does not."""
        if self.rounds is None:
            return 0
        base = self._base(obj, {"": obj, "container": container})
        return _round(base, self.rounds, now)[2] if base is not None else 0

    def _base(self, obj: Obj, roots: Mapping[str, Any]) -> datetime | None:
        if self.since_deletion:
            return asked_to_go(obj)
        if self.since:
            found = [moment(str(value)) for one in self.since for value in one.values(roots)]
        else:
            found = _times(obj)
        return max((one for one in found if one is not None), default=None)

    def _length(self, obj: Obj, roots: Mapping[str, Any], name: str, now: datetime) -> float:
        length = self.length
        if self.most is not None and self.most > length:
            length += (self.most - length) * chance(obj, f"{name}/delay")
        if self.named is not None:
            said = seconds(self.named.first(roots), now)
            length = length if said is None else said
        if self.doubles_with is not None:
            length *= 2 ** min(30, max(0, int(self.doubles_with.first(roots) or 0) - 1))
        if self.limit is not None:
            length = min(length, self.limit)
        if self.at_most is not None and (bound := seconds(self.at_most.first(roots), now)) is not None:
            length = min(length, bound)
        return length


def _round(base: datetime, pauses: tuple[float, float], now: datetime) -> tuple[datetime, datetime, int]:
    """Return when the present round began, when the next one does, and how many there were before."""
    pause, longest = pauses
    number = 0
    while now >= (following := base + timedelta(seconds=pause)):
        if pause >= longest:
            whole = int((now - base).total_seconds() // longest)
            base += timedelta(seconds=whole * longest)
            return base, base + timedelta(seconds=longest), number + whole
        base, pause, number = following, min(pause * 2, longest), number + 1
    return base, following, number


def _times(obj: Obj) -> list[datetime | None]:
    found = [moment(meta.metadata(obj).get("creationTimestamp")), asked_to_go(obj)]
    status = obj.get("status") or {}
    found += [moment(one.get("lastTransitionTime")) for one in status.get("conditions") or ()]
    return found


def asked_to_go(obj: Obj) -> datetime | None:
    """Return when the deletion of an object was asked for: its timestamp says when its grace ends."""
    metadata = meta.metadata(obj)
    ends = moment(metadata.get("deletionTimestamp"))
    return ends and ends - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)


def seconds(value: Any, now: datetime) -> float | None:
    """Return a length of time: a number of seconds, a text such as `1m30s`, or the way to a moment."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    parts = _UNIT.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if at := moment(text):
        return (at - now).total_seconds()
    try:
        return float(text)
    except ValueError:
        return None


def share_of(value: Any, *, otherwise: float) -> float:
    """Return a part of a whole, written `20%` or `0.2`."""
    text = str(value).strip() if value is not None else ""
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return otherwise
    return min(1.0, max(0.0, part))


def chance(obj: Obj, name: str) -> float:
    """Return an object's luck in the matter of a name: always the same, between 0 and 1."""
    return int(digest([meta.uid(obj), name])[:13], 16) / 16**13


class Telling(Struct, frozen=True, kw_only=True):
    """An event that a stage tells: once, or once for each container of a pod that runs."""

    kind: str
    reason: Template
    message: Template
    for_each_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What is different once a stage has come."""

    status: Template | None = None
    container: Template | None = None
    events: tuple[Telling, ...] = ()
    add_finalizers: tuple[str, ...] = ()
    remove_finalizers: tuple[str, ...] = ()
    empty_finalizers: bool = False
    delete: bool = False

    is_rest: bool = field(init=False)
    """Whether nothing is different: who comes to such a stage stays there."""

    def __post_init__(self) -> None:
        changes = self.status, self.container, self.events, self.add_finalizers, self.remove_finalizers
        different = any(one not in (None, ()) for one in changes) or self.empty_finalizers or self.delete
        object.__setattr__(self, "is_rest", not different)


class Stage(Struct, frozen=True, kw_only=True):
    """One step; `weight` decides where several are possible, and their order where none has any."""

    name: str
    kind: GroupKind
    selector: Selector
    delay: Delay
    next: Next
    weight: int = 0


def possible(stages: Sequence[Stage], obj: Obj, known: Known) -> list[Stage]:
    """Return the stages that are for an object, or for containers of it, in their order."""
    roots = {"": obj}
    found: list[Stage] = []
    for one in stages:
        selector = one.selector
        if known.all_met(selector.requirements, roots) and (
            selector.only_requires or selector.asks_for(obj, one.name)
        ):
            found.append(one)
    return found


def chosen_by(stages: Sequence[Stage], obj: Obj, container: Obj) -> Stage | None:
    """Return which of the stages that are for containers of an object one of its containers comes to."""
    roots, known = {"": obj, "container": container}, Known()
    fitting = (
        one
        for one in stages
        # Luck is a digest, so it is asked last.
        if known.all_met(one.selector.containers or (), roots) and one.selector.share.takes(obj, one.name)
    )
    if not any(one.weight for one in stages):
        return next(fitting, None)
    return chosen(list(fitting), obj, container["name"])


def chosen(stages: Sequence[Stage], obj: Obj, about: str = "") -> Stage | None:
    """
    Return which of several possible stages an object comes to.

    By their weights and the object's luck, where any has a weight; else the
    first. `about` tells one choice from another that the object has to make.
    """
    total = sum(one.weight for one in stages)
    if not total:
        return stages[0] if stages else None
    luck = chance(obj, "/".join((about, *(one.name for one in stages)))) * total
    for one in stages:
        luck -= one.weight
        if luck < 0:
            return one
    return stages[-1]
