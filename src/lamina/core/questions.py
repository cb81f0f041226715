"""
Asking outside.

Sometimes a plan needs an answer that is not in memory. The planner does not go
and ask: it says what it would like to know, and is called again with the
answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref


@dataclass(frozen=True, slots=True)
class Read:
    """Is this object really there, and what does its metadata say? Found, Absent, or Unserved."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class ReadAll:
    """What is really there, of a kind in a namespace (an empty one: anywhere)? Listed, or Unserved."""

    kind: Kind
    namespace: str


Question: TypeAlias = Read | ReadAll


@dataclass(frozen=True, slots=True)
class Found:
    obj: Obj


@dataclass(frozen=True, slots=True)
class Listed:
    objects: tuple[Obj, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """The server serves that kind, and has no such object."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """The server does not serve that kind, which says nothing about its objects."""


Answer: TypeAlias = Found | Listed | Absent | Unserved


@dataclass(frozen=True, slots=True)
class Answers:
    """What has been answered so far in one pass."""

    known: Mapping[Question, Answer] = field(default_factory=dict)

    def get(self, question: Question) -> Answer | None:
        return self.known.get(question)

    def __contains__(self, question: Question) -> bool:
        return question in self.known

    def __or__(self, more: Mapping[Question, Answer]) -> Answers:
        return Answers({**self.known, **more})
