"""PersistentVolumeClaims and claim templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import forbidden, immutable, invalid, not_supported, required
from lamina.server.kinds.builtin.validate.differences import difference
from lamina.server.kinds.builtin.validate.labels import label_selector
from lamina.server.kinds.builtin.validate.parts import items, part, present, ruled, supported, text
from lamina.server.kinds.builtin.validate.resources import amount, basic_amount, is_native, resource_amount
from lamina.server.kinds.metadata import check_annotations, check_labels

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_RESIZE = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def access_modes(modes: Sequence[str], path: str) -> list[Cause]:
    causes = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    alone = "ReadWriteOncePod" in modes
    if alone and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        causes.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return causes


def claim_spec(spec: Obj, path: str, *, any_group: bool = False) -> list[Cause]:
    """Validate the spec of a claim; `any_group` accepts an API group that was accepted before."""
    causes: list[Cause] = []
    modes = items(spec, "accessModes")
    if not modes:
        causes.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    causes += label_selector(spec.get("selector"), f"{path}.selector")
    causes += access_modes(modes, f"{path}.accessModes")
    storage = part(part(spec, "resources"), "requests").get("storage")
    item_path = f"{path}.resources[storage]"
    if storage is None:
        causes.append(required(item_path))
    elif amount(storage) <= 0:
        causes.append(invalid(item_path, storage, "must be greater than zero"))
    if name := text(spec, "storageClassName"):
        causes += ruled(f"{path}.storageClassName", name, names.subdomain)
    causes += supported(f"{path}.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        causes += _data_source(source, f"{path}.dataSource", any_group=any_group)
    if ref is not None:
        causes += _data_source(ref, f"{path}.dataSourceRef", any_group=any_group)
        if namespace := text(ref, "namespace"):
            causes += ruled(f"{path}.dataSourceRef.namespace", namespace, names.label)
    if source is not None and ref is not None:
        if text(ref, "namespace"):
            rule = "may not be specified when dataSourceRef.namespace is specified"
            causes.append(invalid(path, {}, rule))
        elif any(source.get(field) != ref.get(field) for field in ("apiGroup", "kind", "name")):
            causes.append(invalid(path, {}, "must match dataSourceRef"))
    if name := text(spec, "volumeAttributesClassName"):
        causes += ruled(f"{path}.volumeAttributesClassName", name, names.subdomain)
    return causes


def _data_source(source: Obj, path: str, *, any_group: bool) -> list[Cause]:
    causes = present(path, source, "name", "kind")
    group, kind = text(source, "apiGroup"), text(source, "kind")
    if not group and kind != "PersistentVolumeClaim":
        rule = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        causes.append(invalid(path, kind, rule))
    if group and not any_group:
        causes += ruled(f"{path}.apiGroup", group, names.subdomain)
    return causes


def claim_template(template: Obj, path: str) -> list[Cause]:
    """Validate the claim template of an ephemeral volume."""
    meta = part(template, "metadata")
    causes = check_annotations(part(meta, "annotations"), f"{path}.metadata.annotations")
    causes += check_labels(part(meta, "labels"), f"{path}.metadata.labels")
    causes += (
        forbidden(f"{path}.metadata.{field}", "cannot be set")
        for field, value in meta.items()
        if field not in {"annotations", "labels"} and value
    )
    return causes + claim_spec(part(template, "spec"), f"{path}.spec")


def create(claim: Obj) -> list[Cause]:
    return claim_spec(part(claim, "spec"), "spec")


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(new)
    spec, before = part(new, "spec"), part(old, "spec")
    had_group = any(part(before, field).get("apiGroup") for field in ("dataSource", "dataSourceRef"))
    causes = claim_spec(spec, "spec", any_group=had_group)
    changed: dict[str, Any] = dict(spec)
    if not text(before, "volumeName"):
        changed.pop("volumeName", None)
    causes += _class_change(new, old, changed)
    if text(part(new, "status"), "phase") == "Bound":
        _keep_bound(changed, before)
    kept = {key: value for key, value in before.items() if key != "volumeName" or value}
    if changed != kept:
        rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        detail = f"{rule} for bound claims\n{difference(kept, changed)}"
        causes.append(forbidden("spec", detail))
    size, was = (amount(_size(one)) for one in (spec, before))
    capacity = amount(part(part(old, "status"), "capacity").get("storage") or "0")
    if size < was and size <= capacity:
        where = "spec.resources.requests.storage"
        causes.append(forbidden(where, "field can not be less than status.capacity"))
    causes += immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    return causes + _attributes_change(spec, before, part(old, "status"))


def _size(spec: Obj) -> str:
    return part(part(spec, "resources"), "requests").get("storage") or "0"


def _class_change(new: Obj, old: Obj, changed: dict[str, Any]) -> list[Cause]:
    after, before = (part(part(one, "metadata"), "annotations").get(_CLASS_ANNOTATION) for one in (new, old))
    name, was = changed.get("storageClassName"), part(old, "spec").get("storageClassName")
    if before is not None and was is None and name == before and after in {None, before}:
        changed.pop("storageClassName", None)
        return []
    if was is None and name is not None and before in {None, name}:
        changed.pop("storageClassName", None)
    return immutable(f"metadata.annotations.{_CLASS_ANNOTATION}", after or "", before or "")


def _keep_bound(changed: dict[str, Any], before: Obj) -> None:
    resources = dict(part(changed, "resources"))
    if resources.get("requests"):
        storage = part(part(before, "resources"), "requests").get("storage")
        resources["requests"] = {**resources["requests"], "storage": storage}
        changed["resources"] = resources
    if before.get("volumeAttributesClassName") is None:
        changed.pop("volumeAttributesClassName", None)
    else:
        changed["volumeAttributesClassName"] = before["volumeAttributesClassName"]


def _attributes_change(spec: Obj, before: Obj, status: Obj) -> list[Cause]:
    name = spec.get("volumeAttributesClassName")
    if name == before.get("volumeAttributesClassName"):
        return []
    if status.get("currentVolumeAttributesClassName") is None or name:
        return []
    to = "nil" if name is None else "empty string"
    rule = f"update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden("spec.volumeAttributesClassName", rule)]


def _status(claim: Obj) -> list[Cause]:
    causes: list[Cause] = []
    if not items(part(claim, "spec"), "accessModes"):
        causes.append(required("Spec.accessModes"))
    status = part(claim, "status")
    for name, value in part(status, "capacity").items():
        causes += basic_amount(f"status.capacity[{name}]", value)
    for name, state in part(status, "allocatedResourceStatuses").items():
        causes += _claim_resource("status.allocatedResourceStatuses", name)
        if state not in _RESIZE:
            causes.append(not_supported("status.allocatedResourceStatuses", name, _RESIZE))
    for name, value in part(status, "allocatedResources").items():
        if problem := _claim_resource("status.allocatedResources", name):
            causes += problem
            continue
        item_path = f"status.allocatedResources[{name}]"
        causes += basic_amount(item_path, value) or resource_amount(item_path, "storage", value)
    return causes


def _claim_resource(path: str, name: str) -> list[Cause]:
    if causes := ruled(path, name, names.qualified):
        return causes
    return [not_supported(path, name, ("storage",))] if is_native(name) and name != "storage" else []
