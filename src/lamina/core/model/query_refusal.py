"""What the refusal of a query means, the same for a server and for a simulated cluster."""

from __future__ import annotations

from lamina.core.model.queries import Absent, Answer, DryRun, Follow, Query, Read, Refused, Review, Unserved
from lamina.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    CacheNotSynced,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    LaminaError,
    MethodNotAllowed,
    NotFound,
    UnknownKind,
)

_UNTYPED = "failed to create typed patch object"
_UNSERVED = (UnknownKind, NotFound, MethodNotAllowed)
_JUDGED = (AlreadyExists, BadRequest, Conflict, Forbidden, Invalid)


def answer_of(query: Query, error: LaminaError) -> Answer:
    """
    Return the answer that a refusal stands for.

    Raises the error where it leaves the query open, and CacheNotSynced for the
    dry run of a replacement whose original has changed since it was seen.
    """
    match query, error:
        case Read(refusable=True), Forbidden():
            return _refused(error)
        case Follow(kind=kind, refusable=refusable), Forbidden():
            named = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
            because = f"list and watch of {named} are refused: {error}"
            if refusable:
                return Refused(error.code, because)
            raise Forbidden(because) from None
        case Read(), NotFound():
            # A kind that is not served is answered with 404 as well, but names no object.
            return Absent() if error.details.get("name") else Unserved()
        case DryRun(creates=False, replaces=True), Conflict():
            raise CacheNotSynced(str(error)) from None
        case (DryRun() | Review(), ApiError()) if isinstance(error, _JUDGED):
            return _refused(error)
        case DryRun(), InternalError() if str(error).startswith(_UNTYPED):
            # kube-apiserver answers an apply that does not fit the schema with an error of its own.
            return _refused(error)
        case DryRun(), InternalError() if query.replaces or not query.force:
            # An unreachable webhook, say. The write itself will report it.
            return _refused(error)
        case _ if isinstance(error, _UNSERVED):
            return Unserved()
    raise error


def _refused(error: ApiError) -> Refused:
    return Refused(error.code, str(error))
