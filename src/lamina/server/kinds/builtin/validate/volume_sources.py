"""
Volume sources, one rule per type.

Pods and PersistentVolumes share most of them; if a PersistentVolume requires more, the
source has a second rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import each, invalid, not_supported, required, too_long
from lamina.server.kinds.builtin.validate.parts import (
    count,
    file_mode,
    file_path,
    items,
    named,
    no_backsteps,
    part,
    present,
    relative_path,
    ruled,
    supported,
    text,
)

SourceRule = Callable[[Obj, str], list[Cause]]

_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_INITIATORS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)\Z"),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}"),
}


def key_to_path(item: Obj, path: str) -> list[Cause]:
    """Validate the mapping of a ConfigMap or Secret key to a file."""
    return [
        *present(path, item, "key", "path"),
        *file_path(f"{path}.path", text(item, "path")),
        *file_mode(f"{path}.mode", item.get("mode")),
    ]


def host_path(source: Obj, path: str) -> list[Cause]:
    where = text(source, "path")
    if not where:
        return [required(f"{path}.path")]
    return no_backsteps(f"{path}.path", where) + supported(
        f"{path}.type", source.get("type"), _HOST_PATH_TYPES
    )


def _git_repo(source: Obj, path: str) -> list[Cause]:
    return present(path, source, "repository") + relative_path(f"{path}.directory", text(source, "directory"))


def _disk(field: str) -> SourceRule:
    def rule(source: Obj, path: str) -> list[Cause]:
        causes = present(path, source, field)
        if not 0 <= count(source, "partition") <= 255:
            causes.append(
                invalid(f"{path}.partition", count(source, "partition"), names.inclusive_range_error(1, 255))
            )
        return causes

    return rule


def _keyed(field: str) -> SourceRule:
    def rule(source: Obj, path: str) -> list[Cause]:
        causes = present(path, source, field) + file_mode(f"{path}.defaultMode", source.get("defaultMode"))
        for index, item in enumerate(items(source, "items")):
            causes += key_to_path(item, f"{path}.items[{index}]")
        return causes

    return rule


def _nfs(source: Obj, path: str) -> list[Cause]:
    causes = present(path, source, "server", "path")
    if not text(source, "path").startswith("/"):
        causes.append(invalid(f"{path}.path", text(source, "path"), "must be an absolute path"))
    return causes


def _initiator(path: str, name: str, start: str) -> list[Cause]:
    kind = name[:3]
    if kind not in _INITIATORS:
        return [invalid(path, name, start)]
    matcher = _INITIATORS[kind].search if kind == "iqn" else _INITIATORS[kind].fullmatch
    return [] if matcher(name) else [invalid(path, name, "must be valid format")]


def _iscsi(source: Obj, path: str, start: str) -> list[Cause]:
    causes = present(path, source, "targetPortal")
    if iqn := text(source, "iqn"):
        causes += _initiator(f"{path}.iqn", iqn, start)
    else:
        causes.append(required(f"{path}.iqn"))
    if not 0 <= count(source, "lun") <= 255:
        causes.append(invalid(f"{path}.lun", source["lun"], names.inclusive_range_error(0, 255)))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and not source.get("secretRef"):
        causes.append(required(f"{path}.secretRef"))
    if (initiator := source.get("initiatorName")) is not None:
        causes += _initiator(f"{path}.initiatorname", initiator, start)
    return causes


def _pod_iscsi(source: Obj, path: str) -> list[Cause]:
    return _iscsi(source, path, "must be valid format starting with iqn, eui, or naa")


def _persistent_iscsi(source: Obj, path: str) -> list[Cause]:
    causes = _iscsi(source, path, "must be valid format")
    if source.get("secretRef") is not None:
        causes += present(f"{path}.secretRef", part(source, "secretRef"), "name")
    return causes


def _fibre(source: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    targets, wwids = items(source, "targetWWNs"), items(source, "wwids")
    item_path = f"{path}.targetWWNs"
    if not targets and not wwids:
        causes.append(required(item_path, "must specify either targetWWNs or wwids, but not both"))
    if targets and wwids:
        causes.append(invalid(item_path, targets, "targetWWNs and wwids can not be specified simultaneously"))
    if targets:
        lun = source.get("lun")
        if lun is None:
            causes.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        elif not 0 <= lun <= 255:
            causes.append(invalid(f"{path}.lun", lun, names.inclusive_range_error(0, 255)))
    return causes


def _quobyte(source: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    registry = text(source, "registry")
    if not registry:
        causes.append(required(f"{path}.registry", pairs))
    elif len(text(source, "tenant")) >= 65:
        causes.append(
            required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
        )
    else:
        for pair in registry.split(","):
            if not re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:]*", pair):
                causes.append(invalid(f"{path}.registry", registry, pairs))
    return causes + present(path, source, "volume")


def _flocker(source: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    name, uuid = text(source, "datasetName"), text(source, "datasetUUID")
    if not name and not uuid:
        causes.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        both = "datasetName and datasetUUID can not be specified simultaneously"
        causes.append(invalid(path, "resource", both))
    if "/" in name:
        causes.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return causes


def _flex(source: Obj, path: str) -> list[Cause]:
    causes = present(path, source, "driver")
    for key in part(source, "options"):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            reserved = "kubernetes.io and k8s.io namespaces are reserved"
            causes.append(invalid(f"{path}.options[{key}]", key, reserved))
    return causes


def _azure_disk(source: Obj, path: str) -> list[Cause]:
    causes = present(path, source, "diskName", "diskURI")
    causes += supported(f"{path}.cachingMode", source.get("cachingMode"), ("None", "ReadOnly", "ReadWrite"))
    kind, uri = source.get("kind"), text(source, "diskURI")
    causes += supported(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))
    managed = (
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
    )
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        causes.append(not_supported(f"{path}.diskURI", uri, [managed]))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
        causes.append(not_supported(f"{path}.diskURI", uri, [blob]))
    return causes


def csi_driver_name(path: str, name: str) -> list[Cause]:
    if not name:
        return [required(path)]
    causes = [too_long(path, 63)] if len(name.encode()) > 63 else []
    return causes + each(path, name, names.subdomain(name.lower()))


def _inline_csi(source: Obj, path: str) -> list[Cause]:
    causes = csi_driver_name(f"{path}.driver", text(source, "driver"))
    if (ref := source.get("nodePublishSecretRef")) is not None:
        name = text(ref, "name")
        where = f"{path}.name" if name else f"{path}.nodePublishSecretRef.name"
        causes += named(where, name, names.subdomain)
    return causes


def _persistent_csi(source: Obj, path: str) -> list[Cause]:
    causes = csi_driver_name(f"{path}.driver", text(source, "driver")) + present(path, source, "volumeHandle")
    for field in (
        "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
    ):  # fmt: skip
        if (ref := source.get(field)) is not None:
            causes += named(f"{path}.{field}.name", text(ref, "name"), names.subdomain)
            causes += named(f"{path}.{field}.namespace", text(ref, "namespace"), names.label)
    return causes


def _storage_os(source: Obj, path: str, *fields: str) -> list[Cause]:
    causes = named(f"{path}.volumeName", text(source, "volumeName"), names.label)
    if namespace := text(source, "volumeNamespace"):
        causes += ruled(f"{path}.volumeNamespace", namespace, names.label)
    if (ref := source.get("secretRef")) is not None:
        causes += present(f"{path}.secretRef", ref, *fields)
    return causes


def _local(source: Obj, path: str) -> list[Cause]:
    where = text(source, "path")
    return no_backsteps(f"{path}.path", where) if where else [required(f"{path}.path")]


def _glusterfs(source: Obj, path: str) -> list[Cause]:
    causes = present(path, source, "endpoints", "path")
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        rule = "if the endpointnamespace is set, it must be a valid namespace name"
        causes.append(invalid(f"{path}.endpointsNamespace", namespace, rule))
    elif namespace:
        causes += ruled(f"{path}.endpointsNamespace", namespace, names.label)
    return causes


def _with(*fields: str) -> SourceRule:
    return lambda source, path: present(path, source, *fields)


def _with_secret(field: str, *secret: str) -> SourceRule:
    def rule(source: Obj, path: str) -> list[Cause]:
        causes = present(path, source, field)
        if (ref := source.get("secretRef")) is not None:
            causes += present(f"{path}.secretRef", ref, *secret)
        return causes

    return rule


_SHARED: Final[Mapping[str, SourceRule]] = {
    "hostPath": host_path,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "nfs": _nfs,
    "glusterfs": _with("endpoints", "path"),
    "flocker": _flocker,
    "rbd": _with("monitors", "image"),
    "quobyte": _quobyte,
    "cephfs": _with("monitors"),
    "fc": _fibre,
    "flexVolume": _flex,
    "azureFile": _with("secretName", "shareName"),
    "vsphereVolume": _with("volumePath"),
    "photonPersistentDisk": _with("pdID"),
    "portworxVolume": _with("volumeID"),
    "azureDisk": _azure_disk,
    "scaleIO": _with("gateway", "system", "volumeName"),
}

POD_SOURCES: Final[Mapping[str, SourceRule]] = {
    **_SHARED,
    "gitRepo": _git_repo,
    "secret": _keyed("secretName"),
    "configMap": _keyed("name"),
    "iscsi": _pod_iscsi,
    "persistentVolumeClaim": _with("claimName"),
    "cinder": _with_secret("volumeID", "name"),
    "storageos": lambda source, path: _storage_os(source, path, "name"),
    "csi": _inline_csi,
}
"""Sources of a pod's volumes, except for those that depend on more than themselves."""

PERSISTENT_SOURCES: Final[Mapping[str, SourceRule]] = {
    **_SHARED,
    "glusterfs": _glusterfs,
    "iscsi": _persistent_iscsi,
    "cinder": _with_secret("volumeID", "name", "namespace"),
    "local": _local,
    "storageos": lambda source, path: _storage_os(source, path, "name", "namespace"),
    "csi": _persistent_csi,
}
