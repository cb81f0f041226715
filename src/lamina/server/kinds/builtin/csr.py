"""CertificateSigningRequests: requester, approval and timestamps."""

from __future__ import annotations

from lamina.objects.types import Made, Obj


def request_created(request: Made, stamp: str) -> None:
    for name in ("username", "uid", "groups", "extra"):
        request["spec"].pop(name, None)


def sign_request(request: Made, username: str, uid: str, groups: list[str], extra: Obj) -> None:
    """Set the requester of a new CertificateSigningRequest."""
    identity_field = {"username": username, "uid": uid, "groups": list(groups), "extra": dict(extra)}
    request["spec"].update({name: value for name, value in identity_field.items() if value})


def request_status(request: Made, old: Obj, stamp: str) -> None:
    status, before = request["status"], (old.get("status") or {}).get("conditions") or []
    conditions = status.get("conditions") or []
    for kind in ("Approved", "Denied"):
        # Approval conditions are changed only through the approval subresource.
        previous = [condition for condition in before if condition["type"] == kind]
        positions = [position for position, condition in enumerate(conditions) if condition["type"] == kind]
        if len(previous) == len(positions):
            for position, condition in zip(positions, previous, strict=True):
                conditions[position] = condition
    _date_conditions(conditions, before, stamp)


def request_approval(request: Made, old: Obj, stamp: str) -> None:
    conditions = request["status"].get("conditions") or []
    before = old.get("status") or {}
    _date_conditions(conditions, before.get("conditions") or [], stamp)
    request["status"] = {name: value for name, value in before.items() if name != "conditions"}
    if conditions:
        request["status"]["conditions"] = conditions


def _date_conditions(conditions: list[Made], before: list[Made], stamp: str) -> None:
    for condition in conditions:
        if condition.get("lastUpdateTime") is None:
            condition["lastUpdateTime"] = stamp
        if condition.get("lastTransitionTime") is None:
            known = (
                was["lastTransitionTime"]
                for was in before
                if (was["type"], was["status"]) == (condition["type"], condition["status"])
                and was.get("lastTransitionTime") is not None
            )
            condition["lastTransitionTime"] = next(known, stamp)
