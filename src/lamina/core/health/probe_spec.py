"""
Probes as a spec states them: conditions, equal fields and CEL expressions, for objects that are selected.

An entry selects objects by kind and labels, and each of its probes has to be healthy for them.
An object that no entry selects is available as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson
from msgspec import Struct, to_builtins

from lamina.core.health.cel_probe import cel_probe
from lamina.core.health.probe import (
    Probe,
    ProbeResult,
    condition_is,
    conjunction,
    fields_are_equal,
    with_generation_guard,
)
from lamina.core.parse import read
from lamina.errors import BadRequest, SpecError
from lamina.objects import meta
from lamina.objects.digest import canonical
from lamina.objects.paths import Path
from lamina.objects.selectors import EVERYTHING, LabelSelector, from_object
from lamina.objects.types import GroupKind, Obj

_CACHED = 512
"""How many lists of probes stay compiled; all revisions of an owner often share one."""


class _Kind(Struct, frozen=True):
    kind: str
    group: str = ""


class _Requirement(Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class _Labels(Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Requirement, ...] = ()


class _Selector(Struct, frozen=True):
    kind: _Kind | None = None
    selector: _Labels | None = None


class _FieldsEqual(Struct, frozen=True, rename="camel"):
    field_a: str
    field_b: str


class _Condition(Struct, frozen=True):
    type: str
    status: str = "True"


class _Cel(Struct, frozen=True):
    rule: str
    message: str


class _Probe(Struct, frozen=True, rename="camel"):
    fields_equal: _FieldsEqual | None = None
    condition: _Condition | None = None
    cel: _Cel | None = None


class _Entry(Struct, frozen=True):
    selector: _Selector = _Selector()
    probes: tuple[_Probe, ...] = ()


class SelectedProbe(Struct, frozen=True):
    """One entry: a probe, and the objects that it is for."""

    probe: Probe
    kind: GroupKind | None = None
    """None for every kind."""
    labels: LabelSelector = EVERYTHING

    def selects(self, obj: Obj) -> bool:
        return self.kind in (None, _group_kind(obj)) and self.labels.matches(meta.labels(obj))


class Probes(Struct, frozen=True):
    """All probes of a spec, compiled."""

    entries: tuple[SelectedProbe, ...] = ()

    def probe(self, obj: Obj) -> ProbeResult:
        """Return whether a live object is available; one that no entry selects is."""
        return conjunction(entry.probe for entry in self.entries if entry.selects(obj))(obj)


def compile_probes(entries: Sequence[Obj], where: str) -> Probes:
    """
    Return the probes of a list of entries; equal ones are compiled once.

    Raises SpecError, which names all invalid fields and what to do about them; `where` is the
    field that has the entries.
    """
    if not entries:
        return _NONE
    try:
        return _compiled(canonical(entries), where)
    except _Invalid as invalid:
        raise SpecError("; ".join(invalid.errors)) from None


_NONE = Probes()


class _Invalid(Exception):
    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__(*errors)
        self.errors = errors


@lru_cache(maxsize=_CACHED)
def _compiled(written: bytes, where: str) -> Probes:
    errors: list[str] = []
    entries = [
        _entry(entry, f"{where}[{place}]", errors)
        for place, entry in enumerate(read(orjson.loads(written), tuple[_Entry, ...], where))
    ]
    if errors:
        raise _Invalid(errors)
    return Probes(tuple(entries))


def _entry(entry: _Entry, where: str, errors: list[str]) -> SelectedProbe:
    kind = entry.selector.kind
    probes = [_probe(probe, f"{where}.probes[{place}]", errors) for place, probe in enumerate(entry.probes)]
    return SelectedProbe(
        probe=with_generation_guard(conjunction(probe for probe in probes if probe is not None)),
        kind=GroupKind(kind.group, kind.kind) if kind is not None else None,
        labels=_labels(entry.selector.selector, f"{where}.selector.selector", errors),
    )


def _labels(selector: _Labels | None, where: str, errors: list[str]) -> LabelSelector:
    if selector is None:
        return EVERYTHING
    try:
        return from_object(to_builtins(selector))
    except BadRequest as invalid:
        errors.append(
            f"{where}: {invalid}: correct it; the operators are In and NotIn, with values, "
            "and Exists and DoesNotExist, without"
        )
        return EVERYTHING


def _probe(probe: _Probe, where: str, errors: list[str]) -> Probe | None:
    """Return a probe, the first member if it has several; None if it has none."""
    if (fields := probe.fields_equal) is not None:
        return fields_are_equal(_path(fields.field_a), _path(fields.field_b))
    if (condition := probe.condition) is not None:
        return condition_is(condition.type, condition.status)
    if (cel := probe.cel) is not None:
        try:
            return cel_probe(cel.rule, cel.message)
        except SpecError as invalid:
            errors.append(f"{where}.cel.rule: {invalid}")
    return None


def _path(field: str) -> Path:
    """Return the path of a field as `.status.replicas`; there is no way to quote a dot."""
    return tuple(field.strip(".").split("."))


def _group_kind(obj: Obj) -> GroupKind:
    api_version: Any = obj.get("apiVersion") or ""
    return GroupKind(str(api_version).rpartition("/")[0], str(obj.get("kind") or ""))
