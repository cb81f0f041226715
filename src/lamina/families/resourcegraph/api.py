"""
The specs of the kinds of this family as structs.

The schema and the resources of a definition are its content: they stay exactly as they
are stated, and a revision is a copy of both. What is stated about revisions and their
propagation is not part of the content.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from lamina.core.model.world import derived
from lamina.core.parse import read
from lamina.errors import SpecError
from lamina.families.resourcegraph.labels import GROUP
from lamina.objects.types import GroupKind, Made, Obj


class RevisionPolicy(StrEnum):
    """Whether an edit of a definition is published at once, or on approval."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class UpdatePolicy(StrEnum):
    """Whether an instance follows new revisions of its definition, and whether its own edits are applied."""

    AUTO = "Auto"
    MANUAL = "Manual"
    PAUSED = "Paused"


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """A part of a spec; field names are camel case in JSON."""


class RevisionUpdatePolicy(_Part, frozen=True, kw_only=True):
    type: RevisionPolicy = RevisionPolicy.AUTOMATIC


class RevisionManagement(_Part, frozen=True, kw_only=True):
    """How many revisions are kept beside the current one, and when an edit becomes one."""

    history_limit: Annotated[int, Meta(ge=0)] | None = None
    update_policy: RevisionUpdatePolicy = RevisionUpdatePolicy()


class GeneratedSchema(_Part, frozen=True, kw_only=True):
    """The kind that a definition generates; its fields are stated as SimpleSchema."""

    kind: str
    api_version: str
    group: str = "kro.run"
    scope: str = "Namespaced"

    @property
    def is_namespaced(self) -> bool:
        return self.scope != "Cluster"

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.api_version}"


class DefinitionSpec(_Part, frozen=True, kw_only=True):
    """The spec of a ResourceGraphDefinition; the resources are read where they are compiled."""

    schema: GeneratedSchema
    resources: tuple[dict[str, Any], ...] = ()
    propagate_when: tuple[str, ...] = ()
    revision_management: RevisionManagement = RevisionManagement()


def parse_definition(obj: Obj) -> DefinitionSpec | SpecError:
    """Return the spec of a definition, or what is wrong with it; computed once per version of the object."""
    try:
        return read(obj.get("spec"), DefinitionSpec)
    except SpecError as wrong:
        return wrong


def read_definition(obj: Obj) -> DefinitionSpec:
    """Return the spec of a definition; raises SpecError, which names the field."""
    parsed = derived(parse_definition, obj)
    if isinstance(parsed, SpecError):
        raise parsed
    return parsed


def generated_kind(definition: Obj) -> GroupKind:
    """Return the kind that a definition generates."""
    schema = (definition.get("spec") or {}).get("schema") or {}
    return GroupKind(str(schema.get("group") or GROUP), str(schema.get("kind") or ""))


def content(spec: Obj) -> Made:
    """Return the content of a definition or of one of its revisions: what a revision is a copy of."""
    resources: Sequence[Obj] = spec.get("resources") or ()
    return {"schema": spec.get("schema") or {}, "resources": list(resources)}
