"""
Asking outside.

Sometimes a plan needs an answer that is not in memory. The planner does not go
and ask: it says what it would like to know, and is called again with the
answers. What is asked of a server is asked of the cluster that is named, or at
home.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import Obj, Ref


class Read(Struct, frozen=True):
    """
    Is this object really there, and what does its metadata say, or all of it? Found, Absent, or Unserved.

    Where it is `refusable`, that one may not look is an answer too: Refused.
    """

    ref: Ref
    whole: bool = False
    refusable: bool = False


class ReadAll(Struct, frozen=True):
    """What is really there, of a kind in a namespace (an empty one: anywhere)? Listed, or Unserved."""

    kind: Kind
    namespace: str
    cluster: str = ""


Parties: TypeAlias = Callable[[Obj, Obj], Collection[str] | None]
"""Says whom it is news to that an object was one thing and is another; None for everybody."""


class Follow(Struct, frozen=True, kw_only=True):
    """
    What is there that matches, now and from now on? Listed.

    Whoever asks is asked again when something that matches comes, changes or
    goes, for as long as each pass asks the same. Of `namespaces` and `names`,
    None means any.

    Where many follow one object, and it changes for each of them, all would be
    asked for each. With `parties` only those are whose `party` is among them.
    """

    kind: Kind
    namespaces: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    labels: LabelSelector = EVERYTHING
    cluster: str = ""
    parties: Parties | None = None
    party: str = ""

    def matches(self, obj: Obj) -> bool:
        if self.names is not None and meta.name(obj) not in self.names:
            return False
        if self.namespaces is not None and meta.namespace(obj) not in self.namespaces:
            return False
        return self.labels.matches(meta.labels(obj))


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How to tell a webhook from an impostor, and ourselves to it; PEM, and nothing where nothing is needed."""

    authority: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)
    authorization: str = field(default="", repr=False)
    """The whole value of the header."""


class AskedBy(NamedTuple):
    """On whose account a webhook is called: which family, and what its controller is called there."""

    family: str = ""
    kind: str = ""
    name: str = ""


NOBODY = AskedBy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    What does this webhook say to that? Said.

    `memo` names what was asked where the words may differ and the meaning does
    not: the same memo is put once in `memo_seconds`, and the answer kept. With
    `etag` an answer may be kept on the webhook's own terms, for `etag_seconds`
    or for good, under what it is `about`. `purpose` is what people call the call;
    it and `about` tell a planner's calls apart.
    """

    url: str
    body: bytes = field(repr=False, hash=False)
    seconds: float
    purpose: str
    about: str = ""
    credentials: Credentials = Credentials()
    memo: str = ""
    memo_seconds: float = 0.0
    etag: bool = False
    etag_seconds: float | None = None
    asked_by: AskedBy = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearse:
    """
    What would become of an object if this were applied, by a server that only pretends? Found, or Refused.

    With `creates` it is not applied but made, as something that is not there; with
    `replaces` it takes the place of what is there, which it names the version of.
    Without `force`, fields that another manager states are a reason to refuse. Of
    these two it is an answer, too, that the server has troubles of its own.
    With a `user` it is done as that one; what people may do changes, so such an
    answer is good for one pass.
    """

    obj: Obj = field(hash=False, compare=False)
    manager: str = field(compare=False)
    key: str
    """What tells this rehearsal from another on that cluster, by that user: two with the same key are the same."""
    creates: bool = False
    replaces: bool = False
    force: bool = True
    cluster: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """
    What does a server say to this, which it judges and does not keep: may somebody do that, who is that?

    Found, with the status the server gave it, Refused, or Unserved.
    """

    body: Obj = field(hash=False, compare=False)
    key: str
    """What tells this review from another: two with the same key are the same."""
    cluster: str = ""
    user: str = ""
    """As whom it is asked; nobody: as ourselves."""


Question: TypeAlias = Read | ReadAll | Follow | Call | Rehearse | Review


def asked_of(question: Question) -> str:
    """Return the cluster that has the answer; what is asked of a webhook has it at home."""
    match question:
        case Read(ref):
            return ref.cluster
        case Call():
            return ""
        case _:
            return question.cluster


class Found(Struct, frozen=True):
    obj: Obj


class Listed(Struct, frozen=True):
    objects: tuple[Obj, ...]


class Absent(Struct, frozen=True):
    """The server serves that kind, and has no such object."""


class Unserved(Struct, frozen=True):
    """The server does not serve that kind, which says nothing about its objects."""


class Refused(Struct, frozen=True):
    """The server would not do it, and says why."""

    code: int
    because: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a webhook said: the body of an answer that counts."""

    body: bytes = field(repr=False)


Answer: TypeAlias = Found | Listed | Absent | Unserved | Refused | Said


class Answers(Struct, frozen=True):
    """What has been answered so far in one pass."""

    known: Mapping[Question, Answer] = msgspec.field(default_factory=dict)

    def get(self, question: Question) -> Answer | None:
        return self.known.get(question)

    def said(self, purpose: str, about: str) -> bytes | None:
        """Return what a webhook said when it was called for that purpose, about that."""
        for question, answer in self.known.items():
            if isinstance(question, Call) and (question.purpose, question.about) == (purpose, about):
                return answer.body if isinstance(answer, Said) else None
        return None

    def __contains__(self, question: Question) -> bool:
        return question in self.known

    def __or__(self, more: Mapping[Question, Answer]) -> Answers:
        return Answers({**self.known, **more})
