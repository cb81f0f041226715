"""The AdmissionReview that a webhook is sent, and the decoding of its response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from lamina.errors import ApiError, from_status
from lamina.objects.go_quote import quoted
from lamina.objects.types import Made
from lamina.server.admission.policies.attributes import Attributes
from lamina.server.codec.typemeta import unregistered
from lamina.server.kinds.kind import Kind

_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"
_KNOWN: Final = (_VERSION, "admission.k8s.io/v1beta1")
_MIN_CODE: Final = 400


class InvalidReview(Exception):
    """The response of a webhook is invalid."""


def review_request(attributes: Attributes, kind: Kind, uid: str) -> bytes:
    """Return the AdmissionReview of a write, in a version of its kind."""
    new, old = attributes.converted(kind)
    request = {"uid": uid, **attributes.request(kind), "object": new, "oldObject": old}
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": _VERSION, "request": request})


def parse_review(name: str, body: bytes, uid: str) -> tuple[ApiError | None, list[str]]:
    """Return the error of a response that denies the write, or None, and its warnings."""
    answer = _answer(body, uid)
    warnings, status = answer.get("warnings") or [], answer.get("status") or {}
    if not isinstance(warnings, list) or not isinstance(status, dict):
        raise InvalidReview("failed to call webhook: warnings have to be a list, and a status a map")
    message = [one for one in warnings if isinstance(one, str)]
    return (None if answer.get("allowed") is True else _refused(name, status)), message


def _answer(body: bytes, uid: str) -> Mapping[str, Any]:
    try:
        review = orjson.loads(body)
    except ValueError as wrong:
        raise InvalidReview(f"failed to call webhook: this is not JSON: {wrong}") from None
    if not isinstance(review, dict):
        raise InvalidReview("failed to call webhook: this is no AdmissionReview")
    version, named = str(review.get("apiVersion") or _VERSION), str(review.get("kind") or _KIND)
    if named != _KIND or version not in _KNOWN:
        raise InvalidReview(f"failed to call webhook: {unregistered(version, named)}")
    if version != _VERSION:
        reason = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
        raise InvalidReview(f"failed to call webhook: {reason}")
    answer = review.get("response")
    if not isinstance(answer, dict):
        raise _invalid("webhook response was absent")
    if answer.get("uid") != uid:
        raise _invalid(f"expected response.uid={quoted(uid)}, got {quoted(str(answer.get('uid') or ''))}")
    if answer.get("patch") or answer.get("patchType"):
        raise _invalid("validating webhook may not return response.patch")
    return answer


def _invalid(reason: str) -> InvalidReview:
    return InvalidReview(f"received invalid webhook response: {reason}")


def _refused(name: str, status: Mapping[str, Any]) -> ApiError:
    denied = f"admission webhook {quoted(name)} denied the request"
    reason, details = status.get("reason") or "", status.get("details") or {}
    if not isinstance(reason, str) or not isinstance(details, dict):
        raise InvalidReview(
            "failed to call webhook: the reason of a status has to be text, and its details a map"
        )
    detail = status.get("message") or reason
    made: Made = {
        "reason": reason,
        "message": f"{denied}: {detail}" if detail else f"{denied} without explanation",
        "details": details,
    }
    code = status.get("code")
    # A denial never has a success code.
    code = code if isinstance(code, int) and code >= _MIN_CODE else _MIN_CODE
    error = from_status(made, code)
    error.code, error.reason = code, made["reason"]
    return error
