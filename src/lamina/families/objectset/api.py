"""
The specs of the kinds of this family as structs.

Manifests and probes are not parsed. Manifests stay exactly as they are stated, with
fields that are null: null is a value of a nullable field.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from lamina.core.model.world import derived
from lamina.core.parse import emptied, read
from lamina.errors import SpecError
from lamina.objects.types import Obj

PROBES = "spec.availabilityProbes"
"""The field of the availability probes, for messages."""


class LifecycleState(StrEnum):
    """Whether a set is reconciled, only observed, or deleted and kept as history."""

    ACTIVE = "Active"
    PAUSED = "Paused"
    ARCHIVED = "Archived"


class CollisionProtection(StrEnum):
    """The known values of collisionProtection; any other one is a preflight violation."""

    PREVENT = "Prevent"
    IF_NO_CONTROLLER = "IfNoController"
    NONE = "None"


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """A part of a spec; field names are camel case in JSON."""


class ConditionMapping(_Part, frozen=True, kw_only=True):
    """A condition of an object that is copied into the status of its set."""

    source_type: str
    destination_type: str


class SetObject(_Part, frozen=True, kw_only=True):
    """An object of a phase; an empty collision protection means that of the set."""

    object: dict[str, Any]
    collision_protection: str = ""
    condition_mappings: tuple[ConditionMapping, ...] = ()


class TemplatePhase(_Part, frozen=True, kw_only=True):
    """A phase of a set; an empty class means that the controller of the set reconciles it."""

    name: str
    class_: str = field(name="class", default="")
    objects: tuple[SetObject, ...] = ()
    slices: tuple[str, ...] = ()


class PreviousRevision(_Part, frozen=True, kw_only=True):
    name: str


class TemplateSpec(_Part, frozen=True, kw_only=True):
    """What a template and the sets that are made from it have in common."""

    phases: tuple[TemplatePhase, ...] = ()
    availability_probes: tuple[dict[str, Any], ...] = ()
    success_delay_seconds: int = 0
    collision_protection: str = ""


class SetSpec(TemplateSpec, frozen=True, kw_only=True):
    """The spec of an ObjectSet; a revision of 0 means that none is stated."""

    lifecycle_state: LifecycleState = LifecycleState.ACTIVE
    previous: tuple[PreviousRevision, ...] = ()
    revision: int = 0
    progress_deadline_seconds: Annotated[int, Meta(ge=1)] | None = None

    @property
    def previous_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.previous)


class PhaseSpec(_Part, frozen=True, kw_only=True):
    """The spec of an ObjectSetPhase."""

    objects: tuple[SetObject, ...]
    revision: int
    paused: bool = False
    previous: tuple[PreviousRevision, ...] = ()
    availability_probes: tuple[dict[str, Any], ...] = ()

    @property
    def previous_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.previous)


class SliceObjects(_Part, frozen=True, kw_only=True):
    """The objects of an ObjectSlice, which are not below a spec."""

    objects: tuple[SetObject, ...]


class TemplateMetadata(_Part, frozen=True, kw_only=True):
    """The metadata of a template; sets get the labels, and the annotations only change the hash."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Template(_Part, frozen=True, kw_only=True):
    """
    The template of an ObjectDeployment, parsed, and as it is stated.

    Sets get a copy of `stated["spec"]`, and the hash is computed from `stated`.
    """

    metadata: TemplateMetadata
    spec: TemplateSpec
    stated: dict[str, Any] = field(default_factory=dict)


class DeploymentSpec(_Part, frozen=True, kw_only=True):
    """The spec of an ObjectDeployment; the selector is as it is stated."""

    selector: dict[str, Any]
    template: Template
    revision_history_limit: int = 10
    paused: bool = False
    progress_deadline_seconds: Annotated[int, Meta(ge=1)] | None = None


_MANIFEST = ("*", "object")
_MANIFESTS = ("phases", "*", "objects", *_MANIFEST)
"""Manifests are most of a spec, and are taken as they are stated: parsing would only copy them."""


def read_set(obj: Obj) -> SetSpec:
    """Parse an ObjectSet; SpecError names the field that is invalid."""
    parsed = derived(parse_set, obj)
    if isinstance(parsed, SpecError):
        raise SpecError(str(parsed))
    return parsed


def parse_set(obj: Obj) -> SetSpec | SpecError:
    """Parse an ObjectSet, once for each version that a cache keeps; the error is kept as well."""
    spec = obj.get("spec") or {}
    try:
        parsed = read(emptied(spec, _MANIFESTS), SetSpec)
    except SpecError as wrong:
        return wrong
    return replace(parsed, phases=_phases(parsed.phases, spec.get("phases")))


def read_deployment(obj: Obj) -> DeploymentSpec:
    """Parse an ObjectDeployment; SpecError names the field that is invalid."""
    spec = obj.get("spec") or {}
    parsed = read(emptied(spec, ("template", "spec", *_MANIFESTS)), DeploymentSpec)
    stated = spec["template"]
    phases = _phases(parsed.template.spec.phases, stated["spec"].get("phases"))
    template = replace(parsed.template.spec, phases=phases)
    return replace(parsed, template=replace(parsed.template, spec=template, stated=stated))


def read_phase(obj: Obj) -> PhaseSpec:
    """Parse an ObjectSetPhase; SpecError names the field that is invalid."""
    spec = obj.get("spec") or {}
    parsed = read(emptied(spec, ("objects", *_MANIFEST)), PhaseSpec)
    return replace(parsed, objects=_objects(parsed.objects, spec["objects"]))


def read_slice(obj: Obj) -> SliceObjects:
    """Parse an ObjectSlice; SpecError names the field that is invalid."""
    stated = obj.get("objects") or []
    return SliceObjects(
        objects=_objects(read(emptied(stated, _MANIFEST), tuple[SetObject, ...], "objects"), stated)
    )


def _phases(parsed: Sequence[TemplatePhase], stated: Sequence[Obj] | None) -> tuple[TemplatePhase, ...]:
    return tuple(
        replace(phase, objects=_objects(phase.objects, from_object.get("objects")))
        for phase, from_object in zip(parsed, stated or (), strict=True)
    )


def _objects(parsed: Sequence[SetObject], stated: Sequence[Obj] | None) -> tuple[SetObject, ...]:
    """Return the objects with their manifests as they are stated; parsing drops fields that are null."""
    return tuple(
        replace(one, object=from_object["object"])
        for one, from_object in zip(parsed, stated or (), strict=True)
    )
