"""
Reads metadata, and returns objects with changed metadata.

The readers accept any object, with metadata or without. The others return a
new object that shares every unchanged part.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.objects.types import GroupKind, Made, Obj, OwnerRef, Ref

_NOTHING: Mapping[str, Any] = {}


def metadata(obj: Obj) -> Mapping[str, Any]:
    return obj.get("metadata") or _NOTHING


def name(obj: Obj) -> str:
    return (obj.get("metadata") or _NOTHING).get("name") or ""


def namespace(obj: Obj) -> str:
    """Return the namespace, empty for a cluster-scoped object."""
    return (obj.get("metadata") or _NOTHING).get("namespace") or ""


def uid(obj: Obj) -> str:
    return (obj.get("metadata") or _NOTHING).get("uid") or ""


def resource_version(obj: Obj) -> str:
    return metadata(obj).get("resourceVersion") or ""


def version_number(obj: Obj) -> int:
    """Return the resource version as a number, 0 where it is not one."""
    version = resource_version(obj)
    return int(version) if version.isdigit() else 0


def generation(obj: Obj) -> int:
    return metadata(obj).get("generation") or 0


def labels(obj: Obj) -> Mapping[str, str]:
    return (obj.get("metadata") or _NOTHING).get("labels") or _NOTHING


def annotations(obj: Obj) -> Mapping[str, str]:
    return (obj.get("metadata") or _NOTHING).get("annotations") or _NOTHING


def finalizers(obj: Obj) -> Sequence[str]:
    return metadata(obj).get("finalizers") or ()


def owner_refs(obj: Obj) -> Sequence[OwnerRef]:
    return (obj.get("metadata") or _NOTHING).get("ownerReferences") or ()


def controller_of(obj: Obj) -> OwnerRef | None:
    """Return the controller reference of an object, if it has one."""
    for owner in owner_refs(obj):
        if owner.get("controller"):
            return owner
    return None


def is_controlled_by(obj: Obj, owner_uid: str) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == owner_uid


def is_deleting(obj: Obj) -> bool:
    """Say whether deletion has been requested; finalizers may still keep the object."""
    return bool((obj.get("metadata") or _NOTHING).get("deletionTimestamp"))


def ref(obj: Obj, cluster: str = "") -> Ref:
    """Return the reference of an object."""
    fields = obj.get("metadata") or _NOTHING
    return Ref(
        obj.get("apiVersion") or "",
        obj.get("kind") or "",
        fields.get("namespace") or "",
        fields.get("name") or "",
        cluster,
    )


def group_kind(obj: Obj | OwnerRef) -> GroupKind:
    """Return the kind of an object, or of the owner that an owner reference names."""
    return GroupKind(str(obj.get("apiVersion") or "").rpartition("/")[0], str(obj.get("kind") or ""))


def owner_ref(owner: Obj, *, controller: bool = False, blocks: bool = False) -> OwnerRef:
    """Return an owner reference to `owner`; `blocks` sets blockOwnerDeletion, which delays a foreground deletion."""
    made = OwnerRef(
        apiVersion=owner.get("apiVersion") or "",
        kind=owner.get("kind") or "",
        name=name(owner),
        uid=uid(owner),
    )
    if controller:
        made["controller"] = True
    if blocks:
        made["blockOwnerDeletion"] = True
    return made


def with_metadata(obj: Obj, **fields: Any) -> Made:
    """Return the object with these fields of its metadata; None or an empty value removes the field."""
    made = dict(metadata(obj))
    for field, value in fields.items():
        if value is None or value == {} or value == [] or value == "":
            made.pop(field, None)
        else:
            made[field] = value
    return {**obj, "metadata": made}


def with_annotation(obj: Obj, key: str, value: str) -> Made:
    return with_metadata(obj, annotations={**annotations(obj), key: value})


def without_annotation(obj: Obj, key: str) -> Made:
    return with_metadata(obj, annotations={k: v for k, v in annotations(obj).items() if k != key})


def with_finalizer(obj: Obj, finalizer: str) -> Made:
    """Return the object with the finalizer appended, unless it has it already."""
    kept = list(finalizers(obj))
    return with_metadata(obj, finalizers=kept if finalizer in kept else [*kept, finalizer])


def with_owner(obj: Obj, owner: OwnerRef) -> Made:
    """Return the object with this owner reference; one to the same uid is replaced in place."""
    refs = list(owner_refs(obj))
    for index, one in enumerate(refs):
        if one["uid"] == owner["uid"]:
            refs[index] = owner
            break
    else:
        refs.append(owner)
    return with_metadata(obj, ownerReferences=refs)
