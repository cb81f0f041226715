"""Environment variables of containers."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import each, invalid, not_supported, required
from lamina.server.kinds.builtin.validate.parts import items, named, no_backsteps, ruled, text
from lamina.server.kinds.builtin.validate.resources import amount

ENVIRONMENT_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
_KNOWN_FIELDS: Final = frozenset(
    {
        *ENVIRONMENT_FIELDS,
        *VOLUME_FIELDS,
        "spec.host",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    }
)
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPTED = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL)
_SOURCES = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"


def environment(container: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, variable in enumerate(items(container, "env")):
        item_path = f"{path}[{index}]"
        causes += named(f"{item_path}.name", text(variable, "name"), names.environment_name)
        if variable.get("valueFrom") is not None:
            causes += _value_from(variable, f"{item_path}.valueFrom")
    return causes


def _value_from(variable: Obj, path: str) -> list[Cause]:
    source = variable["valueFrom"]
    causes: list[Cause] = []
    if (ref := source.get("fieldRef")) is not None:
        causes += object_field(ref, f"{path}.fieldRef", ENVIRONMENT_FIELDS)
    if (ref := source.get("resourceFieldRef")) is not None:
        causes += resource_field(ref, f"{path}.resourceFieldRef", volume=False)
    for field in ("configMapKeyRef", "secretKeyRef"):
        if (ref := source.get(field)) is not None:
            causes += ruled(f"{path}.{field}.name", text(ref, "name"), names.subdomain)
            causes += named(f"{path}.{field}.key", text(ref, "key"), names.config_key)
    if (ref := source.get("fileKeyRef")) is not None:
        causes += _file_key(ref, f"{path}.fileKeyRef")
    found = sum(
        source.get(field) is not None
        for field in ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
    )
    if not found:
        causes.append(invalid(path, "", f"must specify one of: {_SOURCES}"))
    elif text(variable, "value"):
        causes.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif found > 1:
        causes.append(invalid(path, "", "may not have more than one field specified at a time"))
    return causes


def _file_key(ref: Obj, path: str) -> list[Cause]:
    causes = named(f"{path}.key", text(ref, "key"), names.environment_name)
    causes += named(f"{path}.volumeName", text(ref, "volumeName"), names.label)
    where = text(ref, "path")
    return causes + (no_backsteps(f"{path}.path", where) if where else [required(f"{path}.path")])


def object_field(ref: Obj, path: str, fields: Collection[str]) -> list[Cause]:
    """Validate a reference to a field of the pod."""
    version, field = text(ref, "apiVersion"), text(ref, "fieldPath")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    subscripted = _SUBSCRIPTED.fullmatch(field)
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscripted:
        if subscripted.group(1) not in {"metadata.annotations", "metadata.labels"}:
            problem = f"field label does not support subscript: {field}"
    elif field not in _KNOWN_FIELDS:
        problem = f"field label not supported: {field}"
    if problem:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
    if subscripted:
        key = subscripted.group(2)
        if subscripted.group(1) == "metadata.annotations":
            key = key.lower()
        return ruled(path, key, names.qualified)
    if field == "spec.host":
        field = "spec.nodeName"
    return [] if field in fields else [not_supported(f"{path}.fieldPath", field, fields)]


def resource_field(ref: Obj, path: str, *, volume: bool) -> list[Cause]:
    """Validate a reference to a resource of a container, and its divisor."""
    causes: list[Cause] = []
    resource = text(ref, "resource")
    if volume and not text(ref, "containerName"):
        causes.append(required(f"{path}.containerName"))
    elif not resource:
        causes.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        causes.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    divisor = text(ref, "divisor") or "0"
    if amount(divisor) == 0:
        return causes
    units = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}
    unit = "hugepages" if resource.startswith(_PAGES) else units.get(resource.partition(".")[2])
    if unit == "cpu" and divisor not in {"1m", "1"}:
        rule = "only divisor's values 1m and 1 are supported with the cpu resource"
        causes.append(invalid(f"{path}.divisor", resource, rule))
    elif unit not in {None, "cpu"} and divisor not in _BYTES:
        rule = f"only divisor's values {', '.join(_BYTES)} are supported with the {unit} resource"
        causes.append(invalid(f"{path}.divisor", resource, rule))
    return causes


def environment_sources(container: Obj, path: str) -> list[Cause]:
    """Validate `envFrom`."""
    causes: list[Cause] = []
    for index, source in enumerate(items(container, "envFrom")):
        item_path = f"{path}[{index}]"
        if prefix := text(source, "prefix"):
            causes += ruled(f"{item_path}.prefix", prefix, names.environment_name)
        refs = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in refs:
            name = text(source[field], "name")
            causes += (
                each(f"{item_path}.{field}.name", name, names.in_prefix(names.subdomain, name))
                if name
                else [required(f"{item_path}.{field}.name")]
            )
        if not refs:
            causes.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(refs) > 1:
            causes.append(invalid(path, "", "may not have more than one field specified at a time"))
    return causes
