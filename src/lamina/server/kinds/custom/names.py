"""
The names of CRDs within a group, and whether they are accepted.

Names are accepted in the order in which CRDs are created, and stay accepted until the CRD is
deleted or changes them. A CRD with a conflicting name gets its other names, and is not
served before all of them are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lamina.objects.conditions import is_true, with_condition
from lamina.objects.go_quote import quoted
from lamina.objects.types import Condition, Made, Obj
from lamina.server.kinds.custom.approval import approval_condition
from lamina.server.kinds.custom.conversion import has_invalid_bundle

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


def definition_status(crd: Obj, others: Iterable[Obj], now: datetime) -> Made:
    """
    Return the status of a CRD, given the other CRDs of its group.

    It sets the accepted names, the Established condition if all are accepted, and the
    Terminating condition.
    """
    status: Mapping[str, Any] = crd.get("status") or {}
    accepted: Made = dict(status.get("acceptedNames") or {})
    conditions: list[Condition] = list(status.get("conditions") or ())
    wanted = crd["spec"]["names"]
    if accepted != wanted or not conditions:
        accepted, refusal = _accept(wanted, accepted, [accepted, *map(_accepted, others)])
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
        accepted_condition, reason, message = approved
        name = "KubernetesAPIApprovalPolicyConformant"
        conditions = with_condition(
            conditions, name, accepted_condition, now=now, reason=reason, message=message
        )
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
    """Return whether a CRD is served."""
    return is_true((crd.get("status") or {}).get("conditions") or (), ESTABLISHED)


def is_terminating(crd: Obj) -> bool:
    """Return whether the objects of a CRD are being deleted, so that none may be created."""
    return is_true((crd.get("status") or {}).get("conditions") or (), TERMINATING)


def _accepted(crd: Obj) -> Mapping[str, Any]:
    names: Mapping[str, Any] = (crd.get("status") or {}).get("acceptedNames") or {}
    return names


def _accept(
    wanted: Mapping[str, Any], accepted: Mapping[str, Any], others_names: Sequence[Mapping[str, Any]]
) -> tuple[Made, tuple[str, str] | None]:
    """Return the accepted names of a CRD, and the last reason why a name is not accepted."""
    resources = {claim.get(name) for claim in others_names for name in _OF_RESOURCES}
    resources.update(short for claim in others_names for short in claim.get("shortNames") or ())
    kinds = {claim.get(name) for claim in others_names for name in _OF_KINDS}
    names = dict(accepted)
    refusal: tuple[str, str] | None = None
    for field in ("plural", "singular", "shortNames", "kind", "listKind"):
        used = kinds if field in _OF_KINDS else resources
        requested = wanted.get(field)
        taken = _accept_list(requested, accepted.get(field), used)
        if taken:
            refusal = _CONFLICTS[field], _aggregated([f"{quoted(name)} is already in use" for name in taken])
        elif requested:
            names[field] = requested
        else:
            names.pop(field, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    return names, refusal


def _accept_list(requested: Any, accepted: Any, used: set[Any]) -> list[str]:
    if isinstance(requested, list):
        own = accepted or ()
        return [name for name in requested if name not in own and name in used]
    return [requested] if requested and requested != accepted and requested in used else []


def _aggregated(sentences: list[str]) -> str:
    unique = list(dict.fromkeys(sentences))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _established(crd: Obj, conditions: list[Condition], now: datetime) -> list[Condition]:
    if is_true(conditions, ESTABLISHED):
        return conditions
    accepted_condition, reason, message = "False", "NotAccepted", "not all names are accepted"
    if is_true(conditions, NAMES_ACCEPTED):
        accepted_condition, reason = "True", "InitialNamesAccepted"
        message = "the initial names have been accepted"
        if has_invalid_bundle(crd):
            accepted_condition, reason = "False", "InvalidCABundle"
            message = "The conversion webhook CABundle is invalid"
    return with_condition(
        conditions, ESTABLISHED, accepted_condition, now=now, reason=reason, message=message
    )
