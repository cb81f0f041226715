"""
SubjectAccessReviews, TokenReviews and the like: created and returned, never stored.

Every authenticated user may do everything, so access is always granted. A token is reviewed by the
authenticator that authenticates requests.
"""

from __future__ import annotations

from lamina.errors import BadRequest
from lamina.objects.types import Made
from lamina.server.admission.options import write_options
from lamina.server.admission.pipeline import read_body
from lamina.server.api.authn import Authenticator
from lamina.server.codec.negotiate import negotiate
from lamina.server.codec.response import encode
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response
from lamina.server.identity import Identity
from lamina.server.kinds.target import Target


class AccessReviews:
    """Serves access and token reviews."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def create(self, context: ServerContext, request: Request, target: Target) -> Response:
        """Return 201 with the review and its status."""
        kind = target.kind
        # A review has no Table and no metadata representation.
        representation = negotiate(request.headers.get("accept", ""), ())
        review = read_body(request, target, write_options(request, "CreateOptions"))
        review.setdefault("metadata", {})
        kind.shape.default(review)
        review["status"] = self._status(kind.kind, review, request.user)
        return encode({"kind": kind.kind, "apiVersion": kind.api_version, **review}, representation, 201)

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
