"""What the server refuses, and which refusals are worth a word on the object."""

from __future__ import annotations

from lamina.errors import ApiError, LaminaError, PlanFailed

_ENDING = "NamespaceTerminating"


def serious(error: LaminaError) -> tuple[LaminaError, ...]:
    """Return the refusals to complain about: a namespace that is ending takes nothing new, and that is no failure."""
    failures = error.failures if isinstance(error, PlanFailed) else (error,)
    return tuple(one for one in failures if not _is_of_ending_namespace(one))


def _is_of_ending_namespace(error: LaminaError) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == _ENDING for cause in error.causes)
