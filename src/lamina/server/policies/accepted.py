"""What is wrong with an expression of a policy or a webhook, said where those are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import Cause
from lamina.server import fields

if TYPE_CHECKING:
    from lamina.server.policies.compiled import Expression


def expression_causes(made: Expression, path: str) -> list[Cause]:
    """Return what keeps an expression from being one; that there is none at all is said elsewhere."""
    if not made.problem:
        return []
    if made.internal:
        return [fields.internal(path, made.problem)]
    return [fields.invalid(path, made.text, made.problem)]
