"""
All exceptions that Lamina raises.

    LaminaError
    ├── ApiError                  the API server refused a request; carries a Status
    │   ├── BadRequest            400  the request cannot be understood
    │   ├── Unauthorized          401  authentication failed
    │   ├── Forbidden             403  not authorized
    │   ├── NotFound              404
    │   ├── MethodNotAllowed      405
    │   ├── NotAcceptable         406  no such representation
    │   ├── AlreadyExists         409
    │   ├── Conflict              409  the write was based on a stale object
    │   ├── Gone                  410  the resource version has been compacted
    │   ├── TooLarge              413
    │   ├── UnsupportedMediaType  415
    │   ├── Invalid               422  carries the invalid fields
    │   ├── TooManyRequests       429
    │   ├── InternalError         500
    │   ├── Unclassified           400  invalid input without a reason in Kubernetes
    │   ├── Unavailable           503
    │   └── TimedOut              504
    ├── Unreachable               no response, or an invalid one; retry later
    ├── UnknownKind               the server does not serve that kind
    ├── UnknownCluster            a controller names a cluster that is not bound
    ├── CacheNotSynced                a cache has not synced yet; retry shortly
    ├── NotLeading                another replica is the leader for this owner
    ├── PlanFailed                some actions of a plan failed; carries them and their errors
    ├── SpecError                 a manifest is invalid; only an edit helps
    ├── RevisionNotFound          the history has no such revision
    ├── HookError                 a hook failed; retry later
    │   └── HookUnreachable       it could not be called from here: no connection, or no hooks file
    ├── NotSettled                  the simulation does not settle: controllers undo each other
    ├── SettingsError             a setting is invalid
    └── StoreError                the log cannot be read or written

The client raises the same classes as the server: an error is encoded as a Status
and decoded to the same class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lamina.objects.types import Ref

LIST_KINDS = (
    "list the served kinds with `kubectl api-resources`, or on a server of `lamina up` "
    "with `lamina kubectl api-resources`"
)


class LaminaError(Exception):
    """The root. `hint`, if there is one, is what to try next."""

    hint: str | None = None


class Cause(NamedTuple):
    """One invalid field; `reason` is one of Kubernetes' cause types."""

    reason: str
    message: str
    field: str

    def as_json(self) -> dict[str, str]:
        shown = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in shown.items() if value}


class ApiError(LaminaError):
    """The API server refused a request."""

    code: int = 500
    reason: str = "InternalError"
    """The reason of the class; an error that was decoded from a Status keeps the reason of the Status."""
    shows_details = False
    """Whether `details` is encoded even when it is empty, as for unknown paths."""
    is_page = False
    """Whether the response is plain text, as for unknown API groups."""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        causes: Sequence[Cause] = (),
        retry_after: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details else {}
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.metadata = dict(metadata) if metadata else {}

    def status(self) -> dict[str, Any]:
        """Return the Status object that encodes the error."""
        details = dict(self.details)
        if self.causes:
            details["causes"] = [cause.as_json() for cause in self.causes]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        shown: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            shown["reason"] = self.reason
        if details or self.shows_details:
            shown["details"] = details
        shown["code"] = self.code
        return shown


class BadRequest(ApiError):
    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    code = 403
    reason = "Forbidden"


class NotFound(ApiError):
    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    code = 406
    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    code = 409
    reason = "AlreadyExists"


class Conflict(ApiError):
    code = 409
    reason = "Conflict"


class Gone(ApiError):
    code = 410
    reason = "Expired"


class TooLarge(ApiError):
    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    code = 500
    reason = "InternalError"


class Unclassified(ApiError):
    """
    Invalid input for which the real server has no reason.

    It responds with 500, no reason, and this message. A retry gets the same response,
    so here it is a 400.
    """

    code = 400
    reason = "BadRequest"


class Unavailable(ApiError):
    code = 503
    reason = "ServiceUnavailable"


class TimedOut(ApiError):
    code = 504
    reason = "Timeout"


class Unreachable(LaminaError):
    """No response, or an invalid one: the connection failed, was lost, or is no HTTP."""


class UnknownKind(LaminaError):
    """The server does not serve that kind. This does not prove that its objects are gone."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')
        self.api_version = api_version
        self.kind = kind
        self.hint = LIST_KINDS


class UnknownCluster(LaminaError):
    """A controller names a cluster that it is not bound to."""

    def __init__(self, cluster: str, known: Iterable[str]) -> None:
        bound = ", ".join(sorted(known)) or "none but its own"
        super().__init__(f"cluster {cluster!r} is not bound: the bound clusters are {bound}")
        self.cluster = cluster


class CacheNotSynced(LaminaError):
    """A cache that a plan reads has not synced yet. No failure of the owner; retry shortly."""


class NotLeading(LaminaError):
    """Another replica leads this owner, or is about to: the plan is not carried out."""


def _named(failure: LaminaError, about: Ref | None, verb: str) -> str:
    """Return a failure with the verb and the object it is about, and with its cluster if that is not the primary one."""
    text = str(failure)
    # A refusal by RBAC names both; that of a webhook neither, and that of a schema only the object.
    if verb and about is not None and not (f"cannot {verb}" in text and about.name in text):
        text = f"{verb} {about._replace(cluster='')}: {text}"
    return f"on {about.cluster}: {text}" if about is not None and about.cluster else text


class PlanFailed(LaminaError):
    """
    Some actions of a plan failed. `failures` holds each error; the other actions were done.

    `about` holds the object of each failure and `verbs` the request that failed, as far as
    known, and `transient` whether the next plan resolves it: the plan was made from a stale cache, a cache has not
    synced yet, or another replica leads the owner.
    """

    def __init__(
        self,
        failures: Sequence[LaminaError],
        about: Sequence[Ref | None] = (),
        transient: Sequence[bool] = (),
        verbs: Sequence[str] = (),
    ) -> None:
        self.failures = tuple(failures)
        self.about = tuple(about) or (None,) * len(self.failures)
        self._verbs = tuple(verbs) or ("",) * len(self.failures)
        self.messages = tuple(map(_named, self.failures, self.about, self._verbs))
        """Each failure with its verb and object."""
        super().__init__("; ".join(self.messages))
        self._transient = tuple(transient) or (False,) * len(self.failures)

    @property
    def serious(self) -> PlanFailed | None:
        """Return the same without failures that the next plan resolves, or None if there are no others."""
        each = zip(self.failures, self.about, self._verbs, self._transient, strict=True)
        remaining = [one for *one, is_transient in each if not is_transient]
        if not remaining:
            return None
        failures, about, verbs = zip(*remaining, strict=True)
        return PlanFailed(failures, about, verbs=verbs)


class SpecError(LaminaError):
    """A manifest is invalid: the message names the field. Only an edit helps."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class RevisionNotFound(LaminaError):
    """The history of an owner holds no such revision. `hint` replaces the usual one."""

    def __init__(
        self, owner: Ref, wanted: int | None, have: Sequence[int], *, hint: str | None = None
    ) -> None:
        available = ", ".join(map(str, have)) or "none"
        requested = f"no revision {wanted}" if wanted else "no earlier revision to go back to"
        kept = (
            f"the current revision, {available}, is the only one kept"
            if hint is not None and len(have) == 1
            else f"the available revisions are {available}"
        )
        super().__init__(f"{owner} has {requested}: {kept}")
        self.hint = hint or f"show them with `lamina revisions list {owner.kind.lower()}/{owner.name}`"


class HookError(LaminaError):
    """
    A hook failed.

    `after` is set where the hook is only busy, which is not reported on the object:
    the seconds to wait before the next call, or 0 if it named none. `reached` says
    whether the hook responded, even if the response cannot be used. `body` is the
    beginning of a response that failed: events have it, and logs do not, because it
    may contain Secrets.
    """

    def __init__(
        self, message: str, *, after: float | None = None, reached: bool = True, body: str | None = None
    ) -> None:
        super().__init__(message)
        self.after = after
        self.reached = reached
        self.body = body

    @property
    def with_body(self) -> str:
        """Return the message with the body of the response, if there is one."""
        return str(self) if self.body is None else f"{self} body: {self.body}"


class HookUnreachable(HookError):
    """A hook could not be called from here: there is no connection to its server, or no hooks file with it."""


class NotSettled(LaminaError):
    """The simulation does not settle: at one point in time, each controller changes what another wrote."""


class SettingsError(LaminaError):
    """The command line, the environment or a file has an invalid setting."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class StoreError(LaminaError):
    """The log cannot be read or written."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


_BY_REASON: dict[str, type[ApiError]] = {
    error.reason: error
    for error in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, AlreadyExists, Conflict,
        Gone, TooLarge, UnsupportedMediaType, Invalid, TooManyRequests, InternalError, Unavailable, TimedOut,
    )
}  # fmt: skip
_BY_REASON["Gone"] = Gone
_BY_CODE: dict[int, type[ApiError]] = {error.code: error for error in reversed(list(_BY_REASON.values()))}
_BY_CODE[409] = Conflict


def from_status(status: Mapping[str, Any], code: int | None = None) -> ApiError:
    """Return the error of a Status, by its reason, then by its code, as in client-go."""
    code = status.get("code") or code or 500
    error = _BY_REASON.get(status.get("reason") or "") or _BY_CODE.get(code, ApiError)
    details = dict(status.get("details") or {})
    causes = [
        Cause(cause.get("reason", ""), cause.get("message", ""), cause.get("field", ""))
        for cause in details.pop("causes", None) or ()
    ]
    raised = error(
        status.get("message") or f"the server answered {code}",
        details=details,
        causes=causes,
        retry_after=details.pop("retryAfterSeconds", None),
        metadata=status.get("metadata"),
    )
    raised.details.pop("retryAfterSeconds", None)
    return raised
