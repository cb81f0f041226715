"""
Everything lamina raises on purpose.

    LaminaError
    ├── ApiError                  the API server said no; carries a Status
    │   ├── BadRequest            400  the request cannot be understood
    │   ├── Unauthorized          401  we do not know who asks
    │   ├── Forbidden             403  we know, and refuse
    │   ├── NotFound              404
    │   ├── MethodNotAllowed      405
    │   ├── NotAcceptable         406  no such representation
    │   ├── AlreadyExists         409
    │   ├── Conflict              409  we acted on an old view; look again
    │   ├── Gone                  410  that part of the log has been compacted
    │   ├── TooLarge              413
    │   ├── UnsupportedMediaType  415
    │   ├── Invalid               422  carries the fields that were wrong
    │   ├── TooManyRequests       429
    │   ├── InternalError         500
    │   ├── Unexplained           400  bad input that a real server has no word for
    │   ├── Unavailable           503
    │   └── TimedOut              504
    ├── Unreachable               nobody answered, or not in words we know; try later
    ├── UnknownKind               the server does not serve that kind
    ├── UnknownCluster            a controller names a cluster that nobody told us how to reach
    ├── NotSeenYet                a first look at something takes longer than one waits; try shortly
    ├── NotLeading                another replica works for this owner now
    ├── PlanFailed                some actions of a plan were refused; carries which, and why
    ├── SpecError                 a manifest asks for something meaningless; nothing helps but an edit
    ├── RevisionNotFound          history does not go there
    ├── HookError                 somebody else's webhook failed; try later
    ├── Restless                  on paper, the same moment never ends: controllers undo each other
    ├── SettingsError             the command line or a file asks for something meaningless
    └── StoreError                the log cannot be read or written

The client raises the classes the server raises: an error is born once, travels
as a Status, and is the same class on the other side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lamina.objects.types import Ref


class LaminaError(Exception):
    """The root. `hint`, where there is one, says what to try next."""

    hint: str | None = None


class Cause(NamedTuple):
    """One thing that was wrong with one field; `reason` is a word of Kubernetes' own list."""

    reason: str
    message: str
    field: str

    def as_json(self) -> dict[str, str]:
        shown = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in shown.items() if value}


class ApiError(LaminaError):
    """The API server said no."""

    code: int = 500
    reason: str = "InternalError"
    """Each class has its own; what somebody else refused keeps theirs."""
    shows_details = False
    """Whether `details` is said even when there is nothing in it, as for paths that no kind answers."""
    is_page = False
    """Whether this is said as plain text, as for paths of groups that nobody serves."""

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
        """Return the Status object that says this on the wire."""
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


class Unexplained(ApiError):
    """
    Bad input that the real server has no word for.

    It answers 500 without a reason, in these words. The fault is the sender's,
    and whoever asks again gets the same answer, so here it is a 400.
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
    """Nobody answered, or not in words we know: the connection failed, broke off, or spoke something else."""


class UnknownKind(LaminaError):
    """The server does not serve that kind. This is no proof that its objects are gone."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')
        self.api_version = api_version
        self.kind = kind
        self.hint = "see what is served with `lamina kubectl api-resources`"


class UnknownCluster(LaminaError):
    """A controller names a cluster that it is not bound to."""

    def __init__(self, cluster: str, known: Iterable[str]) -> None:
        bound = ", ".join(sorted(known)) or "none beside its own"
        super().__init__(f"nobody said which cluster {cluster!r} is: the clusters bound are {bound}")
        self.cluster = cluster


class NotSeenYet(LaminaError):
    """What a planner asked to see has not been seen in full yet. Nobody's fault; try again shortly."""


class NotLeading(LaminaError):
    """Another replica works for this owner now, or will in a moment: what was planned is not done."""


def _said_of(failure: LaminaError, about: Ref | None) -> str:
    """Return what failed, with where it was where that is another cluster than the one at home."""
    return f"on {about.cluster}: {failure}" if about is not None and about.cluster else str(failure)


class PlanFailed(LaminaError):
    """
    Some actions of a plan were refused. `failures` holds each error; the other actions were done.

    `about` says of each which object it is about, as far as that is known, and
    `outdated` which of them only show that the plan was made from an old view.
    """

    def __init__(
        self,
        failures: Sequence[LaminaError],
        about: Sequence[Ref | None] = (),
        outdated: Sequence[bool] = (),
    ) -> None:
        self.failures = tuple(failures)
        self.about = tuple(about) or (None,) * len(self.failures)
        super().__init__("; ".join(map(_said_of, self.failures, self.about)))
        self._outdated = tuple(outdated) or (False,) * len(self.failures)

    @property
    def serious(self) -> PlanFailed | None:
        """Return the same without what a new plan mends by itself, if anything is left."""
        each = zip(self.failures, self.about, self._outdated, strict=True)
        left = [(failure, ref) for failure, ref, is_outdated in each if not is_outdated]
        return PlanFailed([failure for failure, _ in left], [ref for _, ref in left]) if left else None


class SpecError(LaminaError):
    """A manifest asks for something meaningless: the message names the field. Only an edit helps."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class RevisionNotFound(LaminaError):
    """The history of an owner holds no such revision."""

    def __init__(self, owner: Ref, wanted: int | None, have: Sequence[int]) -> None:
        kept = ", ".join(map(str, have)) or "none"
        asked = f"no revision {wanted}" if wanted else "no earlier revision to go back to"
        super().__init__(f"{owner} has {asked}: the revisions kept are {kept}")
        self.hint = f"see what each one holds with `lamina revisions list {owner.kind.lower()}/{owner.name}`"


class HookError(LaminaError):
    """
    Somebody else's webhook failed.

    `after` is there where it is only busy, which is no fault: nothing is said on
    the object. It is how many seconds it asked us to wait, or 0 where it did not
    say. `reached` says whether it gave an answer that counts, if one that cannot
    be followed.
    """

    def __init__(self, message: str, *, after: float | None = None, reached: bool = True) -> None:
        super().__init__(message)
        self.after = after
        self.reached = reached


class Restless(LaminaError):
    """On paper, controllers go on and on at the same moment: each finds something to do in what another did."""


class SettingsError(LaminaError):
    """The command line, the environment or a file asks for something meaningless."""

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
    """Return the error a Status stands for; decided by its reason, then by its code, as client-go does."""
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
