"""Validation errors of CEL expressions in policies and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import Cause
from lamina.server import field_errors

if TYPE_CHECKING:
    from lamina.server.kinds.builtin.admission_cel.compiled import Expression


def expression_causes(made: Expression, path: str) -> list[Cause]:
    """Return the errors of an expression; a missing one is reported elsewhere."""
    if not made.problem:
        return []
    if made.internal:
        return [field_errors.internal(path, made.problem)]
    return [field_errors.invalid(path, made.text, made.problem)]
