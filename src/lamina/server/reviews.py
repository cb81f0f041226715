"""
Questions about who may do what: created, answered, never stored.

Whoever is known to this server may do everything, and the answers say so; a
token is reviewed by the very authenticator that requests go through.
"""

from __future__ import annotations

from lamina.errors import BadRequest
from lamina.objects.types import Made
from lamina.server.admission import read_body
from lamina.server.identity import Authenticator
from lamina.server.negotiate import negotiate
from lamina.server.options import write_options
from lamina.server.plane import Plane, Target
from lamina.server.rendering import encode
from lamina.server.request import Answer, Identity, Request


class Reviews:
    """Answers reviews for one authenticator."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def create(self, plane: Plane, request: Request, target: Target) -> Answer:
        """Answer 201 with the review and its status."""
        kind = target.kind
        # There is no object to make a table or metadata of.
        wanted = negotiate(request.headers.get("accept", ""), ())
        review = read_body(request, target, write_options(request, "CreateOptions"))
        review.setdefault("metadata", {})
        kind.shape.default(review)
        review["status"] = self._status(kind.kind, review, request.user)
        return encode({"kind": kind.kind, "apiVersion": kind.api_version, **review}, wanted, 201)

    def _status(self, kind: str, review: Made, user: Identity) -> Made:
        match kind:
            case "SelfSubjectReview":
                return {"userInfo": _info(user)}
            case "TokenReview":
                return self._token(str((review.get("spec") or {}).get("token") or ""))
            case "SelfSubjectRulesReview":
                everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
                return {
                    "resourceRules": [everything],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                    "incomplete": False,
                }
            case _:
                return {"allowed": True}

    def _token(self, token: str) -> Made:
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        user = self._authenticator.bearer(token)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": _info(user)}


def _info(user: Identity) -> Made:
    info: Made = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    return info
