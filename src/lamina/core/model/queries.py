"""
Queries: what a plan has to know that is not in a cache.

A planner does no I/O: it returns queries, and is called again with their answers.
A query is sent to the cluster that it names; without a name, to the primary one.
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
    A live read of an object: its metadata, or all of it. Answered by Found, Absent or Unserved.

    Where it is `refusable`, a 403 is an answer too: Refused.
    """

    ref: Ref
    whole: bool = False
    refusable: bool = False


class ReadAll(Struct, frozen=True):
    """
    A live list of the objects of a kind with these labels, in one namespace or in all.

    It has their metadata, or all of them if `whole`. Answered by Listed or Unserved.
    """

    kind: Kind
    namespace: str
    cluster: str = ""
    whole: bool = False
    labels: LabelSelector = EVERYTHING


Affects: TypeAlias = Callable[[Obj, Obj], Collection[str] | None]
"""Returns the subscribers that a change of an object affects, given the object before and after; None for all."""


class Follow(Struct, frozen=True, kw_only=True):
    """
    The cached objects that match, now and in future. Answered by Listed.

    Objects that may not be listed are not absent: the query fails with Forbidden. Where it
    is `refusable`, that is an answer too: Refused.

    The key is enqueued when a matching object is added, modified or deleted, as
    long as each reconcile repeats the query. None as `namespaces` or `names` means any.

    Where many keys follow one object, each change would enqueue all of them. With
    `affects` a change enqueues only the keys whose `subscriber` it returns.
    """

    kind: Kind
    namespaces: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    labels: LabelSelector = EVERYTHING
    cluster: str = ""
    affects: Affects | None = None
    subscriber: str = ""
    refusable: bool = False

    def matches(self, obj: Obj) -> bool:
        if self.names is not None and meta.name(obj) not in self.names:
            return False
        if self.namespaces is not None and meta.namespace(obj) not in self.namespaces:
            return False
        return self.labels.matches(meta.labels(obj))


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The CA of a webhook and the client certificate, as PEM; empty where none is needed."""

    authority: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)
    authorization: str = field(default="", repr=False)
    """The whole value of the Authorization header."""


class CallOrigin(NamedTuple):
    """The controller that calls a webhook: its family, and its kind and name there. For metrics."""

    family: str = ""
    kind: str = ""
    name: str = ""


NO_ORIGIN = CallOrigin()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    A call of a webhook. Answered by HookResponse.

    `memo` identifies a request whose body may vary without a change in meaning: a
    response is cached by it for `memo_seconds`. With `etag` a response is cached
    by its ETag, for `etag_seconds` or without limit, under what it is `about`.
    `purpose` names the hook; it and `about` distinguish the calls of a planner.
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
    origin: CallOrigin = NO_ORIGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """
    A dry run of a server-side apply. Answered by Found or Refused.

    With `creates` it is a dry run of a create; with `replaces`, of an update, and
    `obj` names the version that it replaces. Without `force`, a conflict with
    another field manager is Refused. With `replaces` or without `force`, an
    internal error of the server is Refused as well. With a `user` it is sent with
    impersonation; permissions change, so such an answer is not cached. Nor is that
    of one that is `fresh`: what a server refuses depends on more than the object.
    """

    obj: Obj = field(hash=False, compare=False)
    manager: str = field(compare=False)
    key: str
    """Identifies the dry run: two with the same key, cluster and user are equal."""
    creates: bool = False
    replaces: bool = False
    force: bool = True
    fresh: bool = False
    cluster: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """
    A create of an object that the server evaluates and does not store: an access or token review.

    Answered by Found, with the status of the server, Refused or Unserved.
    """

    body: Obj = field(hash=False, compare=False)
    key: str
    """Identifies the review: two with the same key are equal."""
    cluster: str = ""
    user: str = ""
    """The user to impersonate; empty for none."""


class ReadSchema(Struct, frozen=True):
    """
    The OpenAPI v3 schema of a kind, with all references resolved (`objects.openapi`).

    Answered by Found, with the schema as `{"schema": …}`, or Unserved, also where a
    server publishes no schema of a kind that it serves, or not yet. It may be some
    seconds old: a schema that has to be current is read from the CRD of its kind.
    """

    kind: Kind
    cluster: str = ""


Query: TypeAlias = Read | ReadAll | Follow | Call | DryRun | Review | ReadSchema


def answering_cluster(question: Query) -> str:
    """Return the cluster that answers a query; the primary one for a call of a webhook."""
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
    """The server refused the request, and this is its message."""

    code: int
    because: str


@dataclass(frozen=True, slots=True)
class HookResponse:
    """The body of a valid response."""

    body: bytes = field(repr=False)


Answer: TypeAlias = Found | Listed | Absent | Unserved | Refused | HookResponse


class Answers(Struct, frozen=True):
    """The answers so far in one reconcile."""

    known: Mapping[Query, Answer] = msgspec.field(default_factory=dict)

    def get(self, question: Query) -> Answer | None:
        return self.known.get(question)

    def hook_body(self, purpose: str, about: str) -> bytes | None:
        """Return the response of a webhook to the call with that purpose and `about`."""
        for question, answer in self.known.items():
            if isinstance(question, Call) and (question.purpose, question.about) == (purpose, about):
                return answer.body if isinstance(answer, HookResponse) else None
        return None

    def __contains__(self, question: Query) -> bool:
        return question in self.known

    def __or__(self, more: Mapping[Query, Answer]) -> Answers:
        return Answers({**self.known, **more})
