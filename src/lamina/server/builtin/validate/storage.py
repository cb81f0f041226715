"""PersistentVolumes and the classes, drivers and attachments around them."""

from __future__ import annotations

import posixpath
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.differences import difference
from lamina.server.builtin.validate.parts import count, in_order, items, part, ruled, supported, text
from lamina.server.builtin.validate.resources import amount, basic_amount
from lamina.server.builtin.validate.scheduling import node_selector
from lamina.server.builtin.validate.storage_claims import VOLUME_MODES, access_modes
from lamina.server.builtin.validate.volume_sources import PERSISTENT_SOURCES, csi_driver_name
from lamina.server.fields import (
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
    said: list[Cause] = []
    if inline:
        said += _inline(spec, path)
    modes = items(spec, "accessModes")
    if not modes:
        said.append(required(f"{path}.accessModes"))
    said += access_modes(modes, f"{path}.accessModes")
    if not inline:
        said += _capacity(spec.get("capacity"), f"{path}.capacity")
        policies = ("Delete", "Recycle", "Retain")
        policy = spec.get("persistentVolumeReclaimPolicy") or None
        said += supported(f"{path}.persistentVolumeReclaimPolicy", policy, policies)
        if (affinity := spec.get("nodeAffinity")) is not None:
            if (needed := affinity.get("required")) is not None:
                said += node_selector(needed, f"{path}.nodeAffinity.required")
            else:
                where = f"{path}.nodeAffinity.required"
                said.append(required(where, "must specify required node constraints"))
    said += _sources(spec, path, name)
    said += _rest(spec, path, inline=inline)
    return said


def _capacity(given: Obj | None, path: str) -> list[Cause]:
    capacity = given or {}
    said = [] if capacity else [required(path)]
    if set(capacity) != {"storage"}:
        said.append(not_supported(path, in_order(given), ("storage",)))
    for name, value in capacity.items():
        here = f"{path}[{name}]"
        said += basic_amount(here, value)
        if amount(value) <= 0:
            said.append(invalid(here, value, "must be greater than zero"))
    return said


def _inline(spec: Obj, path: str) -> list[Cause]:
    context = "in the context of inline volumes"
    said = [
        forbidden(f"{path}.{field}", f"may not be specified {context}")
        for field in ("claimRef", "capacity", "nodeAffinity", "storageClassName")
        if spec.get(field)
    ]
    if spec.get("csi") is None:
        said.append(required(f"{path}.csi", f"has to be specified {context}"))
    if (spec.get("persistentVolumeReclaimPolicy") or "Retain") != "Retain":
        said.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {context}"))
    if (spec.get("volumeMode") or "Filesystem") != "Filesystem":
        rule = f"may not specify volumeMode other than Filesystem {context}"
        said.append(forbidden(f"{path}.volumeMode", rule))
    return said


def _sources(spec: Obj, path: str, name: str) -> list[Cause]:
    said: list[Cause] = []
    found = ""
    for kind in _ORDER:
        source = spec.get(kind)
        if source is None:
            continue
        if found and kind != "flexVolume":
            rule = "may not specify more than 1 volume type"
            said.append(forbidden(f"{path}.{_SECOND.get(kind, kind)}", rule))
            continue
        found = kind
        said += PERSISTENT_SOURCES[kind](source, f"{path}.{_INSIDE.get(kind, kind)}")
        if kind == "local" and spec.get("nodeAffinity") is None:
            said.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
        portal = text(source, "targetPortal") if kind == "iscsi" else ""
        if source.get("initiatorName") is not None and len(f"{name}:{portal}") > 64 and portal:
            rule = (
                "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
                "if iscsi.initiatorName is specified."
            )
            said.append(invalid(f"{path}.iscsi.targetportal", portal, rule))
    if not found:
        said.append(required(path, "must specify a volume type"))
    return said


def _rest(spec: Obj, path: str, *, inline: bool) -> list[Cause]:
    said: list[Cause] = []
    mounted = text(part(spec, "hostPath"), "path")
    if (
        mounted
        and posixpath.normpath(mounted) in {"/", "//"}
        and spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    ):
        rule = "may not be 'recycle' for a hostPath mount of '/'"
        said.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", rule))
    if (name := text(spec, "storageClassName")) and not inline:
        said += ruled(f"{path}.storageClassName", name, names.subdomain)
    if not inline:
        said += supported(f"{path}.volumeMode", spec.get("volumeMode"), VOLUME_MODES)
    if (attributes := spec.get("volumeAttributesClassName")) is not None:
        here = f"{path}.volumeAttributesClassName"
        said += (
            ruled(here, attributes, names.subdomain)
            if attributes
            else [required(here, "an empty string is disallowed")]
        )
        if spec.get("csi") is None:
            rule = "has to be specified when using volumeAttributesClassName"
            said.append(required(f"{path}.csi", rule))
    return said


def volume_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return []
    said = volume_create(new)
    spec, before = part(new, "spec"), part(old, "spec")
    source, was = (
        {kind: one[kind] for kind in _ORDER if one.get(kind) is not None} for one in (spec, before)
    )
    if "csi" in source and "csi" in was and "controllerExpandSecretRef" not in was["csi"]:
        source["csi"] = {k: v for k, v in source["csi"].items() if k != "controllerExpandSecretRef"}
    if source != was:
        rule = f"spec.persistentvolumesource is immutable after creation\n{difference(was, source)}"
        said.append(forbidden("spec.persistentvolumesource", rule))
    said += immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    affinity, had = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if had is not None and affinity != had:
        rule = f"{IMMUTABLE}, except for updating from beta label to GA"
        said.append(invalid("nodeAffinity", affinity, rule))
    if before.get("volumeAttributesClassName") and spec.get("volumeAttributesClassName") is None:
        rule = "update from non-nil value to nil is forbidden"
        said.append(forbidden("spec.volumeAttributesClassName", rule))
    return said


def class_create(storage_class: Obj) -> list[Cause]:
    said: list[Cause] = []
    provisioner = text(storage_class, "provisioner")
    if provisioner:
        said += ruled("provisioner", provisioner.lower(), names.qualified)
    else:
        said.append(required("provisioner"))
    said += _parameters(part(storage_class, "parameters"))
    policy = text(storage_class, "reclaimPolicy") or None
    said += supported("reclaimPolicy", policy, ("Delete", "Retain"))
    mode = storage_class.get("volumeBindingMode")
    if mode is None:
        said.append(required("volumeBindingMode"))
    said += supported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    return said + _topologies(items(storage_class, "allowedTopologies"))


def _parameters(parameters: Obj) -> list[Cause]:
    if len(parameters) > 512:
        return [too_long("parameters", 512)]
    said = [invalid("parameters", "", "field can not be empty.")] if "" in parameters else []
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LIMIT:
        said.append(too_long("parameters", _LIMIT))
    return said


def _topologies(terms: Any) -> list[Cause]:
    said: list[Cause] = []
    # A term that selects nothing counts as said before, even the first of them.
    seen: list[dict[str, frozenset[str]]] = [{}]
    for index, term in enumerate(terms):
        here = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, frozenset[str]] = {}
        for at, expression in enumerate(items(term, "matchLabelExpressions")):
            key, values = text(expression, "key"), items(expression, "values")
            if not values:
                said.append(required(f"{here}[{at}].values"))
            said += (
                duplicate(f"{here}[{at}].values[{place}]", value)
                for place, value in enumerate(values)
                if value in values[:place]
            )
            said += ruled(f"{here}[{at}].key", key, names.qualified)
            if key in found:
                said.append(duplicate(f"{here}[{at}].key", key))
            found[key] = frozenset(values)
        if found in seen:
            said.append(duplicate(here, ""))
        seen.append(found)
    return said


def class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said = class_create(new)
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(field) or None) != (old.get(field) or None):
            said.append(forbidden(field, f"updates to {field} are forbidden."))
    return said + immutable("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))


def attachment_create(attachment: Obj) -> list[Cause]:
    spec, status = part(attachment, "spec"), part(attachment, "status")
    said = [] if text(spec, "attacher") else [required("spec.attacher")]
    source = part(spec, "source")
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    both = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        said.append(required("spec.source", both))
    elif inline is not None and name is not None:
        said.append(forbidden("spec.source", both))
    elif name == "":
        where = "spec.source.persistentVolumeName"
        said.append(required(where, "must specify non empty persistentVolumeName"))
    elif inline is not None:
        said += _volume_spec(inline, "spec.source.inlineVolumeSpec", inline=True)
    said += ruled("spec.nodeName", text(spec, "nodeName"), names.subdomain)
    size = sum(len(k.encode()) + len(v.encode()) for k, v in part(status, "attachmentMetadata").items())
    if size > _LIMIT:
        said.append(too_long("status.attachmentMetadata", _LIMIT))
    for field in ("attachError", "detachError"):
        if len(text(part(status, field), "message").encode()) > 1024:
            said.append(too_long(f"status.{field}.message", _LIMIT))
    said += csi_driver_name("spec.attacher", text(spec, "attacher"))
    if name is not None:
        said += ruled("spec.source.persistentVolumeName", name, names.subdomain)
    return said


def attachment_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said = attachment_create(new)
    if part(new, "spec") != part(old, "spec"):
        said.append(invalid("spec", dict(part(new, "spec")), IMMUTABLE))
    return said


def driver_create(driver: Obj) -> list[Cause]:
    spec = part(driver, "spec")
    said = [
        required(f"spec.{shown}")
        for field, shown in (
            ("attachRequired", "attachedRequired"),
            ("podInfoOnMount", "podInfoOnMount"),
            ("storageCapacity", "storageCapacity"),
        )
        if spec.get(field) is None
    ]
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    said += supported("spec.fsGroupPolicy", spec.get("fsGroupPolicy"), policies)
    seen: set[str] = set()
    for index, request in enumerate(items(spec, "tokenRequests")):
        here = f"spec.tokenRequests[{index}]"
        audience, seconds = text(request, "audience"), request.get("expirationSeconds")
        if audience in seen:
            said.append(duplicate(f"{here}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None and seconds < 600:
            rule = "may not specify a duration less than 10 minutes"
            said.append(invalid(f"{here}.expirationSeconds", seconds, rule))
        if seconds is not None and seconds > 1 << 32:
            rule = "may not specify a duration larger than 2^32 seconds"
            said.append(invalid(f"{here}.expirationSeconds", seconds, rule))
    for mode in items(spec, "volumeLifecycleModes"):
        said += supported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    if spec.get("seLinuxMount") is None:
        said.append(required("spec.seLinuxMount"))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        rule = "must be greater than or equal to 10 seconds"
        said.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, rule))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not items(spec, "tokenRequests"):
        rule = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        said.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, rule))
    return said


def driver_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    spec, before = part(new, "spec"), part(old, "spec")
    said = driver_create(new)
    said += immutable("spec.attachedRequired", spec.get("attachRequired"), before.get("attachRequired"))
    modes, had = spec.get("volumeLifecycleModes"), before.get("volumeLifecycleModes")
    return said + immutable("spec.volumeLifecycleModes", modes, had)


def node_create(node: Obj) -> list[Cause]:
    said: list[Cause] = []
    seen: set[str] = set()
    for index, driver in enumerate(items(part(node, "spec"), "drivers")):
        here = f"spec.drivers[{index}]"
        name, node_id = text(driver, "name"), text(driver, "nodeID")
        said += csi_driver_name(f"{here}.name", name)
        if not node_id:
            said.append(required(f"{here}.nodeID"))
        if len(node_id.encode()) > 256:
            said.append(invalid(f"{here}.nodeID", node_id, "must be 256 characters or less"))
        limit = count(part(driver, "allocatable"), "count")
        said += not_negative(f"{here}.allocatable.count", limit)
        if name in seen:
            said.append(duplicate(f"{here}.name", name))
        seen.add(name)
        keys = items(driver, "topologyKeys")
        for at, key in enumerate(keys):
            if not key:
                said.append(required(here, key))
            if key in keys[:at]:
                said.append(duplicate(here, key))
            said += ruled(here, key, names.qualified)
    return said


def node_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said = node_create(new)
    before = {text(one, "name"): one for one in items(part(old, "spec"), "drivers")}
    for driver in items(part(new, "spec"), "drivers"):
        had = before.get(text(driver, "name"))
        fixed = {key: value for key, value in driver.items() if key != "allocatable"}
        if had is not None and fixed != {k: v for k, v in had.items() if k != "allocatable"}:
            said.append(invalid("spec.drivers", fixed, IMMUTABLE))
    return said
