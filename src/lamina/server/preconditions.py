"""Which version and which object a write was meant for, and what is said where it finds another."""

from __future__ import annotations

from typing import Final

from lamina.errors import Conflict, Invalid, Unexplained
from lamina.server import words
from lamina.server.plane import Target

_NEEDS_VERSION: Final = frozenset(
    (
        *("poddisruptionbudgets.policy", "leases.coordination.k8s.io", "runtimeclasses.node.k8s.io"),
        *("csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io"),
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    )
)
"""Built-in kinds that, like custom ones, refuse an update which does not say what version it replaces."""


def check_version(target: Target, wanted: str, current: str, *, required: bool = False) -> None:
    """
    Refuse a write that was decided on another version of the object than the stored one.

    No version, or 0, means any; where the write has to be `required` to name
    one, some kinds do not take that.
    """
    if wanted == current:
        return
    if wanted and not (wanted.isascii() and wanted.isdigit()):
        raise Unexplained(f'strconv.ParseUint: parsing "{wanted}": invalid syntax')
    if int(wanted or "0"):
        raise words.conflict(target.kind, target.name)
    if required and (target.kind.custom or target.kind.bucket in _NEEDS_VERSION):
        raise _unsaid(target)


def _unsaid(target: Target) -> Invalid:
    return words.invalid_resource(
        target.kind,
        target.name,
        "metadata.resourceVersion",
        "Invalid value: 0: must be specified for an update",
    )


def check_uid(target: Target, wanted: str, actual: str) -> None:
    """Refuse a write that was meant for another object of the same name."""
    if wanted and wanted != actual:
        raise _another(target, wanted, actual)


def _another(target: Target, wanted: str, actual: str) -> Conflict:
    return words.conflict(
        target.kind,
        target.name,
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}",
    )
