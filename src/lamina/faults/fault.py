"""
Faults, as values: which requests they select, and what happens to those.

The selection of a share is deterministic: it depends on the seed and on the number
of earlier requests, so the same requests in the same order get the same faults.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec
from msgspec import Meta

from lamina.errors import SpecError
from lamina.faults.request import VERBS, RequestAttributes
from lamina.objects.types import Made

LONGEST = 86400
"""The longest delay of a response and the oldest stale read, in seconds."""
_Seconds = Annotated[float, Meta(gt=0, le=LONGEST)]
_Count = Annotated[int, Meta(ge=0)]
_PLURAL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]+)?")
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<field>.*?)`)?$", re.S)


class _Selector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="fault"):  # fmt: skip
    """
    Which requests a fault selects; an empty field selects all.

    `resources` are plurals (`pods`, `pods/status`); `path` and `users` are patterns
    with `*`. The fault applies to a share of `rate` of these requests, and to no more
    than `times` in total unless that is 0.
    """

    usual: ClassVar[tuple[str, ...]] = ()
    """The verbs that a fault of this sort is about if none is named; all where this is empty."""

    id: str = ""
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    path: str = ""
    users: tuple[str, ...] = ()
    rate: Annotated[float, Meta(gt=0, le=1)] = 1.0
    times: _Count = 0
    seed: int = 0

    def selects(self, request: RequestAttributes) -> bool:
        """Return whether the fault selects a request, before rate and times."""
        verbs = self.verbs or self.usual
        return (
            (not verbs or request.verb in verbs)
            and (not self.resources or _matches_resource(request, self.resources))
            and (not self.path or fnmatchcase(request.path, self.path))
            and (not self.users or any(fnmatchcase(request.user, user) for user in self.users))
        )

    def applies_to(self, number: int) -> bool:
        """Return whether the request with this number, among the selected ones, is in the fault's share."""
        if self.rate >= 1:
            return True
        mark = hashlib.sha256(f"{self.seed}/{number}".encode()).digest()
        return int.from_bytes(mark[:8], "big") < self.rate * 2**64


class Silence(_Selector, frozen=True, kw_only=True, tag="silence"):
    """There is no response until the fault is removed. With `after`, the request is processed first."""

    after: bool = False


class Slow(_Selector, frozen=True, kw_only=True, tag="slow"):
    """The response is delayed."""

    seconds: _Seconds


class Refuse(_Selector, frozen=True, kw_only=True, tag="refuse"):
    """
    The response is an error. With `after`, the request is processed first.

    `retry_after` is the Retry-After header in seconds; only a 429 has one by
    default.
    """

    code: Annotated[int, Meta(ge=400, le=599)] = 503
    retry_after: _Count | None = None
    after: bool = False


class Cut(_Selector, frozen=True, kw_only=True, tag="cut"):
    """Watches end: open ones at once, or with `events` each one after that many events."""

    usual = ("watch",)

    events: _Count = 0


class Expire(_Selector, frozen=True, kw_only=True, tag="expire"):
    """A watch or list that resumes gets 410 Gone, as after compaction."""

    usual = ("watch", "list")

    def selects(self, request: RequestAttributes) -> bool:
        return request.resumes and super().selects(request)


class Stale(_Selector, frozen=True, kw_only=True, tag="stale"):
    """
    Reads are stale by so many `seconds` or `versions`, or are as of when the fault was set.

    Watches deliver events with the same delay, or when the fault is removed.
    """

    usual = ("get", "list", "watch")

    seconds: _Seconds | None = None
    versions: Annotated[int, Meta(gt=0)] | None = None


Fault: TypeAlias = Silence | Slow | Refuse | Cut | Expire | Stale


def read_fault(data: Any) -> Fault:
    """Return the fault that JSON encodes; SpecError with the invalid field."""
    try:
        fault: Fault = msgspec.convert(data, Fault)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    _check(fault)
    return fault


def checked(fault: Fault) -> Fault:
    """Return a fault if it is valid; raises as `read_fault` does, and TypeError if it is none."""
    if not isinstance(fault, _Selector):
        raise TypeError(f"expected a fault such as Refuse(), got {fault!r}")
    return read_fault(msgspec.to_builtins(fault))


def _check(fault: Fault) -> None:
    for verb in fault.verbs:
        if verb not in VERBS:
            raise SpecError(f'verbs: unknown verb "{verb}"', hint=f"verbs are {', '.join(VERBS)}")
        if type(fault).usual and verb not in type(fault).usual:
            about = ", ".join(type(fault).usual)
            raise SpecError(f"verbs: this fault does not apply to {verb}", hint=f"it applies to {about}")
    for name in fault.resources:
        if not _PLURAL.fullmatch(name):
            raise SpecError(
                f'resources: no request is for "{name}"',
                hint="use the names in API paths, such as pods, deployments or pods/status",
            )
    if isinstance(fault, Stale) and fault.seconds is not None and fault.versions is not None:
        raise SpecError("stale takes seconds or versions, and not both")


def shown(fault: Fault) -> Made:
    """Return a fault as JSON, without default values."""
    plain: Mapping[str, Any] = msgspec.to_builtins(fault)
    usual: Mapping[str, Any] = {
        field.encode_name: field.default
        for field in msgspec.structs.fields(type(fault))
        if not field.required
    }
    defaults = {key: value for key, value in plain.items() if key not in usual or value != usual[key]}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in defaults.items()}


def _matches_resource(request: RequestAttributes, resources: tuple[str, ...]) -> bool:
    below = f"{request.resource}/{request.below}" if request.below else request.resource
    return request.resource in resources or below in resources


def _invalid(message: str) -> SpecError:
    found = _WHERE.match(message)
    assert found is not None
    what = found["what"].replace("`", "")
    what = what[:1].lower() + what[1:]
    return SpecError(f"{found['field']}: {what}" if found["field"] else what)
