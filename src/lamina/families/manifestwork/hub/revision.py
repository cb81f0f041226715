"""
The template of a ManifestWorkReplicaSet, its digest and its hash, and the ControllerRevisions that store it.

Two templates are the same revision if their canonical bytes are equal. The hash
names a revision; two templates may have the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from lamina.core.model.plan import Create
from lamina.core.model.world import identity_only, whole
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.revision_object import create_revision, read_revision
from lamina.families.manifestwork.labels import (
    GENERATION,
    HASH,
    OWNER,
    REPLICA_SET,
    REPLICA_SET_VERSION,
    owner_key,
)
from lamina.objects import meta
from lamina.objects.digest import canonical, safe, sha256
from lamina.objects.paths import drop, get
from lamina.objects.types import Made, Obj, OwnerRef

_STAMPS = (("metadata", "creationTimestamp"), ("spec", "template", "metadata", "creationTimestamp"))
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_NONE = object()


def template_of(obj: Obj) -> Obj:
    """Return the template in a replica set, or in the data of one of its revisions."""
    return (obj.get("spec") or {}).get("manifestWorkTemplate") or {}


def _normalized(template: Obj) -> Made:
    """Return a template without the creation timestamps of its manifests and their pods."""
    workload = template.get("workload")
    manifests = workload.get("manifests") if isinstance(workload, Mapping) else None
    if not isinstance(workload, Mapping) or not isinstance(manifests, list):
        return dict(template)
    return {**template, "workload": {**workload, "manifests": [_unstamped(one) for one in manifests]}}


def _unstamped(manifest: Any) -> Any:
    if not isinstance(manifest, Mapping):
        return manifest
    for path in _STAMPS:
        if get(manifest, path, default=_NONE) is not _NONE:
            manifest = drop(manifest, path)
    return manifest


def content_digest(template: Obj) -> str:
    """Return the digest that identifies the content of a template."""
    return sha256(canonical(_normalized(template)))


def content_hash(template: Obj, collisions: int = 0) -> str:
    """Return the hash of a template; each collision leads to another."""
    data = canonical(_normalized(template))
    if collisions:
        data += collisions.to_bytes(4, "little") + bytes(4)
    number = _FNV_OFFSET
    for byte in data:
        number = ((number ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return safe(str(number))


def reports_progress(template: Obj) -> bool:
    """Say whether a template has a condition rule for Progressing."""
    return any(
        rule.get("condition") == "Progressing"
        for config in template.get("manifestConfigs") or ()
        for rule in config.get("conditionRules") or ()
    )


# The objects


def keep_revision(obj: Obj) -> Obj:
    """Keep all of a revision of this family, and only the identity of any other."""
    owner = meta.controller_of(obj)
    if OWNER not in meta.labels(obj) and (owner is None or owner["kind"] != REPLICA_SET.kind):
        return identity_only(obj)
    return whole(obj)


def stored_revision(obj: Obj) -> Revision:
    """Return the revision that a ControllerRevision stores; one that cannot be read has no content."""
    template = _template(obj.get("data"))
    digest = _digest(template)
    revision = read_revision(obj, template if digest else {}, hash_label=HASH, digest=digest)
    return replace(revision, obj=keep_revision(obj))


def _template(data: Any) -> Obj:
    """Return the template in the data of a revision, empty where data written by hand has none."""
    spec = data.get("spec") if isinstance(data, dict) else None
    template = spec.get("manifestWorkTemplate") if isinstance(spec, dict) else None
    return template if isinstance(template, dict) else {}


def _digest(template: Obj) -> str:
    try:
        return content_digest(template) if template else ""
    except (TypeError, ValueError):
        # Content that has no canonical form cannot be written again.
        return ""


def owner_reference(owner: Obj) -> OwnerRef:
    return {**meta.owner_ref(owner, controller=True, blocks=True), "apiVersion": REPLICA_SET_VERSION}


def create(owner: Obj, revision: Revision) -> Create:
    """Return the creation of the object that stores a revision."""
    return create_revision(
        revision,
        owner,
        owner_reference(owner),
        data={"spec": {"manifestWorkTemplate": revision.snapshot}},
        labels={OWNER: owner_key(meta.namespace(owner), meta.name(owner)), HASH: revision.hash},
        annotations={GENERATION: str(meta.generation(owner))},
    )
