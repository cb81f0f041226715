"""
Validation of metadata: names, labels, owner references, finalizers, and what an update may change.

It is the same for all kinds, except for the name rule and for unqualified finalizers
(an error for built-in kinds, a warning for custom ones). Randomness comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.digest import SAFE
from lamina.objects.go_quote import is_printable, quoted
from lamina.objects.names import NameRule
from lamina.objects.types import Made, Obj
from lamina.server.field_errors import IMMUTABLE, each, forbidden, invalid, not_negative, required, too_long
from lamina.server.kinds.kind import Kind

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
    """Return the name rule of a kind."""
    if kind.custom:
        return names.subdomain
    return _NAME_RULES.get((kind.group, kind.kind), names.subdomain)


def generated_name(prefix: str, choose: Callable[[str], str]) -> str:
    """Return a name generated from a generateName; `choose` picks a random letter."""
    return prefix[:_GENERATED_LIMIT] + "".join(choose(SAFE) for _ in range(_RANDOM_LENGTH))


def requested_name(obj: Obj) -> str:
    """Return the requested name of an object, or its generateName."""
    name: str = obj["metadata"].get("name") or ""
    prefix: str = obj["metadata"].get("generateName") or ""
    return prefix if prefix and name[:-_RANDOM_LENGTH] == prefix[:_GENERATED_LIMIT] else name


def restore(new: Made, old: Meta) -> None:
    """Restore the metadata fields of an update that only the server sets."""
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
    """Return the errors in the metadata of a new object, after its name was generated."""
    strict = not kind.custom and kind.group not in _LENIENT_GROUPS
    meta = obj.get("metadata") or {}
    return object_meta(meta, "metadata", namespaced=kind.namespaced, rule=name_rule(kind), strict=strict)


def object_meta(
    meta: Meta, path: str, *, namespaced: bool, rule: NameRule = names.subdomain, strict: bool = True
) -> list[Cause]:
    """Return the errors of metadata; if `strict`, finalizers must be qualified or standard ones."""
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
    causes += _labels_to_owners(meta, path)
    if finalizing := meta.get("finalizers"):
        causes += check_finalizers(finalizing, f"{path}.finalizers", strict=strict)
    if managed := meta.get("managedFields"):
        causes += check_managed_fields(managed, f"{path}.managedFields")
    return causes


def validate_update(kind: Kind, new: Obj, old: Obj) -> list[Cause]:
    """Return the errors in the metadata of an updated object, after `restore`."""
    return object_meta_update(
        new.get("metadata") or {},
        old.get("metadata") or {},
        "metadata",
        namespaced=kind.namespaced,
        strict=not kind.custom and kind.group not in _LENIENT_GROUPS,
    )


def object_meta_update(new: Meta, old: Meta, path: str, *, namespaced: bool, strict: bool) -> list[Cause]:
    """Return the errors of updated metadata."""
    causes: list[Cause] = []
    if complaints := names.path_segment(new.get("name") or ""):
        causes += each(f"{path}.name", new["name"], complaints)
    if namespaced and (complaints := names.label(new.get("namespace") or "")):
        causes += each(f"{path}.namespace", new.get("namespace") or "", complaints)
    causes += _labels_to_owners(new, path)
    finalizing = new.get("finalizers") or ()
    causes += check_finalizers(finalizing, f"{path}.finalizers", strict=False)
    if managed := new.get("managedFields"):
        causes += check_managed_fields(managed, f"{path}.managedFields")
    if old.get("deletionTimestamp") and finalizing:
        added = sorted(set(finalizing).difference(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(map(quoted, added))
            message = "no new finalizers can be added if the object is being deleted, found new finalizers"
            causes.append(forbidden(f"{path}.finalizers", f"{message} []string{{{listed}}}"))
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


def _labels_to_owners(meta: Meta, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if found := meta.get("labels"):
        causes += check_labels(found, f"{path}.labels")
    if found := meta.get("annotations"):
        causes += check_annotations(found, f"{path}.annotations")
    if refs := meta.get("ownerReferences"):
        causes += check_owners(refs, f"{path}.ownerReferences")
    return causes


def check_labels(found: Mapping[str, str], path: str) -> list[Cause]:
    """Return the errors of labels, sorted by key."""
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
                message = 'Only one reference can have Controller set to true. Found "true" in references for'
                causes.append(invalid(path, [_full(one) for one in refs], f"{message} {first} and {named}"))
            else:
                first = named
    return causes


def _full(ref: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {field: ref.get(field) or "" for field in ("apiVersion", "kind", "name", "uid")}
    return shown | {key: ref[key] for key in ("controller", "blockOwnerDeletion") if ref.get(key) is not None}


def check_finalizers(found: Sequence[str], path: str, *, strict: bool) -> list[Cause]:
    """Return the errors of finalizers; if `strict`, one without a slash must be a standard one."""
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
    message = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{path}[{index}]", finalizer, message)
        for index, finalizer in enumerate(found)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def warn(new: Obj, old: Obj | None) -> list[str]:
    """Return a warning for each new finalizer that may conflict with another writer's."""
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
        item_path = f"{path}[{index}]"
        operation = entry.get("operation") or ""
        if operation not in {"Apply", "Update"}:
            causes.append(invalid(f"{item_path}.operation", operation, "must be `Apply` or `Update`"))
        if (fields_type := entry.get("fieldsType") or "FieldsV1") != "FieldsV1":
            causes.append(invalid(f"{item_path}.fieldsType", fields_type, "must be `FieldsV1`"))
        causes += check_field_manager(entry.get("manager") or "", f"{item_path}.manager")
        if len((entry.get("subresource") or "").encode("utf-8", "surrogatepass")) > 256:
            causes.append(too_long(f"{item_path}.subresource", 256))
    return causes


def check_field_manager(manager: str, path: str = "fieldManager") -> list[Cause]:
    """Return the errors of a field manager name: at most 128 printable characters."""
    if manager.isascii() and manager.isprintable() and len(manager) <= FIELD_MANAGER_LIMIT:
        return []
    causes: list[Cause] = []
    if len(manager.encode("utf-8", "surrogatepass")) > FIELD_MANAGER_LIMIT:
        causes.append(too_long(path, FIELD_MANAGER_LIMIT))
    position = 0
    for character in manager:
        if not is_printable(character):
            message = f"invalid character U+{ord(character):04X} (at position {position})"
            causes.append(invalid(path, manager, message))
        position += len(character.encode("utf-8", "surrogatepass"))
    return causes
