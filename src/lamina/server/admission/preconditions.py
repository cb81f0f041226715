"""Preconditions of a write: the resource version and uid that it expects."""

from __future__ import annotations

from typing import Final

from lamina.errors import Conflict, Invalid, Unclassified
from lamina.server import status_errors
from lamina.server.kinds.target import Target

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
"""Built-in kinds that, like custom ones, require a resource version on update."""


def check_version(target: Target, wanted: str, current: str, *, required: bool = False) -> None:
    """
    Refuse a write with a resource version that is not the stored one.

    An empty version, or 0, matches any; some kinds require one on updates
    (`required`).
    """
    if wanted == current:
        return
    if wanted and not (wanted.isascii() and wanted.isdigit()):
        raise Unclassified(f'strconv.ParseUint: parsing "{wanted}": invalid syntax')
    if int(wanted or "0"):
        raise status_errors.conflict(target.kind, target.name)
    if required and (target.kind.custom or target.kind.bucket in _NEEDS_VERSION):
        raise _version_required(target)


def _version_required(target: Target) -> Invalid:
    return status_errors.invalid_resource(
        target.kind,
        target.name,
        "metadata.resourceVersion",
        "Invalid value: 0: must be specified for an update",
    )


def check_uid(target: Target, wanted: str, actual: str) -> None:
    """Refuse a write that expects another uid, so another object of the same name."""
    if wanted and wanted != actual:
        raise _uid_conflict(target, wanted, actual)


def _uid_conflict(target: Target, wanted: str, actual: str) -> Conflict:
    return status_errors.conflict(
        target.kind,
        target.name,
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}",
    )
