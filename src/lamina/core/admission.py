"""
Admission checks, as values: a request in, a response out.

The embedded server calls a check directly; any other server calls it through a webhook.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from lamina.objects.types import GroupKind, Obj


class FailurePolicy(StrEnum):
    """What a server does with a write while the check does not answer."""

    LETS_PASS = "Ignore"
    REFUSES = "Fail"


class AdmissionRequest(Struct, frozen=True, kw_only=True):
    """
    A write, before it is stored.

    `new` is the object as it would be stored, `old` as it is; each is empty where there
    is none. `user` is the userInfo of the request: username, uid, groups, extra.
    """

    operation: str
    kind: GroupKind
    namespace: str
    name: str
    new: Obj
    old: Obj
    user: Obj


class AccessCheck(Struct, frozen=True, kw_only=True):
    """A right that the user has to have: the resource attributes of an access review, and the refusal without it."""

    attributes: Obj
    refusal: str


class AdmissionResponse(Struct, frozen=True, kw_only=True):
    """The result of a check: a refusal, or none, warnings, and a right that the user has to have."""

    refusal: str = ""
    warnings: tuple[str, ...] = ()
    leave: AccessCheck | None = None


ALLOWED = AdmissionResponse()


class AdmissionCheck(Struct, frozen=True, kw_only=True):
    """
    One check of writes.

    `name` is that of the webhook, and `path` its path; `configuration` names the
    ValidatingWebhookConfiguration that it is registered in. `rules` select writes, and
    `conditions` some of those: rules and match conditions of a webhook. `ours` is an
    expression that is true of writes of our controllers, whose content was checked before.
    """

    name: str
    path: str
    rules: tuple[Obj, ...]
    judge: Callable[[AdmissionRequest], AdmissionResponse]
    absence: FailurePolicy = FailurePolicy.LETS_PASS
    conditions: tuple[Obj, ...] = ()
    ours: str = ""
    seconds: int = 5
    configuration: str = "lamina"
