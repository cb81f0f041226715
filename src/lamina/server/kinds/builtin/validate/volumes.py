"""Volumes of a pod and the mounts of its containers."""

from __future__ import annotations

from typing import Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, each, forbidden, invalid, not_found, required
from lamina.server.kinds.builtin.validate.environment import VOLUME_FIELDS, object_field, resource_field
from lamina.server.kinds.builtin.validate.labels import label_selector
from lamina.server.kinds.builtin.validate.parts import (
    PULL_POLICIES,
    chosen,
    count,
    file_mode,
    file_path,
    items,
    named,
    no_backsteps,
    part,
    present,
    relative_path,
    signer,
    supported,
    text,
)
from lamina.server.kinds.builtin.validate.resources import amount
from lamina.server.kinds.builtin.validate.storage_claims import claim_template
from lamina.server.kinds.builtin.validate.volume_sources import POD_SOURCES, key_to_path

_ORDER: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_PLACE: Final = {kind: place for place, kind in enumerate(_ORDER)}
"""The source types, in the order in which kube-apiserver reports a second one."""
_SECOND: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_INSIDE: Final = {"gcePersistentDisk": "persistentDisk"}
"""Paths in messages that differ from the field names."""
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def volumes(spec: Obj, pod_name: str, path: str, *, is_pod: bool) -> tuple[dict[str, Obj], list[Cause]]:
    """Return the mountable volumes by name, and the errors of the others."""
    causes: list[Cause] = []
    good: dict[str, Obj] = {}
    made = {
        f"{pod_name}-{text(volume, 'name')}"
        for volume in items(spec, "volumes")
        if pod_name and volume.get("ephemeral") is not None
    }
    for index, volume in enumerate(items(spec, "volumes")):
        item_path = f"{path}[{index}]"
        name = text(volume, "name")
        problem = _source(volume, item_path, pod_name, is_pod=is_pod)
        problem += named(f"{item_path}.name", name, names.label)
        if name in good:
            problem.append(duplicate(f"{item_path}.name", name))
        if problem:
            causes += problem
        else:
            good[name] = volume
        claim = text(part(volume, "persistentVolumeClaim"), "claimName")
        if claim in made:
            rule = "must not reference a PVC that gets created for an ephemeral volume"
            causes.append(invalid(f"{item_path}.persistentVolumeClaim.claimName", claim, rule))
    return good, causes


def _source(volume: Obj, path: str, pod_name: str, *, is_pod: bool) -> list[Cause]:
    causes: list[Cause] = []
    found = ""
    for kind in sorted((kind for kind in volume if kind in _PLACE), key=_PLACE.__getitem__):
        source = volume[kind]
        if source is None:
            continue
        if found:
            rule = "may not specify more than 1 volume type"
            causes.append(forbidden(f"{path}.{_SECOND.get(kind, kind)}", rule))
            continue
        found = kind
        item_path = f"{path}.{_INSIDE.get(kind, kind)}"
        if kind in POD_SOURCES:
            causes += POD_SOURCES[kind](source, item_path)
        elif kind == "emptyDir":
            if amount(text(source, "sizeLimit") or "0") < 0:
                causes.append(
                    forbidden(f"{item_path}.sizeLimit", "SizeLimit field must be a valid resource quantity")
                )
        elif kind == "downwardAPI":
            causes += file_mode(f"{item_path}.defaultMode", source.get("defaultMode"))
            for item in items(source, "items"):
                causes += _downward_file(item, item_path)
        elif kind == "projected":
            causes += file_mode(f"{item_path}.defaultMode", source.get("defaultMode"))
            causes += _Projection(item_path).check(source)
        elif kind == "ephemeral":
            causes += _ephemeral(volume, path, pod_name)
        else:
            if is_pod:
                causes += present(item_path, source, "reference")
            causes += chosen(f"{item_path}.pullPolicy", source.get("pullPolicy"), PULL_POLICIES)
    if not found:
        causes.append(required(path, "must specify a volume type"))
    return causes


def _ephemeral(volume: Obj, path: str, pod_name: str) -> list[Cause]:
    template = part(volume, "ephemeral").get("volumeClaimTemplate")
    item_path = f"{path}.ephemeral.volumeClaimTemplate"
    causes = [required(item_path)] if template is None else claim_template(template, item_path)
    name = text(volume, "name")
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        causes += each(
            f"{path}.name", name, [f'PVC name "{claim}": {problem}' for problem in names.subdomain(claim)]
        )
    return causes


def _downward_file(item: Obj, path: str) -> list[Cause]:
    causes = present(path, item, "path") + file_path(f"{path}.path", text(item, "path"))
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        causes += object_field(field, f"{path}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            both = "fieldRef and resourceFieldRef can not be specified simultaneously"
            causes.append(invalid(path, "resource", both))
    elif resource is not None:
        causes += resource_field(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        causes.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return causes + file_mode(f"{path}.mode", item.get("mode"))


class _Projection:
    """Validates the sources of a projected volume, whose file paths must be unique."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: set[str] = set()
        self._said: list[Cause] = []

    def check(self, projection: Obj) -> list[Cause]:
        for index, source in enumerate(items(projection, "sources")):
            item_path = f"{self._path}.sources[{index}]"
            kinds = [kind for kind in self._RULES if source.get(kind) is not None]
            for kind in kinds:
                self._RULES[kind](self, source[kind], f"{item_path}.{kind}")
            if len(kinds) > 1:
                self._said.append(forbidden(item_path, "may not specify more than 1 volume type per source"))
        return self._said

    def _write(self, file: str, shown: str) -> None:
        if file in self._files:
            self._said.append(invalid(self._path, shown, "conflicting duplicate paths"))
        self._files.add(file)

    def _keys(self, source: Obj, path: str) -> None:
        self._said += present(path, source, "name")
        for index, item in enumerate(items(source, "items")):
            self._said += key_to_path(item, f"{path}.items[{index}]")
            if file := text(item, "path"):
                self._write(file, text(source, "name"))

    def _downward(self, source: Obj, path: str) -> None:
        for item in items(source, "items"):
            self._said += _downward_file(item, path)
            if file := text(item, "path"):
                self._write(file, file)

    def _token(self, source: Obj, path: str) -> None:
        seconds = count(source, "expirationSeconds")
        if seconds < 600:
            rule = "may not specify a duration less than 10 minutes"
            self._said.append(invalid(f"{path}.expirationSeconds", seconds, rule))
        if seconds > 1 << 32:
            rule = "may not specify a duration larger than 2^32 seconds"
            self._said.append(invalid(f"{path}.expirationSeconds", seconds, rule))
        file = text(source, "path")
        item_path = f"{self._path}.path"
        self._said += file_path(item_path, file) if file else [required(item_path)]

    def _bundle(self, source: Obj, path: str) -> None:
        name, signed = source.get("name"), source.get("signerName")
        if name is not None and signed is not None:
            self._said.append(invalid(path, dict(source), "only one of name and signerName may be used"))
        elif name is not None:
            if not name:
                self._said.append(required(f"{path}.name", "must be a valid object name"))
            rule = "not a valid clustertrustbundlename: "
            self._said += each(
                f"{path}.name", name, [rule + problem for problem in names.subdomain(name.rpartition(":")[2])]
            )
            if source.get("labelSelector") is not None:
                detail = "labelSelector must be unset if name is specified"
                self._said.append(invalid(f"{path}.labelSelector", source["labelSelector"], detail))
        elif signed is not None:
            if not signed:
                self._said.append(required(f"{path}.signerName", "must be a valid signer name"))
            self._said += signer(f"{path}.signerName", signed)
            self._said += label_selector(source.get("labelSelector"), f"{path}.labelSelector")
        else:
            self._said.append(required(path, "either name or signerName must be specified"))
        self._said += present(path, source, "path") + file_path(f"{path}.path", text(source, "path"))
        self._write(text(source, "path"), text(source, "path"))

    def _certificate(self, source: Obj, path: str) -> None:
        signed = text(source, "signerName")
        self._said += signer(f"{path}.signerName", signed)
        self._said += supported(f"{path}.keyType", text(source, "keyType"), _KEY_TYPES)
        seconds = source.get("maxExpirationSeconds")
        if seconds is not None:
            domain = signed.partition("/")[0]
            ours = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
            most = 24 * 3600 if ours else 91 * 24 * 3600
            item_path = f"{path}.maxExpirationSeconds"
            if seconds < 3600:
                rule = "if provided, maxExpirationSeconds must be >= 3600"
                self._said.append(invalid(item_path, seconds, rule))
            if seconds > most:
                rule = f"if provided, maxExpirationSeconds must be <= {most}"
                self._said.append(invalid(item_path, seconds, rule))
        files = [f for f in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(f)]
        for field in files:
            self._said += file_path(f"{path}.{field}", source[field])
            self._write(source[field], source[field])
        if not files:
            rule = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
            self._said.append(required(path, rule))

    _RULES: Final = {
        "secret": _keys,
        "configMap": _keys,
        "downwardAPI": _downward,
        "serviceAccountToken": _token,
        "clusterTrustBundle": _bundle,
        "podCertificate": _certificate,
    }


def mounts(container: Obj, known: dict[str, Obj], path: str) -> list[Cause]:
    """Validate the mounts of a container."""
    causes: list[Cause] = []
    devices = {text(one, "name"): text(one, "devicePath") for one in items(container, "volumeDevices")}
    seen: set[str] = set()
    for index, mount in enumerate(items(container, "volumeMounts")):
        item_path = f"{path}[{index}]"
        name, where = text(mount, "name"), text(mount, "mountPath")
        causes += present(item_path, mount, "name")
        if name not in known:
            causes.append(not_found(f"{item_path}.name", name))
        causes += present(item_path, mount, "mountPath")
        if where in seen:
            causes.append(invalid(f"{item_path}.mountPath", where, "must be unique"))
        seen.add(where)
        if name in devices:
            causes.append(invalid(f"{item_path}.name", name, "must not already exist in volumeDevices"))
        if where in devices.values():
            taken = "must not already exist as a path in volumeDevices"
            causes.append(invalid(f"{item_path}.mountPath", where, taken))
        below, pattern = text(mount, "subPath"), text(mount, "subPathExpr")
        causes += relative_path(f"{path}.subPath", below)
        if pattern:
            if below:
                rule = "subPathExpr and subPath are mutually exclusive"
                causes.append(invalid(f"{item_path}.subPathExpr", pattern, rule))
            causes += relative_path(f"{path}.subPathExpr", pattern)
        causes += _propagation(mount, container, f"{path}.mountPropagation")
        causes += _recursive(mount, f"{path}.recursiveReadOnly")
    return causes


def _propagation(mount: Obj, container: Obj, path: str) -> list[Cause]:
    propagation = mount.get("mountPropagation")
    causes = supported(path, propagation, ("Bidirectional", "HostToContainer", "None"))
    if propagation == "Bidirectional" and not part(container, "securityContext").get("privileged"):
        rule = "Bidirectional mount propagation is available only to privileged containers"
        causes.append(forbidden(path, rule))
    return causes


def _recursive(mount: Obj, path: str) -> list[Cause]:
    recursive = mount.get("recursiveReadOnly")
    causes = supported(path, recursive, ("Disabled", "Enabled", "IfPossible"))
    if recursive in {"Enabled", "IfPossible"}:
        if not mount.get("readOnly"):
            causes.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation") not in {None, "None"}:
            causes.append(
                forbidden(path, "may only be specified when mountPropagation is None or not specified")
            )
    return causes


def devices(container: Obj, known: dict[str, Obj], path: str) -> list[Cause]:
    """Validate the block devices of a container."""
    causes: list[Cause] = []
    mounted = {text(one, "name"): text(one, "mountPath") for one in items(container, "volumeMounts")}
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(items(container, "volumeDevices")):
        item_path = f"{path}[{index}]"
        name, where = text(device, "name"), text(device, "devicePath")
        causes += present(item_path, device, "name")
        if name in seen_names:
            causes.append(invalid(f"{item_path}.name", name, "must be unique"))
        volume = known.get(name)
        if volume is None:
            causes.append(not_found(f"{item_path}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            rule = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            causes.append(invalid(f"{item_path}.name", name, rule))
        causes += present(item_path, device, "devicePath")
        if where in seen_paths:
            causes.append(invalid(f"{item_path}.devicePath", where, "must be unique"))
        if no_backsteps("", where):
            causes.append(invalid(f"{item_path}.devicePath", where, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(where)
        if name in mounted:
            causes.append(invalid(f"{item_path}.name", name, "must not already exist in volumeMounts"))
        if where in mounted.values():
            taken = "must not already exist as a path in volumeMounts"
            causes.append(invalid(f"{item_path}.devicePath", where, taken))
        if name:
            seen_names.add(name)
    return causes
