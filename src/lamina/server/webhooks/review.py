"""The question that is put to a webhook, and what its answer means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from lamina.errors import ApiError, from_status
from lamina.objects.printing import quoted
from lamina.objects.types import Made
from lamina.server.declared import unregistered
from lamina.server.kind import Kind
from lamina.server.policies.attempt import Attempt

_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"
_KNOWN: Final = (_VERSION, "admission.k8s.io/v1beta1")
_LEAST: Final = 400


class BadAnswer(Exception):
    """What a webhook answered is no answer."""


def question(attempt: Attempt, kind: Kind, uid: str) -> bytes:
    """Return the AdmissionReview that asks about a write, in a version of its kind."""
    new, old = attempt.seen(kind)
    request = {"uid": uid, **attempt.request(kind), "object": new, "oldObject": old}
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": _VERSION, "request": request})


def verdict(name: str, body: bytes, uid: str) -> tuple[ApiError | None, list[str]]:
    """Return the refusal in an answer, if it is one, and what the writer is to be warned of."""
    answer = _answer(body, uid)
    warnings, status = answer.get("warnings") or [], answer.get("status") or {}
    if not isinstance(warnings, list) or not isinstance(status, dict):
        raise BadAnswer("failed to call webhook: warnings have to be a list, and a status a map")
    told = [one for one in warnings if isinstance(one, str)]
    return (None if answer.get("allowed") is True else _refused(name, status)), told


def _answer(body: bytes, uid: str) -> Mapping[str, Any]:
    try:
        review = orjson.loads(body)
    except ValueError as wrong:
        raise BadAnswer(f"failed to call webhook: this is not JSON: {wrong}") from None
    if not isinstance(review, dict):
        raise BadAnswer("failed to call webhook: this is no AdmissionReview")
    version, named = str(review.get("apiVersion") or _VERSION), str(review.get("kind") or _KIND)
    if named != _KIND or version not in _KNOWN:
        raise BadAnswer(f"failed to call webhook: {unregistered(version, named)}")
    if version != _VERSION:
        why = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
        raise BadAnswer(f"failed to call webhook: {why}")
    answer = review.get("response")
    if not isinstance(answer, dict):
        raise _invalid("webhook response was absent")
    if answer.get("uid") != uid:
        raise _invalid(f"expected response.uid={quoted(uid)}, got {quoted(str(answer.get('uid') or ''))}")
    if answer.get("patch") or answer.get("patchType"):
        raise _invalid("validating webhook may not return response.patch")
    return answer


def _invalid(why: str) -> BadAnswer:
    return BadAnswer(f"received invalid webhook response: {why}")


def _refused(name: str, status: Mapping[str, Any]) -> ApiError:
    denied = f"admission webhook {quoted(name)} denied the request"
    reason, details = status.get("reason") or "", status.get("details") or {}
    if not isinstance(reason, str) or not isinstance(details, dict):
        raise BadAnswer(
            "failed to call webhook: the reason of a status has to be text, and its details a map"
        )
    why = status.get("message") or reason
    made: Made = {
        "reason": reason,
        "message": f"{denied}: {why}" if why else f"{denied} without explanation",
        "details": details,
    }
    code = status.get("code")
    # A refusal is never told with the code of a success.
    code = code if isinstance(code, int) and code >= _LEAST else _LEAST
    error = from_status(made, code)
    error.code, error.reason = code, made["reason"]
    return error
