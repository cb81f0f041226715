"""
Whose an object is that was applied, and what becomes of it when its work lets it go.

    it is                                            it
    not there                                        is let go
    not owned by the record of the work              is let go: it was orphaned, or never ours
    owned by the record of another work too          loses our mark, and stays, unless that one lets it go as well
    another than the one that was recorded           is let go: somebody made it anew
    on its way out                                   is waited for
    ours alone                                       is deleted
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from lamina.core.plan import Action, Delete, change_metadata
from lamina.families.manifestwork.names import APPLIED_WORK
from lamina.families.manifestwork.spoke.sharing import ALONE, Sharing
from lamina.objects import meta
from lamina.objects.types import Obj, OwnerRef

_OWNERS = "f:ownerReferences"
_MARKING = ("ownerReferences", "managedFields", "resourceVersion")


def is_record(owner: OwnerRef) -> bool:
    """Say whether an owner is the record of some work."""
    group = owner["apiVersion"].rpartition("/")[0]
    return (group, owner["kind"]) == tuple(APPLIED_WORK)


def is_ours(obj: Obj, record: Obj) -> bool:
    return any(owner["uid"] == meta.uid(record) for owner in meta.owner_refs(obj))


def marked_anew(before: Obj, after: Obj) -> Collection[str] | None:
    """
    Return the records that an object got or lost as its owners, where nothing else of it changed; else None.

    What a thousand works have in common is marked a thousand times, and each mark is
    news to one work alone. So is who states a mark: its work may have meant it to go.
    """
    if _unmarked(before) != _unmarked(after):
        return None
    old, new = _marks(before), _marks(after)
    anew = {element for _, element in _stated(before) ^ _stated(after)}
    return {name for name, uid in old | new if f'k:{{"uid":"{uid}"}}' in anew} | {
        name for name, _ in old ^ new
    }


def _stated(obj: Obj) -> set[tuple[str, str]]:
    """Return who states which mark: somebody's name, and the element that the server calls the mark."""
    return {
        (f"{entry.get('manager')} {entry.get('operation')}", element)
        for entry in meta.metadata(obj).get("managedFields") or ()
        for element in ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(_OWNERS) or ()
    }


def _marks(obj: Obj) -> set[tuple[str, str]]:
    return {(one["name"], one["uid"]) for one in meta.owner_refs(obj) if is_record(one)}


def _unmarked(obj: Obj) -> tuple[Obj, Obj, list[OwnerRef], list[Obj]]:
    """Return all of an object but the marks of records, and who states what of that."""
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in _MARKING}
    others = [one for one in meta.owner_refs(obj) if not is_record(one)]
    return {**obj, "metadata": None}, metadata, others, list(_stating(obj))


def _stating(obj: Obj) -> Iterator[Obj]:
    for entry in meta.metadata(obj).get("managedFields") or ():
        fields = dict(entry.get("fieldsV1") or {})
        own = {key: value for key, value in fields.pop("f:metadata", {}).items() if key != _OWNERS}
        if fields or own:
            yield {**entry, "time": None, "fieldsV1": {**fields, "f:metadata": own}}


Others = Callable[[], Sharing]


def owners(
    obj: Obj | None, record: Obj, *, orphaned: bool, others: Others = lambda: ALONE
) -> Sequence[OwnerRef]:
    """Return the owners an object should have: those it has, and the record of its work unless it is orphaned."""
    there, ours = meta.owner_refs(obj) if obj is not None else (), meta.owner_ref(record)
    uid = ours["uid"]
    if orphaned:
        return [one for one in there if one["uid"] != uid]
    # The very list that is there where nothing is to change: there may be a thousand in it, and nobody compares them.
    for one in there:
        if one["uid"] == uid:
            return there if one == ours else [ours if other["uid"] == uid else other for other in there]
    shared = others()
    stay = [one for one in there if one["uid"] not in shared.go]
    return [*stay, *(one for one in shared.come if one["uid"] != uid), ours]


def claimed(obj: Obj, record: Obj, *, orphaned: bool, others: Others = lambda: ALONE) -> Action | None:
    """Return what gives an object the owners it should have, or nothing where it has them."""
    wanted = owners(obj, record, orphaned=orphaned, others=others)
    if list(wanted) == list(meta.owner_refs(obj)):
        return None
    return change_metadata(obj, ownerReferences=wanted)


class Parting(Struct, frozen=True):
    """What becomes of an object that is no longer wanted: what is done, and whether it is still to be waited for."""

    action: Action | None = None
    waits: bool = False


GONE = Parting()


def let_go(obj: Obj | None, uid: str, record: Obj, others: Others = lambda: ALONE) -> Parting:
    """Return what becomes of an object that was recorded under a uid; without one, it was about to be made."""
    if obj is None or not is_ours(obj, record):
        return GONE
    left = _others(obj, record)
    if uid == meta.uid(obj):
        shared = others()
        left = [*(one for one in left if one["uid"] not in shared.go), *shared.come]
    if any(is_record(one) for one in left):
        return Parting(change_metadata(obj, ownerReferences=left), waits=True)
    if uid and uid != meta.uid(obj):
        return GONE
    if meta.is_deleting(obj):
        return Parting(waits=True)
    return Parting(Delete(ref=meta.ref(obj), uid=meta.uid(obj)), waits=True)


def _others(obj: Obj, record: Obj) -> list[OwnerRef]:
    return [one for one in meta.owner_refs(obj) if one["uid"] != meta.uid(record)]
