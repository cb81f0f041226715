"""
The definitions of the kinds of this family.

A kind and its Cluster kind have the same schema. What a revision rolls out is immutable:
rules compare whole fields with their old values, as the definitions of upstream do, and
have its messages, which clients look for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from lamina.core.crd.schema_dsl import (
    AGE,
    CONDITION,
    choice,
    column,
    condition_path,
    definition,
    embedded,
    fields,
    immutable,
    immutable_once_set,
    label_selector,
    map_of,
    several,
    text,
    validated,
    whole,
    yes_or_no,
)
from lamina.core.health.probe_schema import PROBES
from lamina.families.objectset.descriptions import DESCRIPTIONS, KINDS
from lamina.families.objectset.labels import DEPLOYMENTS, PHASES, SETS, SLICES
from lamina.objects.types import GroupKind, Made, Obj

_DESTINATION = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
"""Not anchored, as upstream's: it requires a prefix and a slash."""

_OBJECTS: Obj = several(
    fields(
        {
            "object": embedded(),
            # Neither a default, which would hide that the default of the set applies, nor an enum: the
            # preflight of a set reports an unknown value beside its other violations.
            "collisionProtection": text(),
            "conditionMappings": several(
                fields(
                    {"sourceType": text(), "destinationType": text(pattern=_DESTINATION)},
                    "destinationType",
                    "sourceType",
                )
            ),
        },
        "object",
    )
)
# Manifests state the kind and group of previous revisions, which are those of the set itself.
_PREVIOUS: Obj = several(fields({"name": text(), "kind": text(), "group": text()}, "name"))
_PROGRESS_DEADLINE: Obj = whole(minimum=1)
_TEMPLATE_SPEC: Obj = {
    "phases": several(
        fields({"name": text(), "class": text(), "objects": _OBJECTS, "slices": several(text())}, "name")
    ),
    "availabilityProbes": PROBES,
    "successDelaySeconds": whole(),
    "collisionProtection": text(),
}

# The status

_CONDITIONS: Obj = several(CONDITION)
_CONTROLLER_OF: Obj = several(
    fields(
        {"kind": text(), "group": text(), "name": text(), "namespace": text(), "version": text()},
        "group",
        "kind",
        "name",
        "version",
    )
)


def _condition(type_: str, **rules: Any) -> Made:
    return column(type_, condition_path(type_, "status"), **rules)


_STATUS_REVISION = column("Revision", ".status.revision")


def _set() -> Iterator[Made]:
    frozen = ("previous", "phases", "availabilityProbes", "successDelaySeconds", "collisionProtection")
    spec = fields(
        {
            "lifecycleState": choice("Active", "Paused", "Archived", default="Active"),
            "previous": _PREVIOUS,
            "revision": whole("int64"),
            **_TEMPLATE_SPEC,
            "progressDeadlineSeconds": _PROGRESS_DEADLINE,
        },
        # Without a default, a set whose whole spec is removed would be compared with nothing.
        default={},
        **validated(*map(immutable, frozen), immutable_once_set("revision")),
    )
    status = fields(
        {
            "conditions": _CONDITIONS,
            "revision": whole("int64"),
            "remotePhases": several(fields({"name": text(), "uid": text()}, "name", "uid")),
            "controllerOf": _CONTROLLER_OF,
        }
    )
    columns = (
        _condition("Available"),
        _condition("Paused"),
        _condition("Archived", priority=1),
        _condition("Succeeded", priority=1),
        _condition("InTransition", priority=1),
        column("Revision", ".spec.revision"),
        AGE,
    )
    short = ("objset", "os"), ("clobjset", "cos")
    return _pair(SETS, fields({"spec": spec, "status": status}), columns, short)


def _deployment() -> Iterator[Made]:
    metadata = fields(
        {
            "name": text(),
            "namespace": text(),
            "labels": map_of(text()),
            "annotations": map_of(text()),
            "finalizers": several(text()),
        }
    )
    spec = fields(
        {
            "selector": label_selector(),
            "template": fields({"metadata": metadata, "spec": fields(_TEMPLATE_SPEC)}, "metadata", "spec"),
            "revisionHistoryLimit": whole(default=10),
            "paused": yes_or_no(),
            "progressDeadlineSeconds": _PROGRESS_DEADLINE,
        },
        "selector",
        "template",
    )
    status = fields(
        {
            "conditions": _CONDITIONS,
            "collisionCount": whole(),
            "templateHash": text(),
            "revision": whole("int64"),
            "controllerOf": _CONTROLLER_OF,
        }
    )
    available, progressing, paused = map(_condition, ("Available", "Progressing", "Paused"))
    columns = available, progressing, paused, _STATUS_REVISION, AGE
    # Upstream's are in another order.
    cluster_columns = available, _STATUS_REVISION, progressing, paused, AGE
    short = ("objdeploy", "od"), ("clobjdeploy", "cod")
    schema = fields({"spec": spec, "status": status}, "spec")
    return _pair(DEPLOYMENTS, schema, columns, short, cluster_columns)


def _phase() -> Iterator[Made]:
    frozen = ("revision", "previous", "availabilityProbes", "objects")
    spec = fields(
        {
            "paused": yes_or_no(),
            "revision": whole("int64"),
            "previous": _PREVIOUS,
            "availabilityProbes": PROBES,
            "objects": _OBJECTS,
        },
        "objects",
        "revision",
        **validated(*map(immutable, frozen)),
    )
    status = fields({"conditions": _CONDITIONS, "controllerOf": _CONTROLLER_OF})
    columns = _condition("Available"), _condition("Paused"), _STATUS_REVISION, AGE
    short = ("objsetphase", "osp"), ("clobjsetphase", "cosp")
    return _pair(PHASES, fields({"spec": spec, "status": status}, "spec"), columns, short)


def _slice() -> Iterator[Made]:
    frozen = {**_OBJECTS, **validated(immutable("objects", "self == oldSelf"))}
    return _pair(SLICES, fields({"objects": frozen}, "objects"), (AGE,), ((), ("clobjslice", "cosl")))


@cache
def definitions() -> tuple[Made, ...]:
    """Return the definitions, in the order they are to be made."""
    return (*_slice(), *_phase(), *_set(), *_deployment())


def _pair(
    kinds: tuple[GroupKind, GroupKind],
    schema: Obj,
    columns: Sequence[Obj],
    short: tuple[Sequence[str], Sequence[str]],
    cluster_columns: Sequence[Obj] = (),
) -> Iterator[Made]:
    """Yield the definitions of a kind and of its Cluster kind, which differ in their names and columns."""
    for kind, names, shown in zip(kinds, short, (columns, cluster_columns or columns), strict=True):
        yield definition(
            kind,
            f"{kind.kind.lower()}s",
            schema,
            versions=("v1alpha1",),
            descriptions=DESCRIPTIONS,
            description=KINDS[kind.kind],
            short=names,
            columns=shown,
            namespaced=kind is kinds[0],
        )
