"""PersistentVolumes, storage classes, CSI drivers and attachments."""

from __future__ import annotations

import posixpath
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import (
    IMMUTABLE,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_negative,
    not_supported,
    required,
    too_long,
)
from lamina.server.kinds.builtin.validate.differences import difference
from lamina.server.kinds.builtin.validate.parts import count, in_order, items, part, ruled, supported, text
from lamina.server.kinds.builtin.validate.resources import amount, basic_amount
from lamina.server.kinds.builtin.validate.scheduling import node_selector
from lamina.server.kinds.builtin.validate.storage_claims import VOLUME_MODES, access_modes
from lamina.server.kinds.builtin.validate.volume_sources import PERSISTENT_SOURCES, csi_driver_name

_ORDER = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte",
    "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk",
    "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
_SECOND = {"cephfs": "cephFS"}
_INSIDE = {"gcePersistentDisk": "persistentDisk"}
_LIMIT = 256 * 1024


def volume_create(volume: Obj) -> list[Cause]:
    return _volume_spec(part(volume, "spec"), "spec", text(part(volume, "metadata"), "name"))


def _volume_spec(spec: Obj, path: str, name: str = "", *, inline: bool = False) -> list[Cause]:
    causes: list[Cause] = []
    if inline:
        causes += _inline(spec, path)
    modes = items(spec, "accessModes")
    if not modes:
        causes.append(required(f"{path}.accessModes"))
    causes += access_modes(modes, f"{path}.accessModes")
    if not inline:
        causes += _capacity(spec.get("capacity"), f"{path}.capacity")
        policies = ("Delete", "Recycle", "Retain")
        policy = spec.get("persistentVolumeReclaimPolicy") or None
        causes += supported(f"{path}.persistentVolumeReclaimPolicy", policy, policies)
        if (affinity := spec.get("nodeAffinity")) is not None:
            if (needed := affinity.get("required")) is not None:
                causes += node_selector(needed, f"{path}.nodeAffinity.required")
            else:
                where = f"{path}.nodeAffinity.required"
                causes.append(required(where, "must specify required node constraints"))
    causes += _sources(spec, path, name)
    causes += _rest(spec, path, inline=inline)
    return causes


def _capacity(given: Obj | None, path: str) -> list[Cause]:
    capacity = given or {}
    causes = [] if capacity else [required(path)]
    if set(capacity) != {"storage"}:
        causes.append(not_supported(path, in_order(given), ("storage",)))
    for name, value in capacity.items():
        item_path = f"{path}[{name}]"
        causes += basic_amount(item_path, value)
        if amount(value) <= 0:
            causes.append(invalid(item_path, value, "must be greater than zero"))
    return causes


def _inline(spec: Obj, path: str) -> list[Cause]:
    context = "in the context of inline volumes"
    causes = [
        forbidden(f"{path}.{field}", f"may not be specified {context}")
        for field in ("claimRef", "capacity", "nodeAffinity", "storageClassName")
        if spec.get(field)
    ]
    if spec.get("csi") is None:
        causes.append(required(f"{path}.csi", f"has to be specified {context}"))
    if (spec.get("persistentVolumeReclaimPolicy") or "Retain") != "Retain":
        causes.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {context}"))
    if (spec.get("volumeMode") or "Filesystem") != "Filesystem":
        rule = f"may not specify volumeMode other than Filesystem {context}"
        causes.append(forbidden(f"{path}.volumeMode", rule))
    return causes


def _sources(spec: Obj, path: str, name: str) -> list[Cause]:
    causes: list[Cause] = []
    found = ""
    for kind in _ORDER:
        source = spec.get(kind)
        if source is None:
            continue
        if found and kind != "flexVolume":
            rule = "may not specify more than 1 volume type"
            causes.append(forbidden(f"{path}.{_SECOND.get(kind, kind)}", rule))
            continue
        found = kind
        causes += PERSISTENT_SOURCES[kind](source, f"{path}.{_INSIDE.get(kind, kind)}")
        if kind == "local" and spec.get("nodeAffinity") is None:
            causes.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
        portal = text(source, "targetPortal") if kind == "iscsi" else ""
        if source.get("initiatorName") is not None and len(f"{name}:{portal}") > 64 and portal:
            rule = (
                "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
                "if iscsi.initiatorName is specified."
            )
            causes.append(invalid(f"{path}.iscsi.targetportal", portal, rule))
    if not found:
        causes.append(required(path, "must specify a volume type"))
    return causes


def _rest(spec: Obj, path: str, *, inline: bool) -> list[Cause]:
    causes: list[Cause] = []
    mounted = text(part(spec, "hostPath"), "path")
    if (
        mounted
        and posixpath.normpath(mounted) in {"/", "//"}
        and spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    ):
        rule = "may not be 'recycle' for a hostPath mount of '/'"
        causes.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", rule))
    if (name := text(spec, "storageClassName")) and not inline:
        causes += ruled(f"{path}.storageClassName", name, names.subdomain)
    if not inline:
        causes += supported(f"{path}.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    if (attributes := spec.get("volumeAttributesClassName")) is not None:
        item_path = f"{path}.volumeAttributesClassName"
        causes += (
            ruled(item_path, attributes, names.subdomain)
            if attributes
            else [required(item_path, "an empty string is disallowed")]
        )
        if spec.get("csi") is None:
            rule = "has to be specified when using volumeAttributesClassName"
            causes.append(required(f"{path}.csi", rule))
    return causes


def volume_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return []
    causes = volume_create(new)
    spec, before = part(new, "spec"), part(old, "spec")
    source, was = (
        {kind: one[kind] for kind in _ORDER if one.get(kind) is not None} for one in (spec, before)
    )
    if "csi" in source and "csi" in was and "controllerExpandSecretRef" not in was["csi"]:
        source["csi"] = {k: v for k, v in source["csi"].items() if k != "controllerExpandSecretRef"}
    if source != was:
        rule = f"spec.persistentvolumesource is immutable after creation\n{difference(was, source)}"
        causes.append(forbidden("spec.persistentvolumesource", rule))
    causes += immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    affinity, had = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if had is not None and affinity != had:
        rule = f"{IMMUTABLE}, except for updating from beta label to GA"
        causes.append(invalid("nodeAffinity", affinity, rule))
    if before.get("volumeAttributesClassName") and spec.get("volumeAttributesClassName") is None:
        rule = "update from non-nil value to nil is forbidden"
        causes.append(forbidden("spec.volumeAttributesClassName", rule))
    return causes


def class_create(storage_class: Obj) -> list[Cause]:
    causes: list[Cause] = []
    provisioner = text(storage_class, "provisioner")
    if provisioner:
        causes += ruled("provisioner", provisioner.lower(), names.qualified)
    else:
        causes.append(required("provisioner"))
    causes += _parameters(part(storage_class, "parameters"))
    policy = text(storage_class, "reclaimPolicy") or None
    causes += supported("reclaimPolicy", policy, ("Delete", "Retain"))
    mode = storage_class.get("volumeBindingMode")
    if mode is None:
        causes.append(required("volumeBindingMode"))
    causes += supported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    return causes + _topologies(items(storage_class, "allowedTopologies"))


def _parameters(parameters: Obj) -> list[Cause]:
    if len(parameters) > 512:
        return [too_long("parameters", 512)]
    causes = [invalid("parameters", "", "field can not be empty.")] if "" in parameters else []
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LIMIT:
        causes.append(too_long("parameters", _LIMIT))
    return causes


def _topologies(terms: Any) -> list[Cause]:
    causes: list[Cause] = []
    # kube-apiserver treats a term without expressions as a duplicate, even the first one.
    seen: list[dict[str, frozenset[str]]] = [{}]
    for index, term in enumerate(terms):
        item_path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, frozenset[str]] = {}
        for at, expression in enumerate(items(term, "matchLabelExpressions")):
            key, values = text(expression, "key"), items(expression, "values")
            if not values:
                causes.append(required(f"{item_path}[{at}].values"))
            causes += (
                duplicate(f"{item_path}[{at}].values[{place}]", value)
                for place, value in enumerate(values)
                if value in values[:place]
            )
            causes += ruled(f"{item_path}[{at}].key", key, names.qualified)
            if key in found:
                causes.append(duplicate(f"{item_path}[{at}].key", key))
            found[key] = frozenset(values)
        if found in seen:
            causes.append(duplicate(item_path, ""))
        seen.append(found)
    return causes


def class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = class_create(new)
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(field) or None) != (old.get(field) or None):
            causes.append(forbidden(field, f"updates to {field} are forbidden."))
    return causes + immutable("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))


def attachment_create(attachment: Obj) -> list[Cause]:
    spec, status = part(attachment, "spec"), part(attachment, "status")
    causes = [] if text(spec, "attacher") else [required("spec.attacher")]
    source = part(spec, "source")
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    both = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        causes.append(required("spec.source", both))
    elif inline is not None and name is not None:
        causes.append(forbidden("spec.source", both))
    elif name == "":
        where = "spec.source.persistentVolumeName"
        causes.append(required(where, "must specify non empty persistentVolumeName"))
    elif inline is not None:
        causes += _volume_spec(inline, "spec.source.inlineVolumeSpec", inline=True)
    causes += ruled("spec.nodeName", text(spec, "nodeName"), names.subdomain)
    size = sum(len(k.encode()) + len(v.encode()) for k, v in part(status, "attachmentMetadata").items())
    if size > _LIMIT:
        causes.append(too_long("status.attachmentMetadata", _LIMIT))
    for field in ("attachError", "detachError"):
        if len(text(part(status, field), "message").encode()) > 1024:
            causes.append(too_long(f"status.{field}.message", _LIMIT))
    causes += csi_driver_name("spec.attacher", text(spec, "attacher"))
    if name is not None:
        causes += ruled("spec.source.persistentVolumeName", name, names.subdomain)
    return causes


def attachment_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = attachment_create(new)
    if part(new, "spec") != part(old, "spec"):
        causes.append(invalid("spec", dict(part(new, "spec")), IMMUTABLE))
    return causes


def driver_create(driver: Obj) -> list[Cause]:
    spec = part(driver, "spec")
    causes = [
        required(f"spec.{shown}")
        for field, shown in (
            ("attachRequired", "attachedRequired"),
            ("podInfoOnMount", "podInfoOnMount"),
            ("storageCapacity", "storageCapacity"),
        )
        if spec.get(field) is None
    ]
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    causes += supported("spec.fsGroupPolicy", spec.get("fsGroupPolicy"), policies)
    seen: set[str] = set()
    for index, request in enumerate(items(spec, "tokenRequests")):
        item_path = f"spec.tokenRequests[{index}]"
        audience, seconds = text(request, "audience"), request.get("expirationSeconds")
        if audience in seen:
            causes.append(duplicate(f"{item_path}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None and seconds < 600:
            rule = "may not specify a duration less than 10 minutes"
            causes.append(invalid(f"{item_path}.expirationSeconds", seconds, rule))
        if seconds is not None and seconds > 1 << 32:
            rule = "may not specify a duration larger than 2^32 seconds"
            causes.append(invalid(f"{item_path}.expirationSeconds", seconds, rule))
    for mode in items(spec, "volumeLifecycleModes"):
        causes += supported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    if spec.get("seLinuxMount") is None:
        causes.append(required("spec.seLinuxMount"))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        rule = "must be greater than or equal to 10 seconds"
        causes.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, rule))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not items(spec, "tokenRequests"):
        rule = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        causes.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, rule))
    return causes


def driver_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    spec, before = part(new, "spec"), part(old, "spec")
    causes = driver_create(new)
    causes += immutable("spec.attachedRequired", spec.get("attachRequired"), before.get("attachRequired"))
    modes, had = spec.get("volumeLifecycleModes"), before.get("volumeLifecycleModes")
    return causes + immutable("spec.volumeLifecycleModes", modes, had)


def node_create(node: Obj) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, driver in enumerate(items(part(node, "spec"), "drivers")):
        item_path = f"spec.drivers[{index}]"
        name, node_id = text(driver, "name"), text(driver, "nodeID")
        causes += csi_driver_name(f"{item_path}.name", name)
        if not node_id:
            causes.append(required(f"{item_path}.nodeID"))
        if len(node_id.encode()) > 256:
            causes.append(invalid(f"{item_path}.nodeID", node_id, "must be 256 characters or less"))
        limit = count(part(driver, "allocatable"), "count")
        causes += not_negative(f"{item_path}.allocatable.count", limit)
        if name in seen:
            causes.append(duplicate(f"{item_path}.name", name))
        seen.add(name)
        keys = items(driver, "topologyKeys")
        for at, key in enumerate(keys):
            if not key:
                causes.append(required(item_path, key))
            if key in keys[:at]:
                causes.append(duplicate(item_path, key))
            causes += ruled(item_path, key, names.qualified)
    return causes


def node_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = node_create(new)
    before = {text(one, "name"): one for one in items(part(old, "spec"), "drivers")}
    for driver in items(part(new, "spec"), "drivers"):
        had = before.get(text(driver, "name"))
        fixed = {key: value for key, value in driver.items() if key != "allocatable"}
        if had is not None and fixed != {k: v for k, v in had.items() if k != "allocatable"}:
            causes.append(invalid("spec.drivers", fixed, IMMUTABLE))
    return causes
