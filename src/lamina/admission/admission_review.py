"""Answer an AdmissionReview: decode the request, run its check, encode the response."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from lamina.core.admission import AccessCheck, AdmissionCheck, AdmissionRequest
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects.types import GroupKind, Made, Obj

_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_REVIEWED = ("username", "uid", "groups", "extra")
_MAX_ACCESS_REVIEWS = 32
"""Concurrent SubjectAccessReviews per process, so that many writes do not overload the API server."""


class BadReview(Exception):
    """The body is no AdmissionReview."""


class Server(Protocol):
    """Creates SubjectAccessReviews."""

    async def create(self, obj: Obj) -> Made: ...


class Reviewer:
    """Runs admission checks by their paths; access is checked by SubjectAccessReviews."""

    def __init__(self, checks: Sequence[AdmissionCheck], server: Server, log: Logger) -> None:
        self.checks = {check.path: check for check in checks}
        self._server, self._log = server, log
        self._limit = asyncio.Semaphore(_MAX_ACCESS_REVIEWS)

    async def review(self, path: str, body: bytes) -> bytes:
        """Return the AdmissionReview that answers `body`; raises BadReview. `path` has to be the path of a check."""
        check = self.checks[path]
        try:
            review = orjson.loads(body)
            request = review["request"]
            uid, attributes = str(request["uid"]), _request(request)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadReview(f"this is no AdmissionReview: {error!r}") from None
        verdict = check.judge(attributes)
        refusal, code = verdict.refusal, 400
        if not refusal and verdict.leave is not None:
            refusal = await self._check_access(verdict.leave, attributes)
        response: Made = {"uid": uid, "allowed": not refusal}
        if refusal:
            target = f"{attributes.namespace}/{attributes.name}"
            self._log.info("write refused", check=check.name, object=target, because=refusal)
            response["status"] = {"code": code, "reason": "BadRequest", "message": refusal}
        if verdict.warnings:
            response["warnings"] = list(verdict.warnings)
        return orjson.dumps({"apiVersion": _VERSION, "kind": _KIND, "response": response})

    async def _check_access(self, access: AccessCheck, attributes: AdmissionRequest) -> str:
        """Return the message of a denied access check, or an empty string."""
        subject = {field: attributes.user[field] for field in _REVIEWED if attributes.user.get(field)}
        # SubjectAccessReview calls the username `user`; the other fields have the same names.
        spec = {("user" if field == "username" else field): value for field, value in subject.items()}
        review: Made = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {**spec, "resourceAttributes": dict(access.attributes)},
        }
        try:
            async with self._limit:
                review = await self._server.create(review)
        except LaminaError as error:
            return f"cannot check whether that is allowed: {error}"
        return "" if (review.get("status") or {}).get("allowed") is True else access.refusal


def _request(request: Mapping[str, Any]) -> AdmissionRequest:
    kind = request["kind"]
    return AdmissionRequest(
        operation=str(request["operation"]),
        kind=GroupKind(str(kind["group"]), str(kind["kind"])),
        namespace=str(request.get("namespace") or ""),
        name=str(request.get("name") or ""),
        new=dict(request.get("object") or {}),
        old=dict(request.get("oldObject") or {}),
        user=dict(request.get("userInfo") or {}),
    )
