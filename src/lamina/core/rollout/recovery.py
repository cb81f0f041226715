"""
Recovery of a revision whose object was deleted: its content is read back from a target that has it.

Targets carry the hash of their revision. A hash alone proves nothing, so one
target of each distinct content is read whole, and content whose hash is not the
one that is missing is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lamina.core.model.queries import Answers, Found, Read
from lamina.core.rollout.history import History
from lamina.core.rollout.revision import Revision
from lamina.objects.types import Obj, Ref


class Copy(NamedTuple):
    """A target that has a revision: the digest of what it holds, and where it is."""

    digest: str
    ref: Ref


def readable(past: History, hash: str) -> Revision | None:
    """Return the newest revision with this hash whose content can be read, or None if that is lost."""
    return next((one for one in reversed(past.revisions) if one.hash == hash and one.snapshot), None)


def reads(copies: Iterable[Copy], known: str) -> tuple[Read, ...]:
    """Return the reads that find lost content: one for each digest but the `known` one, in a stable order."""
    by_digest = dict(copies)
    return tuple(Read(ref, whole=True) for digest, ref in sorted(by_digest.items()) if digest != known)


def recover(
    asked: Iterable[Read],
    answers: Answers,
    *,
    content: Callable[[Obj], Obj],
    has_hash: Callable[[Obj], bool],
) -> Obj | None:
    """Return the first content that was read and has the hash of the lost revision, or None."""
    for query in asked:
        answer = answers.get(query)
        held = content(answer.obj) if isinstance(answer, Found) else {}
        if held and has_hash(held):
            return held
    return None
