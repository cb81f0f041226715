"""Kubernetes' limits, in units of cost; one is about fifty nanoseconds."""

from __future__ import annotations

from typing import Final

PER_CALL: Final = 1_000_000
"""What evaluating one expression may cost."""

PER_OBJECT: Final = 10_000_000
"""What all the rules of a custom resource, or of one policy's binding, may cost together."""

PER_MATCH_CONDITIONS: Final = 2_500_000
"""What the match conditions of one webhook or policy may cost together."""

ESTIMATED_PER_RULE: Final = 10_000_000
"""What one rule of a CRD may be estimated to cost for a whole object."""

ESTIMATED_PER_DEFINITION: Final = 100_000_000
"""What all the rules of a CRD may be estimated to cost for a whole object."""

REQUEST_BYTES: Final = 3 * 1024 * 1024
"""The largest request there is; nothing in it can be longer."""

MESSAGE_BYTES: Final = 5 * 1024
"""The longest message a messageExpression may make."""


def cardinality(smallest: int) -> int:
    """Return how often something can occur in one object that takes at least so many bytes of JSON."""
    return REQUEST_BYTES // (smallest + 1)
