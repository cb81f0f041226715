"""
Is this object well, and how do we know.

A probe is a question about one object. Unknown is not well: a status written
for an older generation is no answer to the question that was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from lamina.objects import conditions, meta
from lamina.objects.types import Obj


class Answer(StrEnum):
    """What a probe says."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Verdict(Struct, frozen=True):
    """What a probe says about one object, and why."""

    answer: Answer
    because: str = ""

    @property
    def is_well(self) -> bool:
        return self.answer is Answer.TRUE


WELL = Verdict(Answer.TRUE)

Probe: TypeAlias = Callable[[Obj], Verdict]


def unknown(because: str) -> Verdict:
    return Verdict(Answer.UNKNOWN, because)


def unwell(because: str) -> Verdict:
    return Verdict(Answer.FALSE, because)


def has_condition(name: str, status: str | None = None, reason: str | None = None) -> Probe:
    """Return the probe that asks for a condition; what is None is not compared."""

    def ask(obj: Obj) -> Verdict:
        found = conditions.find(conditions.of(obj), name)
        if found is None:
            return unknown(f'required condition type missing: "{name}"')
        if status is not None and found.get("status") != status:
            return unwell(f'"{name}" condition status is "{found.get("status", "")}" (want "{status}")')
        if reason is not None and found.get("reason") != reason:
            return unwell(f'"{name}" condition reason is "{found.get("reason", "")}" (want "{reason}")')
        return WELL

    return ask


def has_observed_its_spec(obj: Obj) -> Verdict:
    """Ask whether the status of an object is about its present generation; one that does not say is believed."""
    status = obj.get("status")
    seen = status.get("observedGeneration") if isinstance(status, Mapping) else None
    if isinstance(seen, int) and 0 < seen < meta.generation(obj):
        return unknown("hasn't observed latest spec")
    return WELL


def all_of(probes: Iterable[Probe]) -> Probe:
    """Return the probe that is well where all are, and otherwise says what the first that is not said."""
    asked = tuple(probes)

    def ask(obj: Obj) -> Verdict:
        return next((verdict for probe in asked if not (verdict := probe(obj)).is_well), WELL)

    return ask
