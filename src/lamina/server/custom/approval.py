"""
The groups that belong to Kubernetes itself.

A CRD in one of them says in an annotation where it was approved, or owns up
that it was not.
"""

from __future__ import annotations

from typing import Final

from lamina.errors import Cause
from lamina.objects.printing import quoted
from lamina.objects.types import Obj
from lamina.objects.urls import BadUrl, parse_in_request
from lamina.server.fields import invalid, required

ANNOTATION: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def _state(crd: Obj) -> tuple[str, str] | None:
    """Return where the approval of a CRD stands, and a sentence about it; None for groups that need none."""
    group: str = (crd.get("spec") or {}).get("group") or ""
    if not any(group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io")):
        return None
    said: str = ((crd.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or ""
    must = f"protected groups must have approval annotation {quoted(ANNOTATION)}"
    if not said:
        return "Missing", f"{must}, {_SEE}"
    if said.startswith("unapproved"):
        return "Unapproved", f"not approved: {quoted(said)}"
    try:
        url = parse_in_request(said)
    except BadUrl:
        url = None
    if url is not None and url.host and url.scheme:
        return "Approved", f"approved in {said}"
    return "Invalid", f'{must} with either a URL or a reason starting with "unapproved", {_SEE}'


def validate_approval(crd: Obj, old: Obj | None) -> list[Cause]:
    """Return what is wrong with the approval of a CRD; one that stands as it stood is not asked about again."""
    found = _state(crd)
    if found is None or found[0] in ("Approved", "Unapproved"):
        return []
    if old is not None and (before := _state(old)) is not None and before[0] == found[0]:
        return []
    path = f"metadata.annotations[{ANNOTATION}]"
    if found[0] == "Missing":
        return [required(path, found[1])]
    return [invalid(path, crd["metadata"]["annotations"][ANNOTATION], found[1])]


def approval_condition(crd: Obj) -> tuple[str, str, str] | None:
    """Return status, reason and message of the condition about a CRD's approval; None if it needs none."""
    found = _state(crd)
    if found is None:
        return None
    state, sentence = found
    return "True" if state == "Approved" else "False", f"{state}Annotation", sentence
