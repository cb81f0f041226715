"""
Where an object's owners are recorded: in owner references, or in an annotation.

An owner reference names an object of the same cluster, and the garbage collector deletes
what has lost all of its owners. An owner on another cluster is therefore recorded in an
annotation: a list of the same entries as JSON, which the garbage collector does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from lamina.core.ownership.controller_ref import controlled
from lamina.objects import meta
from lamina.objects.types import Made, Obj, OwnerRef


class OwnerRecord(Struct, frozen=True):
    """The owners of objects as one field of their metadata: the owner references, or an annotation of that name."""

    annotation: str = ""

    def owners(self, obj: Obj) -> Sequence[OwnerRef]:
        """Return the recorded owners; an annotation that is no list of owners records none."""
        if not self.annotation:
            return meta.owner_refs(obj)
        try:
            found = orjson.loads(meta.annotations(obj).get(self.annotation) or "[]")
        except orjson.JSONDecodeError:
            return ()
        return [one for one in found if _is_owner(one)] if isinstance(found, list) else ()

    def controller(self, obj: Obj) -> OwnerRef | None:
        """Return the owner that controls an object, if one does."""
        return next((one for one in self.owners(obj) if one.get("controller")), None)

    def has(self, obj: Obj, uid: str) -> bool:
        """Say whether the owner of that uid is recorded, as the controller or not."""
        return any(one["uid"] == uid for one in self.owners(obj))

    def controls(self, obj: Obj, uid: str) -> bool:
        """Say whether the owner of that uid controls an object."""
        found = self.controller(obj)
        return found is not None and found["uid"] == uid

    def taken(self, obj: Obj, live: Obj | None, owner: Obj) -> Made:
        """Return an object to write with `owner` as the controller; other owners of the live object control no more."""
        return self._recorded(obj, controlled(self.owners(live) if live is not None else (), owner), owner)

    def kept(self, obj: Obj, live: Obj, owner: Obj, uids: Collection[str]) -> Made:
        """Return an object to write with `owner` as the controller, beside those owners of the live object."""
        known = [one for one in self.owners(live) if self.annotation or one["uid"] in uids]
        return self._recorded(obj, controlled(known, owner), owner)

    def _recorded(self, obj: Obj, owners: Sequence[OwnerRef], owner: Obj) -> Made:
        if not self.annotation:
            return meta.with_metadata(obj, ownerReferences=list(owners))
        text = orjson.dumps([_with_namespace(one, owner) for one in owners]).decode()
        return meta.with_annotation(obj, self.annotation, text)

    def released(self, live: Obj, uid: str) -> Made:
        """Return the merge patch of metadata that takes an owner off an object."""
        left = [one for one in self.owners(live) if one["uid"] != uid]
        if not self.annotation:
            return {"ownerReferences": left or None}
        return {"annotations": {self.annotation: orjson.dumps(left).decode() if left else None}}


OWNER_REFERENCES = OwnerRecord()


def controller_uid(record: OwnerRecord) -> Callable[[Obj], str]:
    """Return the function that finds the uid of an object's controller, empty where there is none."""

    def find(obj: Obj) -> str:
        found = record.controller(obj)
        return found["uid"] if found is not None else ""

    return find


def _is_owner(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(key), str) for key in ("kind", "name", "uid")
    )


def _with_namespace(reference: OwnerRef, owner: Obj) -> Made:
    if reference["uid"] != meta.uid(owner) or not meta.namespace(owner):
        return dict(reference)
    return {**reference, "namespace": meta.namespace(owner)}
