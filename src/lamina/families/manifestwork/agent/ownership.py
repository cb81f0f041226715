"""
Owner references of applied objects, and what is done about an object that no manifest is about any more.

    the object                                       is
    does not exist                                   done with
    is not owned by the record of the work           done with: it was orphaned, or never owned
    is owned by the record of another work too       kept without our owner reference, unless that work drops it too
    has another uid than the recorded one            done with: it was created anew
    is being deleted                                 waited for
    is owned by our record alone                     deleted
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from lamina.core.model.plan import Action, Delete, change_metadata
from lamina.families.manifestwork.agent.shared_resources import UNSHARED, Sharing
from lamina.families.manifestwork.labels import APPLIED_WORK
from lamina.objects import meta
from lamina.objects.types import Obj, OwnerRef

_OWNERS = "f:ownerReferences"
_NOT_COMPARED = ("ownerReferences", "managedFields", "resourceVersion")


def is_record(owner: OwnerRef) -> bool:
    """Say whether an owner is the record of a work."""
    group = owner["apiVersion"].rpartition("/")[0]
    return (group, owner["kind"]) == tuple(APPLIED_WORK)


def is_ours(obj: Obj, record: Obj) -> bool:
    return any(owner["uid"] == meta.uid(record) for owner in meta.owner_refs(obj))


def changed_records(before: Obj, after: Obj) -> Collection[str] | None:
    """
    Return the records whose owner references on an object changed, or None where anything else of it did.

    An object of a thousand works changes a thousand times, and each owner reference
    concerns one work. So does another manager of it: that work may have removed it.
    """
    if _without_records(before) != _without_records(after):
        return None
    old, new = _records(before), _records(after)
    anew = {element for _, element in _managed(before) ^ _managed(after)}
    return {name for name, uid in old | new if f'k:{{"uid":"{uid}"}}' in anew} | {
        name for name, _ in old ^ new
    }


def _managed(obj: Obj) -> set[tuple[str, str]]:
    """Return which manager owns which owner reference, by the element that the server names it with."""
    return {
        (f"{entry.get('manager')} {entry.get('operation')}", element)
        for entry in meta.metadata(obj).get("managedFields") or ()
        for element in ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(_OWNERS) or ()
    }


def _records(obj: Obj) -> set[tuple[str, str]]:
    return {(one["name"], one["uid"]) for one in meta.owner_refs(obj) if is_record(one)}


def _without_records(obj: Obj) -> tuple[Obj, Obj, list[OwnerRef], list[Obj]]:
    """Return all of an object but the owner references of records, and which manager owns what of that."""
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in _NOT_COMPARED}
    others = [one for one in meta.owner_refs(obj) if not is_record(one)]
    return {**obj, "metadata": None}, metadata, others, list(_managers(obj))


def _managers(obj: Obj) -> Iterator[Obj]:
    for entry in meta.metadata(obj).get("managedFields") or ():
        fields = dict(entry.get("fieldsV1") or {})
        own = {key: value for key, value in fields.pop("f:metadata", {}).items() if key != _OWNERS}
        if fields or own:
            yield {**entry, "time": None, "fieldsV1": {**fields, "f:metadata": own}}


Others = Callable[[], Sharing]


def owners(
    obj: Obj | None, record: Obj, *, orphaned: bool, others: Others = lambda: UNSHARED
) -> Sequence[OwnerRef]:
    """Return the owner references an object should have: with the record of its work, unless it is orphaned."""
    live, ours = meta.owner_refs(obj) if obj is not None else (), meta.owner_ref(record)
    uid = ours["uid"]
    if orphaned:
        return [one for one in live if one["uid"] != uid]
    # The live list itself where nothing changes: a thousand entries need no comparison then.
    for one in live:
        if one["uid"] == uid:
            return live if one == ours else [ours if other["uid"] == uid else other for other in live]
    shared = others()
    stay = [one for one in live if one["uid"] not in shared.drop]
    return [*stay, *(one for one in shared.add if one["uid"] != uid), ours]


def claimed(obj: Obj, wanted: Sequence[OwnerRef]) -> Action | None:
    """Return the patch that gives an object the owner references it should have; None where it has them."""
    if list(wanted) == list(meta.owner_refs(obj)):
        return None
    return change_metadata(obj, ownerReferences=wanted)


class Release(Struct, frozen=True):
    """What is done about an object that is no longer wanted, and whether it has to be waited for."""

    action: Action | None = None
    waits: bool = False


RELEASED = Release()


def release_object(obj: Obj | None, uid: str, record: Obj, others: Others = lambda: UNSHARED) -> Release:
    """Return what is done about an object that was recorded with a uid; without one, it was about to be created."""
    if obj is None or not is_ours(obj, record):
        return RELEASED
    left = _others(obj, record)
    if uid == meta.uid(obj):
        shared = others()
        left = [*(one for one in left if one["uid"] not in shared.drop), *shared.add]
    if any(is_record(one) for one in left):
        return Release(change_metadata(obj, ownerReferences=left), waits=True)
    if uid and uid != meta.uid(obj):
        return RELEASED
    if meta.is_deleting(obj):
        return Release(waits=True)
    return Release(Delete(ref=meta.ref(obj), uid=meta.uid(obj)), waits=True)


def _others(obj: Obj, record: Obj) -> list[OwnerRef]:
    return [one for one in meta.owner_refs(obj) if one["uid"] != meta.uid(record)]
