"""
The effective revision of an instance: the revision of its definition that its children are made from.

    situation                       revision                        pending
    pin                             the pinned one
    new, without a pin              the current one
    Auto, gate open or none         the current one
    Auto, gate closed               the one that it is on           the current one
    Manual                          the one that it is on,          the current one
                                    until one is accepted
    Paused                          the one that it is on           the current one

A pin comes before a policy. A paused instance records what it is to become and does not
become it, pinned or not. The revision that an instance is on is that of its newest input
revision; where these are lost, the highest that its children are stamped with.

A definition that is made again may give the number of a revision to other content. That is
another revision: an instance that follows gets it at once, since the gate counts by numbers,
and one that stays keeps its children as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lamina.families.resourcegraph.api import UpdatePolicy
from lamina.families.resourcegraph.labels import ACCEPT_REVISION, PIN, UPDATE_POLICY
from lamina.objects.numbers import positive

LATEST = "latest"
_SHOWN = 12


class Reason(StrEnum):
    """The reasons of the condition RevisionResolved."""

    RESOLVED = "Resolved"
    INVALID_PIN = "InvalidPin"
    PINNED_NOT_FOUND = "PinnedRevisionNotFound"
    NOT_FOUND = "RevisionNotFound"
    FAILED = "RevisionFailed"
    SPEC_INVALID = "SpecInvalidForRevision"
    INVALID_POLICY = "InvalidUpdatePolicy"
    INVALID_ACCEPTANCE = "InvalidAcceptedRevision"


class Situation(Struct, frozen=True, kw_only=True):
    """What the effective revision of an instance depends on."""

    current: int
    available: Collection[int]
    """The numbers of the revisions that exist."""
    recorded: int = 0
    """The revision of the newest input revision; 0 where there is none."""
    stamped: int = 0
    """The highest revision that a child is stamped with; 0 where none is."""
    is_replaced: bool = False
    """Whether the number of the recorded revision is that of other content by now."""
    pin: str | None = None
    policy: str | None = None
    accepted: str | None = None
    """The revision that is accepted by annotation."""
    is_gated: bool = False
    """Whether the definition has a propagateWhen."""
    is_admitted: bool = False
    """Whether the gate has admitted the instance to the current revision."""

    @property
    def on(self) -> int:
        """Return the revision that the instance is on; 0 for a new one."""
        return self.recorded or self.stamped


class Effective(Struct, frozen=True, kw_only=True):
    """
    The effective revision, or why there is none.

    `number` is 0 where nothing may be applied. `pending` is the current revision where
    the instance is not on it and is to follow it, and `waits` says why it does not yet.
    """

    number: int = 0
    reason: Reason = Reason.RESOLVED
    message: str = ""
    policy: UpdatePolicy = UpdatePolicy.AUTO
    is_pinned: bool = False
    pending: int = 0
    waits: str = ""
    is_consumed: bool = False
    """Whether the annotation that accepts a revision has had its effect."""

    @property
    def is_uncompiled(self) -> bool:
        """Say whether the graph of the revision does not compile, with the kinds that are served."""
        return self.reason is Reason.FAILED

    @property
    def is_resolved(self) -> bool:
        return self.reason is Reason.RESOLVED

    @property
    def follows(self) -> bool:
        """Say whether the instance moves to new revisions by itself."""
        return self.policy is UpdatePolicy.AUTO and not self.is_pinned

    @property
    def is_paused(self) -> bool:
        return self.policy is UpdatePolicy.PAUSED


def effective_revision(found: Situation) -> Effective:
    """Return the effective revision of an instance."""
    policy, wrong = _policy(found.policy)
    if found.pin is not None:
        return _pinned(found, policy, wrong)
    if not found.on:
        return _resolved(found, found.current, policy, wrong)
    match policy:
        case UpdatePolicy.AUTO:
            return _followed(found)
        case UpdatePolicy.MANUAL:
            return _accepted(found, wrong)
        case UpdatePolicy.PAUSED:
            return _stays(found, policy, wrong, "update policy is Paused")


def _policy(text: str | None) -> tuple[UpdatePolicy, str]:
    """Return a policy, and what is wrong with it; one that is unknown is taken as Manual."""
    if not text:
        return UpdatePolicy.AUTO, ""
    try:
        return UpdatePolicy(text), ""
    except ValueError:
        known = ", ".join(UpdatePolicy)
        return UpdatePolicy.MANUAL, (
            f'{UPDATE_POLICY} is "{text}", and is taken as Manual: set it to one of {known}'
        )


def _pinned(found: Situation, policy: UpdatePolicy, wrong: str) -> Effective:
    number = positive(found.pin or "")
    if not number:
        return Effective(
            reason=Reason.INVALID_PIN,
            message=f'{PIN} is "{found.pin}", which is not a positive integer; {_choose(found)}',
            policy=policy,
        )
    if number not in found.available:
        return Effective(
            reason=Reason.PINNED_NOT_FOUND,
            message=f"RGD revision {number}, which it is pinned to, does not exist; {_choose(found)}",
            policy=policy,
        )
    if found.is_replaced and number == found.on:
        return _replaced(found, policy)
    return _resolved(found, number, policy, wrong, is_pinned=True)


def _followed(found: Situation) -> Effective:
    policy, consumed = UpdatePolicy.AUTO, found.accepted is not None
    if found.on == found.current or not found.is_gated or found.is_admitted:
        return _resolved(found, found.current, policy, "", is_consumed=consumed)
    waits = f"propagateWhen of the definition has not admitted it to RGD revision {found.current} yet"
    return _stays(found, policy, "", waits, is_consumed=consumed)


def _accepted(found: Situation, wrong: str) -> Effective:
    policy = UpdatePolicy.MANUAL
    waits = f"update policy is Manual: annotate it with {ACCEPT_REVISION} to move it"
    if found.accepted is None:
        return _stays(found, policy, wrong, waits)
    number = found.current if found.accepted == LATEST else positive(found.accepted)
    if number not in found.available:
        text = f'{ACCEPT_REVISION} is "{found.accepted}", which is no RGD revision; available: {_list(found)}; set it to one of these, or to {LATEST}'
        stays = _stays(found, policy, "", waits)
        return stays if wrong else _with_reason(stays, Reason.INVALID_ACCEPTANCE, text)
    pending = found.current if number != found.current else 0
    return _resolved(
        found,
        number,
        policy,
        wrong,
        pending=pending,
        waits=waits if pending else "",
        # It has had its effect once an input revision of that revision is recorded.
        is_consumed=found.recorded == number and not found.is_replaced,
    )


def _stays(
    found: Situation, policy: UpdatePolicy, wrong: str, waits: str, *, is_consumed: bool = False
) -> Effective:
    if found.is_replaced:
        return _replaced(found, policy, pending=found.current)
    pending = found.current if found.on != found.current else 0
    return _resolved(
        found,
        found.on,
        policy,
        wrong,
        pending=pending,
        waits=waits if pending else "",
        is_consumed=is_consumed,
    )


def _replaced(found: Situation, policy: UpdatePolicy, *, pending: int = 0) -> Effective:
    message = f"RGD revision {found.on} is not the one that it was on: its content is another; {_choose(found, found.on)}"
    return Effective(reason=Reason.NOT_FOUND, message=message, policy=policy, pending=pending)


def _resolved(
    found: Situation,
    number: int,
    policy: UpdatePolicy,
    wrong: str,
    *,
    is_pinned: bool = False,
    pending: int = 0,
    waits: str = "",
    is_consumed: bool = False,
) -> Effective:
    if number not in found.available:
        return Effective(
            reason=Reason.NOT_FOUND,
            message=f"RGD revision {number} does not exist; {_choose(found)}",
            policy=policy,
            pending=pending,
        )
    made = Effective(
        number=number,
        message=f"RGD revision {number}",
        policy=policy,
        is_pinned=is_pinned,
        pending=pending,
        waits=waits,
        is_consumed=is_consumed,
    )
    return _with_reason(made, Reason.INVALID_POLICY, wrong) if wrong else made


def _with_reason(made: Effective, reason: Reason, message: str) -> Effective:
    return replace(made, reason=reason, message=message) if made.number else made


def _choose(found: Situation, without: int = 0) -> str:
    """Return what ends a revision that cannot be used."""
    other = ""
    if found.pin is not None:
        other = ", or remove the annotation"
    elif found.policy not in (None, UpdatePolicy.AUTO):
        other = f", or set {UPDATE_POLICY} to {UpdatePolicy.AUTO}"
    return f"available: {_list(found, without)}; set {PIN} to one of these{other}"


def _list(found: Situation, without: int = 0) -> str:
    numbers = sorted(set(found.available) - {without})
    shown = ", ".join(map(str, numbers[-_SHOWN:])) or "none"
    return f"…, {shown}" if len(numbers) > _SHOWN else shown
