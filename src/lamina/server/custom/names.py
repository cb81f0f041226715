"""
Which CRD of a group may call its objects what, and so whether it is served.

Names are claimed in the order in which CRDs come. What is taken stays taken
until its owner goes or lets go; a CRD that asks for a taken name gets the rest
of its names, and is not served before it has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lamina.objects.conditions import is_true, with_condition
from lamina.objects.printing import quoted
from lamina.objects.types import Condition, Made, Obj
from lamina.server.custom.approval import approval_condition
from lamina.server.custom.conversion import has_invalid_bundle

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Held by a CRD on its way out until its objects are gone."""

NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"

_OF_RESOURCES: Final = ("plural", "singular")
_OF_KINDS: Final = ("kind", "listKind")
_CONFLICTS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def status_of(crd: Obj, others: Iterable[Obj], now: datetime) -> Made:
    """
    Return the status of a CRD beside the others of its group.

    Everything happens at once: names are accepted or not, the kind is
    established if they are, and a deletion that has begun is said to go on.
    """
    status: Mapping[str, Any] = crd.get("status") or {}
    accepted: Made = dict(status.get("acceptedNames") or {})
    conditions: list[Condition] = list(status.get("conditions") or ())
    wanted = crd["spec"]["names"]
    if accepted != wanted or not conditions:
        accepted, refusal = _claimed(wanted, accepted, [accepted, *map(_accepted, others)])
        reason, message = refusal or ("NoConflicts", "no conflicts found")
        conditions = with_condition(
            conditions,
            NAMES_ACCEPTED,
            "False" if refusal else "True",
            now=now,
            reason=reason,
            message=message,
        )
    conditions = _established(crd, conditions, now)
    if (approved := approval_condition(crd)) is not None:
        verdict, reason, message = approved
        name = "KubernetesAPIApprovalPolicyConformant"
        conditions = with_condition(conditions, name, verdict, now=now, reason=reason, message=message)
    if (crd.get("metadata") or {}).get("deletionTimestamp"):
        conditions = with_condition(
            conditions,
            TERMINATING,
            "True",
            now=now,
            reason="InstanceDeletionInProgress",
            message="CustomResource deletion is in progress",
        )
    return {
        **status,
        "conditions": conditions,
        "acceptedNames": {"kind": "", "plural": "", **accepted},
        "storedVersions": status.get("storedVersions"),
    }


def is_established(crd: Obj) -> bool:
    """Say whether a CRD is served."""
    return is_true((crd.get("status") or {}).get("conditions") or (), ESTABLISHED)


def is_terminating(crd: Obj) -> bool:
    """Say whether the objects of a CRD are being deleted, so that no new ones may be made."""
    return is_true((crd.get("status") or {}).get("conditions") or (), TERMINATING)


def _accepted(crd: Obj) -> Mapping[str, Any]:
    names: Mapping[str, Any] = (crd.get("status") or {}).get("acceptedNames") or {}
    return names


def _claimed(
    wanted: Mapping[str, Any], accepted: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]
) -> tuple[Made, tuple[str, str] | None]:
    """Return the names a CRD now has, and the last reason why it lacks one."""
    resources = {claim.get(name) for claim in claims for name in _OF_RESOURCES}
    resources.update(short for claim in claims for short in claim.get("shortNames") or ())
    kinds = {claim.get(name) for claim in claims for name in _OF_KINDS}
    names = dict(accepted)
    refusal: tuple[str, str] | None = None
    for field in ("plural", "singular", "shortNames", "kind", "listKind"):
        used = kinds if field in _OF_KINDS else resources
        asked = wanted.get(field)
        taken = _taken(asked, accepted.get(field), used)
        if taken:
            refusal = _CONFLICTS[field], _aggregated([f"{quoted(name)} is already in use" for name in taken])
        elif asked:
            names[field] = asked
        else:
            names.pop(field, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    return names, refusal


def _taken(asked: Any, accepted: Any, used: set[Any]) -> list[str]:
    if isinstance(asked, list):
        own = accepted or ()
        return [name for name in asked if name not in own and name in used]
    return [asked] if asked and asked != accepted and asked in used else []


def _aggregated(sentences: list[str]) -> str:
    unique = list(dict.fromkeys(sentences))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _established(crd: Obj, conditions: list[Condition], now: datetime) -> list[Condition]:
    if is_true(conditions, ESTABLISHED):
        return conditions
    verdict, reason, message = "False", "NotAccepted", "not all names are accepted"
    if is_true(conditions, NAMES_ACCEPTED):
        verdict, reason = "True", "InitialNamesAccepted"
        message = "the initial names have been accepted"
        if has_invalid_bundle(crd):
            verdict, reason = "False", "InvalidCABundle"
            message = "The conversion webhook CABundle is invalid"
    return with_condition(conditions, ESTABLISHED, verdict, now=now, reason=reason, message=message)
