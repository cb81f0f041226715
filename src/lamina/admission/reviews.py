"""Answering an AdmissionReview: the question is taken apart, a check judges, and what it says becomes an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from lamina.core.admission import Attempt, Check, Leave
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects.types import GroupKind, Made, Obj

_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_REVIEWED = ("username", "uid", "groups", "extra")
_AT_ONCE = 32
"""How many questions of others are put to their own server at once: however many ask, it has more to do."""


class BadQuestion(Exception):
    """What was asked is no question."""


class Server(Protocol):
    """Who knows what somebody may do."""

    async def create(self, obj: Obj) -> Made: ...


class Reviewer:
    """Answers for some checks, by their paths; whether somebody may do something is asked of a server."""

    def __init__(self, checks: Sequence[Check], server: Server, log: Logger) -> None:
        self.checks = {check.path: check for check in checks}
        self._server, self._log = server, log
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def answer(self, path: str, body: bytes) -> bytes:
        """Return the answer to a question; BadQuestion where it is none. `path` has to be one of a check."""
        check = self.checks[path]
        try:
            review = orjson.loads(body)
            request = review["request"]
            uid, attempt = str(request["uid"]), _attempt(request)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise BadQuestion(f"this is no AdmissionReview: {wrong!r}") from None
        verdict = check.judge(attempt)
        refusal, code = verdict.refusal, 400
        if not refusal and verdict.leave is not None:
            refusal = await self._refusal(verdict.leave, attempt)
        said: Made = {"uid": uid, "allowed": not refusal}
        if refusal:
            told = f"{attempt.namespace}/{attempt.name}"
            self._log.info("write refused", check=check.name, object=told, because=refusal)
            said["status"] = {"code": code, "reason": "BadRequest", "message": refusal}
        if verdict.warnings:
            said["warnings"] = list(verdict.warnings)
        return orjson.dumps({"apiVersion": _VERSION, "kind": _KIND, "response": said})

    async def _refusal(self, leave: Leave, attempt: Attempt) -> str:
        """Return why the writer may not, or nothing if they may."""
        who = {field: attempt.user[field] for field in _REVIEWED if attempt.user.get(field)}
        # The same word for the same thing, but for this one.
        spec = {("user" if field == "username" else field): value for field, value in who.items()}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {**spec, "resourceAttributes": dict(leave.attributes)},
        }
        try:
            async with self._turns:
                answered = await self._server.create(review)
        except LaminaError as unheard:
            return f"whether that is allowed cannot be found out: {unheard}"
        return "" if (answered.get("status") or {}).get("allowed") is True else leave.refusal


def _attempt(request: Mapping[str, Any]) -> Attempt:
    kind = request["kind"]
    return Attempt(
        operation=str(request["operation"]),
        kind=GroupKind(str(kind["group"]), str(kind["kind"])),
        namespace=str(request.get("namespace") or ""),
        name=str(request.get("name") or ""),
        new=dict(request.get("object") or {}),
        old=dict(request.get("oldObject") or {}),
        user=dict(request.get("userInfo") or {}),
    )
