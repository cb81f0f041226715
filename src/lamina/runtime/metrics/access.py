"""
Who may read metrics: a bearer token whose user may `get` the path, as the API server reviews it.

A TokenReview says whose token it is, and a SubjectAccessReview whether that user may
get the non-resource URL. The result is kept for a while: a scrape is not a reason for
two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from time import monotonic
from typing import NamedTuple

from lamina.client.client import Client
from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.objects.types import Obj

_ALLOWED_SECONDS, _REFUSED_SECONDS = 60.0, 10.0
_MAX_KEPT = 1000
_SCHEME = "bearer "


class _Result(NamedTuple):
    status: HTTPStatus
    until: float


class MetricsAccess:
    """Reviews the tokens of requests for one path."""

    def __init__(self, client: Client, path: str, log: Logger, now: Callable[[], float] = monotonic) -> None:
        self._client, self._path, self._log, self._now = client, path, log, now
        self._kept: dict[bytes, _Result] = {}

    async def review(self, headers: Mapping[str, str]) -> HTTPStatus:
        """Return the status of a request: 200, 401 without a valid token, 403 for a user who may not read the path."""
        given = headers.get("Authorization", "")
        token = given[len(_SCHEME) :].strip() if given.lower().startswith(_SCHEME) else ""
        if not token:
            return HTTPStatus.UNAUTHORIZED
        key, now = sha256(token.encode()).digest(), self._now()
        kept = self._kept.get(key)
        if kept is not None and now < kept.until:
            return kept.status
        try:
            status = await self._review(token)
        except LaminaError as error:
            self._log.warning("a token for metrics could not be reviewed", because=str(error))
            return HTTPStatus.INTERNAL_SERVER_ERROR
        self._keep(
            key, _Result(status, now + (_ALLOWED_SECONDS if status is HTTPStatus.OK else _REFUSED_SECONDS))
        )
        return status

    def _keep(self, key: bytes, result: _Result) -> None:
        self._kept.pop(key, None)
        self._kept[key] = result
        if len(self._kept) > _MAX_KEPT:
            del self._kept[next(iter(self._kept))]

    async def _review(self, token: str) -> HTTPStatus:
        answer = await self._client.create(_token_review(token))
        reviewed = answer.get("status") or {}
        if reviewed.get("authenticated") is not True:
            return HTTPStatus.UNAUTHORIZED
        answer = await self._client.create(_access_review(reviewed.get("user") or {}, self._path))
        allowed = (answer.get("status") or {}).get("allowed") is True
        return HTTPStatus.OK if allowed else HTTPStatus.FORBIDDEN


def _token_review(token: str) -> Obj:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}


def _access_review(user: Obj, path: str) -> Obj:
    spec = {
        "user": user.get("username"),
        "uid": user.get("uid"),
        "groups": user.get("groups"),
        "extra": user.get("extra"),
        "nonResourceAttributes": {"path": path, "verb": "get"},
    }
    given = {name: value for name, value in spec.items() if value}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": given}
