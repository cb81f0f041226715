"""Kubernetes' cost limits; one unit is about fifty nanoseconds."""

from __future__ import annotations

from typing import Final

PER_CALL: Final = 1_000_000
"""The limit of one evaluation."""

PER_OBJECT: Final = 10_000_000
"""The limit of all rules of a custom resource, or of one policy binding."""

PER_MATCH_CONDITIONS: Final = 2_500_000
"""The limit of all match conditions of one webhook or policy."""

ESTIMATED_PER_RULE: Final = 10_000_000
"""The limit of the estimate of one CRD rule, for a whole object."""

ESTIMATED_PER_DEFINITION: Final = 100_000_000
"""The limit of the estimates of all rules of a CRD, for a whole object."""

REQUEST_BYTES: Final = 3 * 1024 * 1024
"""The request size limit, which bounds the size of all values."""

MESSAGE_BYTES: Final = 5 * 1024
"""The length limit of the result of a messageExpression."""


def cardinality(smallest: int) -> int:
    """Return how often a value of at least this many bytes of JSON can occur in one object."""
    return REQUEST_BYTES // (smallest + 1)
