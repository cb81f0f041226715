"""
Claims: which target is on which revision.

A claim is recorded before its target moves, so that a process that starts with
an empty cache knows where every target was going. Where the record is in several
objects and only some of them were written, two revisions may claim one target:
the one that comes first in the order given has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct, field

Target = TypeVar("Target", bound=object)


class Claims(Struct, Generic[Target], frozen=True):
    """The revision, by name, that each target is on."""

    held: Mapping[Target, str] = field(default_factory=dict)

    def holder(self, target: Target) -> str | None:
        """Return the revision a target is on, or None if no revision claims it."""
        return self.held.get(target)

    def on(self, revision: str) -> tuple[Target, ...]:
        """Return the targets of a revision, in the order they were claimed."""
        return tuple(target for target, name in self.held.items() if name == revision)

    def moved(self, targets: Iterable[Target], revision: str) -> Claims[Target]:
        """Return the claims with these targets on another revision, and on no other."""
        return Claims({**self.held, **dict.fromkeys(targets, revision)})

    def without(self, targets: Collection[Target]) -> Claims[Target]:
        return Claims({one: name for one, name in self.held.items() if one not in targets})


def resolve(records: Sequence[tuple[str, Iterable[Target]]]) -> Claims[Target]:
    """Return the claims in several revisions' records; of two that name a target the first has it."""
    held: dict[Target, str] = {}
    for revision, targets in records:
        if not held:
            held = dict.fromkeys(targets, revision)
            continue
        for target in targets:
            held.setdefault(target, revision)
    return Claims(held)
