"""The definition of a kind of this family, with its descriptions."""

from __future__ import annotations

from typing import Any

from lamina.core.crd import schema_dsl
from lamina.families.manifestwork.crds.descriptions import DESCRIPTIONS, KINDS
from lamina.objects.types import GroupKind, Made, Obj


def definition(kind: GroupKind, plural: str, shape: Obj, **more: Any) -> Made:
    """Return the definition of a kind; `more` is what core's has besides."""
    return schema_dsl.definition(
        kind, plural, shape, descriptions=DESCRIPTIONS, description=KINDS[kind.kind], **more
    )
