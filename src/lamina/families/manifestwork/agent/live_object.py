"""The state of a live object, from a watch, or from a live read where the watch does not have it."""

from __future__ import annotations

from msgspec import Struct

from lamina.core.model.queries import Absent, Answers, Follow, Found, Listed, Query, Read, Refused, Unserved
from lamina.families.manifestwork.agent.ownership import changed_records
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref

_NAMESPACE = GroupKind("", "Namespace")


class LiveState(Struct, frozen=True, kw_only=True):
    """An object, that it does not exist, or why that is unknown; or the queries that are needed first."""

    obj: Obj | None = None
    unknown: str = ""
    queries: tuple[Query, ...] = ()
    is_watched: bool = True
    """Whether it is watched, so that a change of it enqueues its work."""
    looks_absent: bool = False
    """Whether the watch does not have it, which a live read has to confirm."""


def live_state(kind: Kind, ref: Ref, answers: Answers, *, record: str, watches: bool) -> LiveState:
    """
    Return the state of an object that this record may own.

    One that the watch does not have, or that the agent may not list, is read live.
    """
    read = Read(ref, whole=True, refusable=True)
    watches = watches and kind.can("list", "watch")
    if watches:
        match answers.get(follow := follow_query(kind, ref, record)):
            case None:
                return LiveState(queries=(follow,))
            case Listed(objects=(obj, *_)):
                return LiveState(obj=obj)
            case Refused():
                # No event will follow what is written.
                watches = False
            case _:
                pass
    match answers.get(read):
        case None:
            return LiveState(queries=(read,), looks_absent=watches)
        case Found(obj=obj):
            return LiveState(obj=obj, is_watched=False)
        case Absent() | Unserved():
            return LiveState(is_watched=watches)
        case Refused(because=because):
            return LiveState(unknown=because, is_watched=False)
        case answer:
            raise AssertionError(f"a read is answered {answer}")


def follow_query(kind: Kind, ref: Ref, record: str = "") -> Follow:
    """Return the query that follows an object, without changes of the owner references of other records."""
    return Follow(
        kind=kind,
        namespaces=(ref.namespace,) if kind.namespaced else None,
        names=(ref.name,),
        affects=changed_records,
        subscriber=record,
        refusable=True,
    )


def namespace_queries(kinds: Kinds, namespace: str) -> tuple[Query, ...]:
    """Return the query that follows a namespace, where there is one."""
    kind = kinds.preferred(_NAMESPACE)
    return (follow_query(kind, kind.ref("", namespace)),) if kind is not None and namespace else ()
