"""
The commands of a family that has a command line of its own, as a value.

A command decides from the answers to its queries, and what it decides is printed or
written by the command line: a table, a text, or an edit of annotations whose result a
controller reports on the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from lamina.core.model.queries import Answers, Query
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj, Ref

Queries: TypeAlias = tuple[Query, ...]


class Targets(Struct, frozen=True, kw_only=True):
    """What commands take: objects of `kinds`, the definitions among them. `served` is all that the server serves."""

    kinds: Kinds
    served: Kinds
    definitions: tuple[Obj, ...]


class Table(Struct, frozen=True, kw_only=True):
    """Rows as text and as JSON; `empty` is what is said where there are none."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    data: tuple[Made, ...]
    empty: str


class Wait(IntEnum):
    """How long a result has been waited for."""

    JUST_CHANGED = 0
    SETTLED = 1
    """The object has not changed for a while."""
    TIMED_OUT = 2


class Result(Struct, frozen=True, kw_only=True):
    """The lines to print, or the error."""

    lines: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""


class AnnotationEdit(Struct, frozen=True, kw_only=True):
    """
    A change of annotations that a controller carries out, and how its result is recognized.

    `announced` is printed before it is written. `result` returns what the object reports,
    None as long as that is open.
    """

    ref: Ref
    annotations: Mapping[str, str | None]
    result: Callable[[Obj, Wait], Result | None]
    announced: str = ""


class RevisionCommands(Struct, frozen=True, kw_only=True):
    """The commands. Each returns its queries as long as answers are missing."""

    name: str
    targets: Callable[[Kinds, Answers], Targets | Queries]
    revisions: Callable[[Targets, Ref, Answers], Table | Queries]
    differences: Callable[[Targets, Ref, int | None, int | None, Answers], str | Queries]
    """The differences between two revisions; by default the current one and the one before."""
    rollback: Callable[[Targets, Ref, int | None, int | None, Answers], AnnotationEdit | Queries]
    """A rollback of a definition to a revision, or of an instance to an input revision."""
    pin: Callable[[Targets, Ref, int | None, Answers], AnnotationEdit | Queries]
    """A pin to a revision; without a number the pin is removed."""
    is_definition: Callable[[Obj], bool]
    generate: Mapping[str, Callable[[Obj, Kinds, Answers], Made | str | Queries]]
    """What is generated from a definition, by name: its `crd`, or a text. Raises SpecError for an invalid one."""
