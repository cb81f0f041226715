"""
API groups that are reserved for Kubernetes.

A CRD in one of them needs an annotation with the URL of its approval, or the statement
that it is unapproved.
"""

from __future__ import annotations

from typing import Final

from lamina.errors import Cause
from lamina.objects.go_quote import quoted
from lamina.objects.types import Obj
from lamina.objects.urls import BadUrl, parse_in_request
from lamina.server.field_errors import invalid, required

ANNOTATION: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def _state(crd: Obj) -> tuple[str, str] | None:
    """Return the approval state of a CRD and its message; None if its group needs no approval."""
    group: str = (crd.get("spec") or {}).get("group") or ""
    if not any(
        group == is_reserved or group.endswith(f".{is_reserved}")
        for is_reserved in ("k8s.io", "kubernetes.io")
    ):
        return None
    annotation: str = ((crd.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or ""
    message = f"protected groups must have approval annotation {quoted(ANNOTATION)}"
    if not annotation:
        return "Missing", f"{message}, {_SEE}"
    if annotation.startswith("unapproved"):
        return "Unapproved", f"not approved: {quoted(annotation)}"
    try:
        url = parse_in_request(annotation)
    except BadUrl:
        url = None
    if url is not None and url.host and url.scheme:
        return "Approved", f"approved in {annotation}"
    return "Invalid", f'{message} with either a URL or a reason starting with "unapproved", {_SEE}'


def validate_approval(crd: Obj, old: Obj | None) -> list[Cause]:
    """Return the errors of a CRD's approval; an unchanged one is not checked again."""
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
    """Return status, reason and message of the approval condition; None if it needs none."""
    found = _state(crd)
    if found is None:
        return None
    state, sentence = found
    return "True" if state == "Approved" else "False", f"{state}Annotation", sentence
