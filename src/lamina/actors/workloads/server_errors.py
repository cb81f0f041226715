"""The errors of writes that are reported on an object."""

from __future__ import annotations

from lamina.errors import ApiError, LaminaError, PlanFailed

_ENDING = "NamespaceTerminating"


def reportable(error: LaminaError) -> tuple[LaminaError, ...]:
    """Return the errors to report, without those of a terminating namespace."""
    failures = error.failures if isinstance(error, PlanFailed) else (error,)
    return tuple(one for one in failures if not _is_of_ending_namespace(one))


def _is_of_ending_namespace(error: LaminaError) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == _ENDING for cause in error.causes)
