"""The volumes of a pod, and what its containers mount of them."""

from __future__ import annotations

from typing import Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.environment import VOLUME_FIELDS, object_field, resource_field
from lamina.server.builtin.validate.labels import label_selector
from lamina.server.builtin.validate.parts import (
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
from lamina.server.builtin.validate.resources import amount
from lamina.server.builtin.validate.storage_claims import claim_template
from lamina.server.builtin.validate.volume_sources import POD_SOURCES, key_to_path
from lamina.server.fields import (
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    required,
)

_ORDER: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_PLACE: Final = {kind: place for place, kind in enumerate(_ORDER)}
"""Which sources there are, and in which order a second one is noticed."""
_SECOND: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_INSIDE: Final = {"gcePersistentDisk": "persistentDisk"}
"""Where the server's own paths differ from the fields' names."""
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def volumes(spec: Obj, pod_name: str, path: str, *, is_pod: bool) -> tuple[dict[str, Obj], list[Cause]]:
    """Return the volumes that can be mounted, by name, and what is wrong with the others."""
    said: list[Cause] = []
    good: dict[str, Obj] = {}
    made = {
        f"{pod_name}-{text(volume, 'name')}"
        for volume in items(spec, "volumes")
        if pod_name and volume.get("ephemeral") is not None
    }
    for index, volume in enumerate(items(spec, "volumes")):
        here = f"{path}[{index}]"
        name = text(volume, "name")
        wrong = _source(volume, here, pod_name, is_pod=is_pod)
        wrong += named(f"{here}.name", name, names.label)
        if name in good:
            wrong.append(duplicate(f"{here}.name", name))
        if wrong:
            said += wrong
        else:
            good[name] = volume
        claim = text(part(volume, "persistentVolumeClaim"), "claimName")
        if claim in made:
            rule = "must not reference a PVC that gets created for an ephemeral volume"
            said.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, rule))
    return good, said


def _source(volume: Obj, path: str, pod_name: str, *, is_pod: bool) -> list[Cause]:
    said: list[Cause] = []
    found = ""
    for kind in sorted((kind for kind in volume if kind in _PLACE), key=_PLACE.__getitem__):
        source = volume[kind]
        if source is None:
            continue
        if found:
            rule = "may not specify more than 1 volume type"
            said.append(forbidden(f"{path}.{_SECOND.get(kind, kind)}", rule))
            continue
        found = kind
        here = f"{path}.{_INSIDE.get(kind, kind)}"
        if kind in POD_SOURCES:
            said += POD_SOURCES[kind](source, here)
        elif kind == "emptyDir":
            if amount(text(source, "sizeLimit") or "0") < 0:
                said.append(
                    forbidden(f"{here}.sizeLimit", "SizeLimit field must be a valid resource quantity")
                )
        elif kind == "downwardAPI":
            said += file_mode(f"{here}.defaultMode", source.get("defaultMode"))
            for item in items(source, "items"):
                said += _downward_file(item, here)
        elif kind == "projected":
            said += file_mode(f"{here}.defaultMode", source.get("defaultMode"))
            said += _Projection(here).check(source)
        elif kind == "ephemeral":
            said += _ephemeral(volume, path, pod_name)
        else:
            if is_pod:
                said += present(here, source, "reference")
            said += chosen(f"{here}.pullPolicy", source.get("pullPolicy"), PULL_POLICIES)
    if not found:
        said.append(required(path, "must specify a volume type"))
    return said


def _ephemeral(volume: Obj, path: str, pod_name: str) -> list[Cause]:
    template = part(volume, "ephemeral").get("volumeClaimTemplate")
    here = f"{path}.ephemeral.volumeClaimTemplate"
    said = [required(here)] if template is None else claim_template(template, here)
    name = text(volume, "name")
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        said += each(
            f"{path}.name", name, [f'PVC name "{claim}": {wrong}' for wrong in names.subdomain(claim)]
        )
    return said


def _downward_file(item: Obj, path: str) -> list[Cause]:
    said = present(path, item, "path") + file_path(f"{path}.path", text(item, "path"))
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        said += object_field(field, f"{path}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            both = "fieldRef and resourceFieldRef can not be specified simultaneously"
            said.append(invalid(path, "resource", both))
    elif resource is not None:
        said += resource_field(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        said.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return said + file_mode(f"{path}.mode", item.get("mode"))


class _Projection:
    """Checks the sources of a projected volume, which must not write the same file twice."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: set[str] = set()
        self._said: list[Cause] = []

    def check(self, projection: Obj) -> list[Cause]:
        for index, source in enumerate(items(projection, "sources")):
            here = f"{self._path}.sources[{index}]"
            kinds = [kind for kind in self._RULES if source.get(kind) is not None]
            for kind in kinds:
                self._RULES[kind](self, source[kind], f"{here}.{kind}")
            if len(kinds) > 1:
                self._said.append(forbidden(here, "may not specify more than 1 volume type per source"))
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
        here = f"{self._path}.path"
        self._said += file_path(here, file) if file else [required(here)]

    def _bundle(self, source: Obj, path: str) -> None:
        name, signed = source.get("name"), source.get("signerName")
        if name is not None and signed is not None:
            self._said.append(invalid(path, dict(source), "only one of name and signerName may be used"))
        elif name is not None:
            if not name:
                self._said.append(required(f"{path}.name", "must be a valid object name"))
            rule = "not a valid clustertrustbundlename: "
            self._said += each(
                f"{path}.name", name, [rule + wrong for wrong in names.subdomain(name.rpartition(":")[2])]
            )
            if source.get("labelSelector") is not None:
                told = "labelSelector must be unset if name is specified"
                self._said.append(invalid(f"{path}.labelSelector", source["labelSelector"], told))
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
            here = f"{path}.maxExpirationSeconds"
            if seconds < 3600:
                rule = "if provided, maxExpirationSeconds must be >= 3600"
                self._said.append(invalid(here, seconds, rule))
            if seconds > most:
                rule = f"if provided, maxExpirationSeconds must be <= {most}"
                self._said.append(invalid(here, seconds, rule))
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
    """Check what a container mounts."""
    said: list[Cause] = []
    devices = {text(one, "name"): text(one, "devicePath") for one in items(container, "volumeDevices")}
    seen: set[str] = set()
    for index, mount in enumerate(items(container, "volumeMounts")):
        here = f"{path}[{index}]"
        name, where = text(mount, "name"), text(mount, "mountPath")
        said += present(here, mount, "name")
        if name not in known:
            said.append(not_found(f"{here}.name", name))
        said += present(here, mount, "mountPath")
        if where in seen:
            said.append(invalid(f"{here}.mountPath", where, "must be unique"))
        seen.add(where)
        if name in devices:
            said.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if where in devices.values():
            taken = "must not already exist as a path in volumeDevices"
            said.append(invalid(f"{here}.mountPath", where, taken))
        below, pattern = text(mount, "subPath"), text(mount, "subPathExpr")
        said += relative_path(f"{path}.subPath", below)
        if pattern:
            if below:
                rule = "subPathExpr and subPath are mutually exclusive"
                said.append(invalid(f"{here}.subPathExpr", pattern, rule))
            said += relative_path(f"{path}.subPathExpr", pattern)
        said += _propagation(mount, container, f"{path}.mountPropagation")
        said += _recursive(mount, f"{path}.recursiveReadOnly")
    return said


def _propagation(mount: Obj, container: Obj, path: str) -> list[Cause]:
    propagation = mount.get("mountPropagation")
    said = supported(path, propagation, ("Bidirectional", "HostToContainer", "None"))
    if propagation == "Bidirectional" and not part(container, "securityContext").get("privileged"):
        rule = "Bidirectional mount propagation is available only to privileged containers"
        said.append(forbidden(path, rule))
    return said


def _recursive(mount: Obj, path: str) -> list[Cause]:
    recursive = mount.get("recursiveReadOnly")
    said = supported(path, recursive, ("Disabled", "Enabled", "IfPossible"))
    if recursive in {"Enabled", "IfPossible"}:
        if not mount.get("readOnly"):
            said.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation") not in {None, "None"}:
            said.append(
                forbidden(path, "may only be specified when mountPropagation is None or not specified")
            )
    return said


def devices(container: Obj, known: dict[str, Obj], path: str) -> list[Cause]:
    """Check which volumes a container sees as block devices."""
    said: list[Cause] = []
    mounted = {text(one, "name"): text(one, "mountPath") for one in items(container, "volumeMounts")}
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(items(container, "volumeDevices")):
        here = f"{path}[{index}]"
        name, where = text(device, "name"), text(device, "devicePath")
        said += present(here, device, "name")
        if name in seen_names:
            said.append(invalid(f"{here}.name", name, "must be unique"))
        volume = known.get(name)
        if volume is None:
            said.append(not_found(f"{here}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            rule = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            said.append(invalid(f"{here}.name", name, rule))
        said += present(here, device, "devicePath")
        if where in seen_paths:
            said.append(invalid(f"{here}.devicePath", where, "must be unique"))
        if no_backsteps("", where):
            said.append(invalid(f"{here}.devicePath", where, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(where)
        if name in mounted:
            said.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if where in mounted.values():
            taken = "must not already exist as a path in volumeMounts"
            said.append(invalid(f"{here}.devicePath", where, taken))
        if name:
            seen_names.add(name)
    return said
