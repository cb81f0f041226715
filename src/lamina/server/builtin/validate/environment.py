"""Where the environment of a container comes from."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import items, named, no_backsteps, ruled, text
from lamina.server.builtin.validate.resources import amount
from lamina.server.fields import each, invalid, not_supported, required

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
    said: list[Cause] = []
    for index, variable in enumerate(items(container, "env")):
        here = f"{path}[{index}]"
        said += named(f"{here}.name", text(variable, "name"), names.environment_name)
        if variable.get("valueFrom") is not None:
            said += _value_from(variable, f"{here}.valueFrom")
    return said


def _value_from(variable: Obj, path: str) -> list[Cause]:
    source = variable["valueFrom"]
    said: list[Cause] = []
    if (ref := source.get("fieldRef")) is not None:
        said += object_field(ref, f"{path}.fieldRef", ENVIRONMENT_FIELDS)
    if (ref := source.get("resourceFieldRef")) is not None:
        said += resource_field(ref, f"{path}.resourceFieldRef", volume=False)
    for field in ("configMapKeyRef", "secretKeyRef"):
        if (ref := source.get(field)) is not None:
            said += ruled(f"{path}.{field}.name", text(ref, "name"), names.subdomain)
            said += named(f"{path}.{field}.key", text(ref, "key"), names.config_key)
    if (ref := source.get("fileKeyRef")) is not None:
        said += _file_key(ref, f"{path}.fileKeyRef")
    found = sum(
        source.get(field) is not None
        for field in ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
    )
    if not found:
        said.append(invalid(path, "", f"must specify one of: {_SOURCES}"))
    elif text(variable, "value"):
        said.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif found > 1:
        said.append(invalid(path, "", "may not have more than one field specified at a time"))
    return said


def _file_key(ref: Obj, path: str) -> list[Cause]:
    said = named(f"{path}.key", text(ref, "key"), names.environment_name)
    said += named(f"{path}.volumeName", text(ref, "volumeName"), names.label)
    where = text(ref, "path")
    return said + (no_backsteps(f"{path}.path", where) if where else [required(f"{path}.path")])


def object_field(ref: Obj, path: str, fields: Collection[str]) -> list[Cause]:
    """Check which field of its own pod a container asks for."""
    version, field = text(ref, "apiVersion"), text(ref, "fieldPath")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    subscripted = _SUBSCRIPTED.fullmatch(field)
    wrong = ""
    if version != "v1":
        wrong = f"unsupported pod version: {version}"
    elif subscripted:
        if subscripted.group(1) not in {"metadata.annotations", "metadata.labels"}:
            wrong = f"field label does not support subscript: {field}"
    elif field not in _KNOWN_FIELDS:
        wrong = f"field label not supported: {field}"
    if wrong:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {wrong}")]
    if subscripted:
        key = subscripted.group(2)
        if subscripted.group(1) == "metadata.annotations":
            key = key.lower()
        return ruled(path, key, names.qualified)
    if field == "spec.host":
        field = "spec.nodeName"
    return [] if field in fields else [not_supported(f"{path}.fieldPath", field, fields)]


def resource_field(ref: Obj, path: str, *, volume: bool) -> list[Cause]:
    """Check which resource of a container is asked for, and in what unit."""
    said: list[Cause] = []
    resource = text(ref, "resource")
    if volume and not text(ref, "containerName"):
        said.append(required(f"{path}.containerName"))
    elif not resource:
        said.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        said.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    divisor = text(ref, "divisor") or "0"
    if amount(divisor) == 0:
        return said
    units = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}
    unit = "hugepages" if resource.startswith(_PAGES) else units.get(resource.partition(".")[2])
    if unit == "cpu" and divisor not in {"1m", "1"}:
        rule = "only divisor's values 1m and 1 are supported with the cpu resource"
        said.append(invalid(f"{path}.divisor", resource, rule))
    elif unit not in {None, "cpu"} and divisor not in _BYTES:
        rule = f"only divisor's values {', '.join(_BYTES)} are supported with the {unit} resource"
        said.append(invalid(f"{path}.divisor", resource, rule))
    return said


def environment_sources(container: Obj, path: str) -> list[Cause]:
    """Check the ConfigMaps and Secrets whose every key becomes a variable."""
    said: list[Cause] = []
    for index, source in enumerate(items(container, "envFrom")):
        here = f"{path}[{index}]"
        if prefix := text(source, "prefix"):
            said += ruled(f"{here}.prefix", prefix, names.environment_name)
        refs = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in refs:
            name = text(source[field], "name")
            said += (
                each(f"{here}.{field}.name", name, names.in_prefix(names.subdomain, name))
                if name
                else [required(f"{here}.{field}.name")]
            )
        if not refs:
            said.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(refs) > 1:
            said.append(invalid(path, "", "may not have more than one field specified at a time"))
    return said
