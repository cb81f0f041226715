"""
The rules of metadata: names, labels, owners, finalizers, and what a write may not change.

They are the same for every kind but for its rule for names and for whether
its finalizers must be qualified (built-in kinds insist, custom ones are only
warned). Randomness comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.digest import SAFE
from lamina.objects.names import NameRule
from lamina.objects.printing import is_printable, quoted
from lamina.objects.types import Made, Obj
from lamina.server.fields import (
    IMMUTABLE,
    each,
    forbidden,
    invalid,
    not_negative,
    required,
    too_long,
)
from lamina.server.kind import Kind

ANNOTATIONS_LIMIT = 256 * 1024
FIELD_MANAGER_LIMIT = 128
_GENERATED_LIMIT = 58
_RANDOM_LENGTH = 5
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_SERVERS = ("creationTimestamp", "deletionTimestamp", "generation", "resourceVersion")
_LENIENT_GROUPS = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"}
)
_RBAC = "rbac.authorization.k8s.io"
_NAME_RULES: Mapping[tuple[str, str], NameRule] = {
    ("", "Namespace"): names.label,
    ("", "Service"): names.label_1035,
    ("", "Event"): names.path_segment,
    ("apps", "StatefulSet"): names.label,
    ("policy", "PodDisruptionBudget"): names.path_segment,
    (_RBAC, "Role"): names.path_segment,
    (_RBAC, "ClusterRole"): names.path_segment,
    (_RBAC, "RoleBinding"): names.path_segment,
    (_RBAC, "ClusterRoleBinding"): names.path_segment,
    ("apiregistration.k8s.io", "APIService"): names.path_segment,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): names.path_segment,
    ("certificates.k8s.io", "CertificateSigningRequest"): names.path_segment,
}

Meta = Mapping[str, Any]


def name_rule(kind: Kind) -> NameRule:
    """Return what a kind's objects may be called."""
    if kind.custom:
        return names.subdomain
    return _NAME_RULES.get((kind.group, kind.kind), names.subdomain)


def generated_name(prefix: str, choose: Callable[[str], str]) -> str:
    """Return a name made of a generateName; `choose` picks one letter of many at random."""
    return prefix[:_GENERATED_LIMIT] + "".join(choose(SAFE) for _ in range(_RANDOM_LENGTH))


def asked_name(obj: Obj) -> str:
    """Return the name an object's creator gave it: where it was generated, what it was generated from."""
    name: str = obj["metadata"].get("name") or ""
    prefix: str = obj["metadata"].get("generateName") or ""
    return prefix if prefix and name[:-_RANDOM_LENGTH] == prefix[:_GENERATED_LIMIT] else name


def restore(new: Made, old: Meta) -> None:
    """Put back into an update's metadata what only the server says, left out or got wrong by the writer."""
    if not new.get("uid") and old.get("uid"):
        new["uid"] = old["uid"]
    for field in _SERVERS:
        if field in old:
            new[field] = old[field]
    for field in ("generation", "resourceVersion"):
        if field not in old:
            new.pop(field, None)
    if old.get("deletionGracePeriodSeconds") is not None and new.get("deletionGracePeriodSeconds") is None:
        new["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]
    new.pop("selfLink", None)


def validate_create(kind: Kind, obj: Obj) -> list[Cause]:
    """Return what is wrong with the metadata of a new object, its name already generated."""
    strict = not kind.custom and kind.group not in _LENIENT_GROUPS
    meta = obj.get("metadata") or {}
    return object_meta(meta, "metadata", namespaced=kind.namespaced, rule=name_rule(kind), strict=strict)


def object_meta(
    meta: Meta, path: str, *, namespaced: bool, rule: NameRule = names.subdomain, strict: bool = True
) -> list[Cause]:
    """Return what is wrong with metadata; where `strict`, finalizers must be qualified or standard ones."""
    causes: list[Cause] = []
    if prefix := meta.get("generateName"):
        causes += each(f"{path}.generateName", prefix, names.in_prefix(rule, prefix))
    if name := meta.get("name"):
        if complaints := rule(name):
            causes += each(f"{path}.name", name, complaints)
    else:
        causes.append(required(f"{path}.name", "name or generateName is required"))
    namespace = meta.get("namespace")
    if not namespaced:
        if namespace:
            causes.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    elif not namespace:
        causes.append(required(f"{path}.namespace"))
    elif complaints := names.label(namespace):
        causes += each(f"{path}.namespace", namespace, complaints)
    causes += not_negative(f"{path}.generation", meta.get("generation"))
    causes += _carried(meta, path)
    if finalizing := meta.get("finalizers"):
        causes += check_finalizers(finalizing, f"{path}.finalizers", strict=strict)
    if managed := meta.get("managedFields"):
        causes += check_managed_fields(managed, f"{path}.managedFields")
    return causes


def validate_update(kind: Kind, new: Obj, old: Obj) -> list[Cause]:
    """Return what is wrong with the metadata of an object that replaces another, after `restore`."""
    return object_meta_update(
        new.get("metadata") or {},
        old.get("metadata") or {},
        "metadata",
        namespaced=kind.namespaced,
        strict=not kind.custom and kind.group not in _LENIENT_GROUPS,
    )


def object_meta_update(new: Meta, old: Meta, path: str, *, namespaced: bool, strict: bool) -> list[Cause]:
    """Return what is wrong with metadata that replaces other metadata."""
    causes: list[Cause] = []
    if complaints := names.path_segment(new.get("name") or ""):
        causes += each(f"{path}.name", new["name"], complaints)
    if namespaced and (complaints := names.label(new.get("namespace") or "")):
        causes += each(f"{path}.namespace", new.get("namespace") or "", complaints)
    causes += _carried(new, path)
    finalizing = new.get("finalizers") or ()
    causes += check_finalizers(finalizing, f"{path}.finalizers", strict=False)
    if managed := new.get("managedFields"):
        causes += check_managed_fields(managed, f"{path}.managedFields")
    if old.get("deletionTimestamp") and finalizing:
        added = sorted(set(finalizing).difference(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(map(quoted, added))
            said = "no new finalizers can be added if the object is being deleted, found new finalizers"
            causes.append(forbidden(f"{path}.finalizers", f"{said} []string{{{listed}}}"))
    for field in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        if (new.get(field) or "") != (old.get(field) or ""):
            empty = None if field.endswith("Timestamp") else ""
            causes.append(invalid(f"{path}.{field}", new.get(field) or empty, IMMUTABLE))
    if new.get("deletionGracePeriodSeconds") != old.get("deletionGracePeriodSeconds"):
        grace = new.get("deletionGracePeriodSeconds")
        causes.append(invalid(f"{path}.deletionGracePeriodSeconds", grace, IMMUTABLE))
    if strict and finalizing:
        causes += _qualified_finalizers(finalizing, f"{path}.finalizers")
    return causes


def _carried(meta: Meta, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if found := meta.get("labels"):
        causes += check_labels(found, f"{path}.labels")
    if found := meta.get("annotations"):
        causes += check_annotations(found, f"{path}.annotations")
    if refs := meta.get("ownerReferences"):
        causes += check_owners(refs, f"{path}.ownerReferences")
    return causes


def check_labels(found: Mapping[str, str], path: str) -> list[Cause]:
    """Return what is wrong with labels, in the order of their keys."""
    causes: list[Cause] = []
    for key, value in found.items():
        if complaints := names.qualified(key):
            causes += each(path, key, complaints)
        if complaints := names.label_value(value):
            causes += each(path, value, complaints)
    return causes


def check_annotations(found: Mapping[str, str], path: str) -> list[Cause]:
    causes: list[Cause] = []
    size = 0
    for key, value in found.items():
        if complaints := names.qualified(key.lower()):
            causes += each(path, key, complaints)
        size += len(key) + (len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
    if size > ANNOTATIONS_LIMIT:
        causes.append(too_long(path, ANNOTATIONS_LIMIT))
    return causes


def check_owners(refs: Sequence[Mapping[str, Any]], path: str) -> list[Cause]:
    causes: list[Cause] = []
    first = ""
    for ref in refs:
        version = ref.get("apiVersion") or ""
        kind = ref.get("kind") or ""
        if not version.rpartition("/")[2] or version.count("/") > 1:
            causes.append(invalid(f"{path}.apiVersion", version, "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not ref.get(field):
                causes.append(invalid(f"{path}.{field}", "", "must not be empty"))
        if (version, kind) == ("v1", "Event"):
            causes.append(invalid(path, _full(ref), "/v1, Kind=Event is disallowed from being an owner"))
        if ref.get("controller"):
            named = f"{kind}/{ref.get('name') or ''}"
            if first:
                said = 'Only one reference can have Controller set to true. Found "true" in references for'
                causes.append(invalid(path, [_full(one) for one in refs], f"{said} {first} and {named}"))
            else:
                first = named
    return causes


def _full(ref: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {field: ref.get(field) or "" for field in ("apiVersion", "kind", "name", "uid")}
    return shown | {key: ref[key] for key in ("controller", "blockOwnerDeletion") if ref.get(key) is not None}


def check_finalizers(found: Sequence[str], path: str, *, strict: bool) -> list[Cause]:
    """Return what is wrong with finalizers; where `strict`, one without a slash must be a standard one."""
    causes: list[Cause] = []
    for finalizer in found:
        if complaints := names.qualified(finalizer):
            causes += each(path, finalizer, complaints)
    if "orphan" in found and "foregroundDeletion" in found:
        causes.append(
            invalid(path, list(found), "finalizer orphan and foregroundDeletion cannot be both set")
        )
    return causes + _qualified_finalizers(found, path) if strict else causes


def _qualified_finalizers(found: Sequence[str], path: str) -> list[Cause]:
    said = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{path}[{index}]", finalizer, said)
        for index, finalizer in enumerate(found)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def warn(new: Obj, old: Obj | None) -> list[str]:
    """Return a sentence for each new finalizer that somebody else might call the same."""
    found = (new.get("metadata") or {}).get("finalizers")
    if not found:
        return []
    known = ((old.get("metadata") or {}).get("finalizers") or ()) if old else ()
    warnings = []
    for finalizer in sorted(set(found).difference(known)):
        if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
            continue
        with_path = " including a path (/)" if "." in finalizer else ""
        warnings.append(
            f"metadata.finalizers: {quoted(finalizer)}: prefer a domain-qualified finalizer name{with_path} "
            "to avoid accidental conflicts with other finalizer writers"
        )
    return warnings


def check_managed_fields(entries: Sequence[Mapping[str, Any]], path: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, entry in enumerate(entries):
        here = f"{path}[{index}]"
        operation = entry.get("operation") or ""
        if operation not in {"Apply", "Update"}:
            causes.append(invalid(f"{here}.operation", operation, "must be `Apply` or `Update`"))
        if (fields_type := entry.get("fieldsType") or "FieldsV1") != "FieldsV1":
            causes.append(invalid(f"{here}.fieldsType", fields_type, "must be `FieldsV1`"))
        causes += check_field_manager(entry.get("manager") or "", f"{here}.manager")
        if len((entry.get("subresource") or "").encode("utf-8", "surrogatepass")) > 256:
            causes.append(too_long(f"{here}.subresource", 256))
    return causes


def check_field_manager(manager: str, path: str = "fieldManager") -> list[Cause]:
    """Return what is wrong with the name of a field manager: at most 128 characters that can be seen."""
    if manager.isascii() and manager.isprintable() and len(manager) <= FIELD_MANAGER_LIMIT:
        return []
    causes: list[Cause] = []
    if len(manager.encode("utf-8", "surrogatepass")) > FIELD_MANAGER_LIMIT:
        causes.append(too_long(path, FIELD_MANAGER_LIMIT))
    position = 0
    for character in manager:
        if not is_printable(character):
            said = f"invalid character U+{ord(character):04X} (at position {position})"
            causes.append(invalid(path, manager, said))
        position += len(character.encode("utf-8", "surrogatepass"))
    return causes
