"""
What somebody wants to write, judged before it is written: a check, as a value.

An API server asks about a write and waits for the answer. Whether there is a
server to ask, and how it gets here, is somebody else's business.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from lamina.objects.types import GroupKind, Obj


class Absence(StrEnum):
    """What becomes of a write while nobody is there to judge it."""

    LETS_PASS = "Ignore"
    REFUSES = "Fail"


class Attempt(Struct, frozen=True, kw_only=True):
    """
    A write that somebody wants to make.

    `new` is the object as it would be, `old` as it is; each is empty where there
    is none. `user` is who asks, as the server tells it: username, uid, groups, extra.
    """

    operation: str
    kind: GroupKind
    namespace: str
    name: str
    new: Obj
    old: Obj
    user: Obj


class Leave(Struct, frozen=True, kw_only=True):
    """What the writer has to be allowed: the attributes of a resource to be reviewed, and what is said otherwise."""

    attributes: Obj
    refusal: str


class Verdict(Struct, frozen=True, kw_only=True):
    """What comes of it: a refusal in a sentence, or none, what the writer is warned of, and what has to be asked."""

    refusal: str = ""
    warnings: tuple[str, ...] = ()
    leave: Leave | None = None


FINE = Verdict()


class Check(Struct, frozen=True, kw_only=True):
    """
    One question that servers ask about writes.

    `name` is what it is called in a refusal, and `path` where it is answered.
    `rules` say which writes it is about, and `conditions`, where a server is
    elsewhere and asking is dear, which of those: rules and match conditions of a
    webhook. `ours` is an expression that is true of what we write ourselves out of
    what was judged before.
    """

    name: str
    path: str
    rules: tuple[Obj, ...]
    judge: Callable[[Attempt], Verdict]
    absence: Absence = Absence.LETS_PASS
    conditions: tuple[Obj, ...] = ()
    ours: str = ""
    seconds: int = 5
