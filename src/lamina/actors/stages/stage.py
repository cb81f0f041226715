"""
A stage: one transition of simulated objects, as a value.

It has a selector, a delay and the changes. A stage that selects containers is
played for each of them, not for the pod as a whole. Random choices are a digest
of the object's uid and the stage's name, so the same object always gets the same
result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import translate
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.actors.stages.path import Expression
from lamina.actors.stages.template import Template
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.durations import SECOND, nanoseconds
from lamina.objects.selectors import LabelSelector
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj

Test: TypeAlias = Callable[[Mapping[str, Any]], bool]
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Like", "NotLike")


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """A condition on the values of one expression. `Like` compares with patterns that contain `*` and `?`."""

    key: Expression
    operator: str
    values: tuple[str, ...] = ()
    is_met: Test = field(init=False)
    lasts: bool = field(init=False)
    """Whether no stage can change the result, because it depends on fields that stages do not write."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_met", _test(self.key, self.operator, self.values))
        object.__setattr__(self, "lasts", _lasts(self.key))


def _lasts(key: Expression) -> bool:
    field_names = key.field_names or ()
    # Of the metadata, stages change only finalizers.
    return not key.root and (
        field_names[:1] == ("spec",)
        or (field_names[:1] == ("metadata",) and field_names[1:2] not in ((), ("finalizers",)))
    )


class RequirementCache:
    """
    Results of requirements for one object: many stages share requirements.

    `for_next_stage` keeps the results that the last stage cannot have changed.
    """

    __slots__ = ("_found", "_lasting")

    def __init__(self, lasting: dict[Requirement, bool] | None = None) -> None:
        self._found: dict[Requirement | tuple[Requirement, ...], bool] = {}
        self._lasting: dict[Requirement, bool] = {} if lasting is None else lasting

    def for_next_stage(self) -> RequirementCache:
        return RequirementCache(self._lasting)

    def all_met(self, requirements: tuple[Requirement, ...], roots: Mapping[str, Any]) -> bool:
        """Say whether all are met, from the cache where possible."""
        found, lasting = self._found, self._lasting
        met = found.get(requirements)
        if met is not None:
            return met
        for one in requirements:
            so = lasting.get(one) if one.lasts else found.get(one)
            if so is None:
                so = one.is_met(roots)
                if one.lasts:
                    lasting[one] = so
                else:
                    found[one] = so
            if not so:
                found[requirements] = False
                return False
        found[requirements] = True
        return True


def _test(key: Expression, operator: str, values: tuple[str, ...]) -> Test:
    """Return a requirement compiled to a function, because it is evaluated often."""
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
    """The share of the selected objects that a stage applies to: a constant, or read from the object."""

    part: float = 1.0
    named: Expression | None = None

    def takes(self, obj: Obj, name: str) -> bool:
        if self is EVERYTHING:
            return True
        part = self.part
        if self.named is not None:
            part = share_of(self.named.first({"": obj}), otherwise=part)
        return part >= 1.0 or chance(obj, name) < part


EVERYTHING = Share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The objects that a stage applies to and, where it selects containers, which of theirs."""

    labels: LabelSelector | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    containers: tuple[Requirement, ...] | None = None
    share: Share = EVERYTHING

    only_requires: bool = field(init=False)
    """Whether it has only requirements, as most have."""

    def __post_init__(self) -> None:
        shared = self.share is not EVERYTHING and self.containers is None
        asks_more = self.labels is not None or bool(self.annotations) or shared
        object.__setattr__(self, "only_requires", not asks_more)

    def selects(self, obj: Obj, name: str) -> bool:
        """
        Say whether the stage of that name selects an object that meets the requirements.

        Where it selects containers, its share applies to them, later.
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
    The delay of a stage after a base time.

    The base is the latest of the times that `since` selects; without any, the
    latest timestamp of the object. `length` is in seconds, with a random part
    up to `most`. `named` selects a length from the object. With `doubles_with`
    the length doubles with each count beyond the first, up to `limit`. After
    `expires` the stage is no longer due. With `rounds` the base recurs, after
    pauses that double from the first to the longest, and with `lasts` a missed
    stage waits for the next round.
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
        """Return when the stage is due for an object; None where it has expired."""
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
        """Return how many times the base has recurred; 0 where it does not."""
        if self.rounds is None:
            return 0
        base = self._base(obj, {"": obj, "container": container})
        return _round(base, self.rounds, now)[2] if base is not None else 0

    def _base(self, obj: Obj, roots: Mapping[str, Any]) -> datetime | None:
        if self.since_deletion:
            return deletion_requested_at(obj)
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
            given = seconds(self.named.first(roots), now)
            length = length if given is None else given
        if self.doubles_with is not None:
            length *= 2 ** min(30, max(0, int(self.doubles_with.first(roots) or 0) - 1))
        if self.limit is not None:
            length = min(length, self.limit)
        if self.at_most is not None and (bound := seconds(self.at_most.first(roots), now)) is not None:
            length = min(length, bound)
        return length


def _round(base: datetime, pauses: tuple[float, float], now: datetime) -> tuple[datetime, datetime, int]:
    """Return when the current round began, when the next one does, and how many rounds preceded it."""
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
    found = [moment(meta.metadata(obj).get("creationTimestamp")), deletion_requested_at(obj)]
    status = obj.get("status") or {}
    found += [moment(one.get("lastTransitionTime")) for one in status.get("conditions") or ()]
    return found


def deletion_requested_at(obj: Obj) -> datetime | None:
    """Return when the deletion of an object was requested: deletionTimestamp is the end of the grace period."""
    metadata = meta.metadata(obj)
    ends = moment(metadata.get("deletionTimestamp"))
    return ends and ends - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)


def seconds(value: Any, now: datetime) -> float | None:
    """Return a duration in seconds, of a number, of a text such as `1m30s`, or until a timestamp."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    with suppress(ValueError):
        return nanoseconds(text) / SECOND
    if at := moment(text):
        return (at - now).total_seconds()
    try:
        return float(text)
    except ValueError:
        return None


def share_of(value: Any, *, otherwise: float) -> float:
    """Return a fraction, written `20%` or `0.2`."""
    text = str(value).strip() if value is not None else ""
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return otherwise
    return min(1.0, max(0.0, part))


def chance(obj: Obj, name: str) -> float:
    """Return a number between 0 and 1 that depends on an object's uid and a name alone."""
    return int(digest([meta.uid(obj), name])[:13], 16) / 16**13


class EventTemplate(Struct, frozen=True, kw_only=True):
    """An event of a stage: once, or once for each running container of a pod."""

    kind: str
    reason: Template
    message: Template
    for_each_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The changes of a stage."""

    status: Template | None = None
    container: Template | None = None
    events: tuple[EventTemplate, ...] = ()
    add_finalizers: tuple[str, ...] = ()
    remove_finalizers: tuple[str, ...] = ()
    empty_finalizers: bool = False
    delete: bool = False

    is_empty: bool = field(init=False)
    """Whether it changes nothing: an object that reaches such a stage stays there."""

    def __post_init__(self) -> None:
        changes = self.status, self.container, self.events, self.add_finalizers, self.remove_finalizers
        different = any(one not in (None, ()) for one in changes) or self.empty_finalizers or self.delete
        object.__setattr__(self, "is_empty", not different)


class Stage(Struct, frozen=True, kw_only=True):
    """One transition; of several matching stages the weights decide, or their order where none has a weight."""

    name: str
    kind: GroupKind
    selector: Selector
    delay: Delay
    next: Next
    weight: int = 0


def matching(stages: Sequence[Stage], obj: Obj, known: RequirementCache) -> list[Stage]:
    """Return the stages that match an object, or containers of it, in their order."""
    roots = {"": obj}
    found: list[Stage] = []
    for one in stages:
        selector = one.selector
        if known.all_met(selector.requirements, roots) and (
            selector.only_requires or selector.selects(obj, one.name)
        ):
            found.append(one)
    return found


def chosen_for_container(stages: Sequence[Stage], obj: Obj, container: Obj) -> Stage | None:
    """Return the stage, of those that select containers of an object, for one of its containers."""
    roots, known = {"": obj, "container": container}, RequirementCache()
    fitting = (
        one
        for one in stages
        # The share needs a digest, so it is checked last.
        if known.all_met(one.selector.containers or (), roots) and one.selector.share.takes(obj, one.name)
    )
    if not any(one.weight for one in stages):
        return next(fitting, None)
    return chosen(list(fitting), obj, container["name"])


def chosen(stages: Sequence[Stage], obj: Obj, about: str = "") -> Stage | None:
    """
    Return one of several matching stages.

    By their weights, where any has a weight; else the first. `about`
    distinguishes the choices for one object.
    """
    total = sum(one.weight for one in stages)
    if not total:
        return stages[0] if stages else None
    number = chance(obj, "/".join((about, *(one.name for one in stages)))) * total
    for one in stages:
        number -= one.weight
        if number < 0:
            return one
    return stages[-1]
