"""PersistentVolumeClaims, by themselves and as templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.differences import difference
from lamina.server.builtin.validate.labels import label_selector
from lamina.server.builtin.validate.parts import items, part, present, ruled, supported, text
from lamina.server.builtin.validate.resources import amount, basic_amount, is_native, resource_amount
from lamina.server.fields import forbidden, immutable, invalid, not_supported, required
from lamina.server.metadata import check_annotations, check_labels

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_RESIZE = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def access_modes(modes: Sequence[str], path: str) -> list[Cause]:
    said = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    alone = "ReadWriteOncePod" in modes
    if alone and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        said.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return said


def claim_spec(spec: Obj, path: str, *, any_group: bool = False) -> list[Cause]:
    """Check what is claimed; `any_group` lets through an API group that was let through before."""
    said: list[Cause] = []
    modes = items(spec, "accessModes")
    if not modes:
        said.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    said += label_selector(spec.get("selector"), f"{path}.selector")
    said += access_modes(modes, f"{path}.accessModes")
    storage = part(part(spec, "resources"), "requests").get("storage")
    here = f"{path}.resources[storage]"
    if storage is None:
        said.append(required(here))
    elif amount(storage) <= 0:
        said.append(invalid(here, storage, "must be greater than zero"))
    if name := text(spec, "storageClassName"):
        said += ruled(f"{path}.storageClassName", name, names.subdomain)
    said += supported(f"{path}.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        said += _data_source(source, f"{path}.dataSource", any_group=any_group)
    if ref is not None:
        said += _data_source(ref, f"{path}.dataSourceRef", any_group=any_group)
        if namespace := text(ref, "namespace"):
            said += ruled(f"{path}.dataSourceRef.namespace", namespace, names.label)
    if source is not None and ref is not None:
        if text(ref, "namespace"):
            rule = "may not be specified when dataSourceRef.namespace is specified"
            said.append(invalid(path, {}, rule))
        elif any(source.get(field) != ref.get(field) for field in ("apiGroup", "kind", "name")):
            said.append(invalid(path, {}, "must match dataSourceRef"))
    if name := text(spec, "volumeAttributesClassName"):
        said += ruled(f"{path}.volumeAttributesClassName", name, names.subdomain)
    return said


def _data_source(source: Obj, path: str, *, any_group: bool) -> list[Cause]:
    said = present(path, source, "name", "kind")
    group, kind = text(source, "apiGroup"), text(source, "kind")
    if not group and kind != "PersistentVolumeClaim":
        rule = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        said.append(invalid(path, kind, rule))
    if group and not any_group:
        said += ruled(f"{path}.apiGroup", group, names.subdomain)
    return said


def claim_template(template: Obj, path: str) -> list[Cause]:
    """Check the claim an ephemeral volume is made with."""
    meta = part(template, "metadata")
    said = check_annotations(part(meta, "annotations"), f"{path}.metadata.annotations")
    said += check_labels(part(meta, "labels"), f"{path}.metadata.labels")
    said += (
        forbidden(f"{path}.metadata.{field}", "cannot be set")
        for field, value in meta.items()
        if field not in {"annotations", "labels"} and value
    )
    return said + claim_spec(part(template, "spec"), f"{path}.spec")


def create(claim: Obj) -> list[Cause]:
    return claim_spec(part(claim, "spec"), "spec")


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(new)
    spec, before = part(new, "spec"), part(old, "spec")
    had_group = any(part(before, field).get("apiGroup") for field in ("dataSource", "dataSourceRef"))
    said = claim_spec(spec, "spec", any_group=had_group)
    changed: dict[str, Any] = dict(spec)
    if not text(before, "volumeName"):
        changed.pop("volumeName", None)
    said += _class_change(new, old, changed)
    if text(part(new, "status"), "phase") == "Bound":
        _keep_bound(changed, before)
    kept = {key: value for key, value in before.items() if key != "volumeName" or value}
    if changed != kept:
        rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        told = f"{rule} for bound claims\n{difference(kept, changed)}"
        said.append(forbidden("spec", told))
    size, was = (amount(_size(one)) for one in (spec, before))
    capacity = amount(part(part(old, "status"), "capacity").get("storage") or "0")
    if size < was and size <= capacity:
        where = "spec.resources.requests.storage"
        said.append(forbidden(where, "field can not be less than status.capacity"))
    said += immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    return said + _attributes_change(spec, before, part(old, "status"))


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
    said: list[Cause] = []
    if not items(part(claim, "spec"), "accessModes"):
        said.append(required("Spec.accessModes"))
    status = part(claim, "status")
    for name, value in part(status, "capacity").items():
        said += basic_amount(f"status.capacity[{name}]", value)
    for name, state in part(status, "allocatedResourceStatuses").items():
        said += _claim_resource("status.allocatedResourceStatuses", name)
        if state not in _RESIZE:
            said.append(not_supported("status.allocatedResourceStatuses", name, _RESIZE))
    for name, value in part(status, "allocatedResources").items():
        if wrong := _claim_resource("status.allocatedResources", name):
            said += wrong
            continue
        here = f"status.allocatedResources[{name}]"
        said += basic_amount(here, value) or resource_amount(here, "storage", value)
    return said


def _claim_resource(path: str, name: str) -> list[Cause]:
    if said := ruled(path, name, names.qualified):
        return said
    return [not_supported(path, name, ("storage",))] if is_native(name) and name != "storage" else []
