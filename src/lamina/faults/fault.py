"""
Faults, as values: which requests, and what happens to them.

Which requests of a share are hit is no matter of chance: it follows from the
seed and from how many came before, so the same requests in the same order meet
the same fate.
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
from lamina.faults.request import VERBS, Asked
from lamina.objects.types import Made

LONGEST = 86400
"""How long an answer can be late or behind, in seconds."""
_Seconds = Annotated[float, Meta(gt=0, le=LONGEST)]
_Count = Annotated[int, Meta(ge=0)]
_PLURAL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]+)?")
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<field>.*?)`)?$", re.S)


class _Aimed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="fault"):  # fmt: skip
    """
    Which requests a fault is about; what is left empty is about all of them.

    `resources` are plurals (`pods`, `pods/status`), `path` and `users` are
    patterns with `*`. Of those, a share of `rate` is hit, and no more than
    `times` in all unless that is 0.
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

    def is_about(self, request: Asked) -> bool:
        """Say whether a request is one of those it might hit."""
        verbs = self.verbs or self.usual
        return (
            (not verbs or request.verb in verbs)
            and (not self.resources or _is_of(request, self.resources))
            and (not self.path or fnmatchcase(request.path, self.path))
            and (not self.users or any(fnmatchcase(request.user, user) for user in self.users))
        )

    def takes(self, number: int) -> bool:
        """Say whether the request with this number, of those it is about, is among its share."""
        if self.rate >= 1:
            return True
        mark = hashlib.sha256(f"{self.seed}/{number}".encode()).digest()
        return int.from_bytes(mark[:8], "big") < self.rate * 2**64


class Silence(_Aimed, frozen=True, kw_only=True, tag="silence"):
    """No answer comes until the fault is taken back. With `after`, the request is carried out all the same."""

    after: bool = False


class Slow(_Aimed, frozen=True, kw_only=True, tag="slow"):
    """The answer takes longer."""

    seconds: _Seconds


class Refuse(_Aimed, frozen=True, kw_only=True, tag="refuse"):
    """
    The answer is a refusal. With `after`, the request is carried out all the same.

    `retry_after` is how many seconds the client is asked to wait; only a 429
    asks for any unless it is told to.
    """

    code: Annotated[int, Meta(ge=400, le=599)] = 503
    retry_after: _Count | None = None
    after: bool = False


class Cut(_Aimed, frozen=True, kw_only=True, tag="cut"):
    """Watches end: those that are open, or with `events` every one once it has told that many."""

    usual = ("watch",)

    events: _Count = 0


class Expire(_Aimed, frozen=True, kw_only=True, tag="expire"):
    """A watch or a list that goes on where it was is told that this has been forgotten: 410."""

    usual = ("watch", "list")

    def is_about(self, request: Asked) -> bool:
        return request.resumes and super().is_about(request)


class Stale(_Aimed, frozen=True, kw_only=True, tag="stale"):
    """
    Reads show the past: that of so many `seconds` or `versions` ago, or else of when the fault was set.

    Watches tell what happens as much later, or when the fault is taken back.
    """

    usual = ("get", "list", "watch")

    seconds: _Seconds | None = None
    versions: Annotated[int, Meta(gt=0)] | None = None


Fault: TypeAlias = Silence | Slow | Refuse | Cut | Expire | Stale


def read_fault(data: Any) -> Fault:
    """Return the fault that JSON stands for; SpecError, with the field that is wrong, where it stands for none."""
    try:
        fault: Fault = msgspec.convert(data, Fault)
    except msgspec.ValidationError as error:
        raise _senseless(str(error)) from None
    _check(fault)
    return fault


def checked(fault: Fault) -> Fault:
    """Return a fault that somebody made, as it is; raises as `read_fault` does, and TypeError where it is none."""
    if not isinstance(fault, _Aimed):
        raise TypeError(f"a fault is a value, as in Refuse(), and not {fault!r}")
    return read_fault(msgspec.to_builtins(fault))


def _check(fault: Fault) -> None:
    for verb in fault.verbs:
        if verb not in VERBS:
            raise SpecError(f'verbs: there is no verb "{verb}"', hint=f"verbs are {', '.join(VERBS)}")
        if type(fault).usual and verb not in type(fault).usual:
            about = ", ".join(type(fault).usual)
            raise SpecError(f"verbs: this fault never meets a request to {verb}", hint=f"it is about {about}")
    for name in fault.resources:
        if not _PLURAL.fullmatch(name):
            raise SpecError(
                f'resources: no request is for "{name}"',
                hint="name them as paths do, such as pods, deployments or pods/status",
            )
    if isinstance(fault, Stale) and fault.seconds is not None and fault.versions is not None:
        raise SpecError("stale takes seconds or versions, and not both")


def shown(fault: Fault) -> Made:
    """Return a fault as JSON, without what is left at its default."""
    plain: Mapping[str, Any] = msgspec.to_builtins(fault)
    usual: Mapping[str, Any] = {
        field.encode_name: field.default
        for field in msgspec.structs.fields(type(fault))
        if not field.required
    }
    told = {key: value for key, value in plain.items() if key not in usual or value != usual[key]}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}


def _is_of(request: Asked, resources: tuple[str, ...]) -> bool:
    below = f"{request.resource}/{request.below}" if request.below else request.resource
    return request.resource in resources or below in resources


def _senseless(said: str) -> SpecError:
    found = _WHERE.match(said)
    assert found is not None
    what = found["what"].replace("`", "")
    what = what[:1].lower() + what[1:]
    return SpecError(f"{found['field']}: {what}" if found["field"] else what)
