"""
Probes: whether an object is healthy, and why.

A probe is a function of one object. Unknown is not healthy: a status that was written
for an older generation says nothing about the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.objects import conditions, meta
from lamina.objects.diff import ABSENT, is_same
from lamina.objects.digest import canonical
from lamina.objects.paths import Path, get, shown
from lamina.objects.types import Obj


class ProbeStatus(StrEnum):
    """The result of a probe."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ProbeResult(Struct, frozen=True):
    """The result of a probe of one object, and why."""

    answer: ProbeStatus
    because: str = ""

    @property
    def is_healthy(self) -> bool:
        return self.answer is ProbeStatus.TRUE


HEALTHY = ProbeResult(ProbeStatus.TRUE)
_LONGEST = 80
"""How many characters of a value a message shows."""

Probe: TypeAlias = Callable[[Obj], ProbeResult]


def unknown(because: str) -> ProbeResult:
    return ProbeResult(ProbeStatus.UNKNOWN, because)


def unhealthy(because: str) -> ProbeResult:
    return ProbeResult(ProbeStatus.FALSE, because)


def has_condition(name: str, status: str | None = None, reason: str | None = None) -> Probe:
    """Return the probe of a condition; a status or reason that is None is not compared."""

    def ask(obj: Obj) -> ProbeResult:
        found = conditions.find(conditions.of(obj), name)
        if found is None:
            return unknown(f'required condition type missing: "{name}"')
        if status is not None and found.get("status") != status:
            return unhealthy(f'"{name}" condition status is "{found.get("status", "")}" (want "{status}")')
        if reason is not None and found.get("reason") != reason:
            return unhealthy(f'"{name}" condition reason is "{found.get("reason", "")}" (want "{reason}")')
        return HEALTHY

    return ask


def condition_is(name: str, status: str = "True") -> Probe:
    """
    Return the probe of a condition that has to have a status.

    Unlike `has_condition` it is unknown where the condition is about another generation of the
    object, and where the conditions are no list of objects.
    """

    def ask(obj: Obj) -> ProbeResult:
        found = get(obj, ("status", "conditions"), ABSENT)
        if found is ABSENT:
            return unknown("missing .status.conditions")
        if not isinstance(found, list):
            return unknown("malformed .status.conditions")
        for condition in found:
            if not isinstance(condition, Mapping):
                return unknown("malformed .status.conditions")
            if condition.get("type") == name:
                return _judged(condition, obj)
        return unknown(f'missing .status.condition["{name}"]')

    def _judged(condition: Obj, obj: Obj) -> ProbeResult:
        if _is_about_another_generation(condition, obj):
            return unknown(f'.status.condition["{name}"] outdated')
        if condition.get("status") != status:
            return unhealthy(f'.status.condition["{name}"] is {condition.get("status") or "without status"}')
        return HEALTHY

    return ask


def fields_are_equal(one: Path, other: Path) -> Probe:
    """Return the probe of two fields that both have to exist and be equal."""
    names = [f".{shown(path)}" for path in (one, other)]

    def ask(obj: Obj) -> ProbeResult:
        values = [get(obj, path, ABSENT) for path in (one, other)]
        for name, value in zip(names, values, strict=True):
            if value is ABSENT:
                return unhealthy(f'"{name}" missing')
        if is_same(*values):
            return HEALTHY
        differ = f'"{names[0]}" != "{names[1]}"'
        if obj.get("kind") == "Secret":
            # Messages are read by more users than the data of a Secret.
            return unhealthy(differ)
        expected, got = map(_short, values)
        return unhealthy(f"{differ} expected: {expected} got: {got}")

    return ask


def _short(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def with_generation_guard(probe: Probe) -> Probe:
    """Return the probe that is unknown where the status of an object is about another generation of it."""

    def ask(obj: Obj) -> ProbeResult:
        status = obj.get("status")
        if isinstance(status, Mapping) and _is_about_another_generation(status, obj):
            return unknown(".status outdated")
        return probe(obj)

    return ask


def _is_about_another_generation(status: Obj, obj: Obj) -> bool:
    observed = status.get("observedGeneration")
    return isinstance(observed, int) and not isinstance(observed, bool) and observed != meta.generation(obj)


def has_observed_its_spec(obj: Obj) -> ProbeResult:
    """Probe whether the status of an object is about its current generation; one without observedGeneration is."""
    status = obj.get("status")
    seen = status.get("observedGeneration") if isinstance(status, Mapping) else None
    if isinstance(seen, int) and 0 < seen < meta.generation(obj):
        return unknown("hasn't observed latest spec")
    return HEALTHY


def all_of(probes: Iterable[Probe]) -> Probe:
    """Return the probe that is healthy where all are, with the result of the first that is not otherwise."""
    asked = tuple(probes)

    def ask(obj: Obj) -> ProbeResult:
        return next((verdict for probe in asked if not (verdict := probe(obj)).is_healthy), HEALTHY)

    return ask


def conjunction(probes: Iterable[Probe]) -> Probe:
    """
    Return the probe that is healthy where all are, with all that is wrong.

    Where one is unknown so is the result, with the reasons of those that are unknown only: what
    the others say may be outdated too.
    """
    asked = tuple(probes)

    def ask(obj: Obj) -> ProbeResult:
        results = [result for probe in asked if not (result := probe(obj)).is_healthy]
        if not results:
            return HEALTHY
        unsure = [result for result in results if result.answer is ProbeStatus.UNKNOWN]
        messages = dict.fromkeys(result.because for result in unsure or results)
        return ProbeResult((unsure or results)[0].answer, ", ".join(messages))

    return ask
