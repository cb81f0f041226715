"""
The record of a work on the cluster it is applied to: an AppliedManifestWork.

It owns the applied objects, and lists them. An object is listed before it is created,
and has no uid there until it was observed: a process that stops in between leaves no
object that is not listed. The same holds for the labels and annotations of manifests:
their keys are recorded before they are set, and keys that are recorded and no longer
in the manifest are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from lamina.core.model.plan import Action, Create, Patch
from lamina.core.model.world import derived
from lamina.families.manifestwork.agent.api import Resource
from lamina.families.manifestwork.agent.labels import APPLIED_CLEANUP, SET_KEYS, Agent
from lamina.families.manifestwork.labels import APPLIED_WORK, WORK_VERSION
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.digest import canonical
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj


class Entry(Struct, frozen=True, kw_only=True):
    """One listed object; without a uid it is about to be created."""

    resource: Resource
    version: str
    uid: str = ""

    def as_json(self) -> Made:
        one = self.resource
        named = {"group": one.group, "resource": one.resource, "namespace": one.namespace, "name": one.name}
        return {**named, "version": self.version, **({"uid": self.uid} if self.uid else {})}

    def kind(self, kinds: Kinds) -> Kind | None:
        """Return the kind of the object, in the version it was applied in or in any other."""
        one = self.resource
        version = f"{one.group}/{self.version}" if one.group else self.version
        served = [kind for kind in kinds.versions() if (kind.group, kind.plural) == (one.group, one.resource)]
        return next((kind for kind in served if kind.api_version == version), served[0] if served else None)


class SetKeys(Struct, frozen=True, kw_only=True):
    """The keys of the labels and annotations that an object has from its manifest."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()

    def __or__(self, other: SetKeys) -> SetKeys:
        return SetKeys(labels=self.labels | other.labels, annotations=self.annotations | other.annotations)

    def __bool__(self) -> bool:
        return bool(self.labels or self.annotations)

    def covers(self, other: SetKeys) -> bool:
        return other.labels <= self.labels and other.annotations <= self.annotations


def entries(record: Obj) -> tuple[Entry, ...]:
    """Return the listed objects, as the cache derives them from the record."""
    return derived(read_entries, record)


def read_entries(record: Obj) -> tuple[Entry, ...]:
    """Return the listed objects."""
    listed: Iterable[Obj] = (record.get("status") or {}).get("appliedResources") or ()
    return tuple(
        Entry(resource=resource_of(one), version=one.get("version") or "", uid=one.get("uid") or "")
        for one in listed
    )


def resource_of(named: Obj) -> Resource:
    """Return the object that an entry of a record or of a status names."""
    return Resource(
        group=named.get("group") or "",
        resource=named.get("resource") or "",
        name=named.get("name") or "",
        namespace=named.get("namespace") or "",
    )


def as_list(found: Iterable[Entry]) -> list[Made]:
    """Return entries as the record lists them, sorted."""

    def place(entry: Entry) -> tuple[str, ...]:
        one = entry.resource
        return one.group, entry.version, one.resource, one.namespace, one.name

    return [entry.as_json() for entry in sorted(found, key=place)]


def keys_of(obj: Obj) -> SetKeys:
    """Return the keys that a manifest sets; one that ends in a dash removes its key instead."""
    return SetKeys(
        labels=frozenset(key for key in meta.labels(obj) if not key.endswith("-")),
        annotations=frozenset(key for key in meta.annotations(obj) if not key.endswith("-")),
    )


def set_keys(record: Obj) -> Mapping[Resource, SetKeys]:
    """Return the recorded keys that objects have from their manifests."""
    try:
        read = orjson.loads(meta.annotations(record).get(SET_KEYS) or "{}")
    except orjson.JSONDecodeError:
        return {}
    found: dict[Resource, SetKeys] = {}
    for name, keys in read.items() if isinstance(read, dict) else ():
        parts = str(name).split("/")
        if len(parts) == 4 and isinstance(keys, dict):
            found[Resource(group=parts[0], resource=parts[1], namespace=parts[2], name=parts[3])] = SetKeys(
                labels=frozenset(map(str, keys.get("labels") or ())),
                annotations=frozenset(map(str, keys.get("annotations") or ())),
            )
    return found


def as_annotation(keys: Mapping[Resource, SetKeys]) -> str | None:
    """Return keys as the annotation records them; None where there are none."""
    shown: dict[str, Any] = {}
    for one, those in keys.items():
        if those:
            parts = {"labels": sorted(those.labels), "annotations": sorted(those.annotations)}
            shown["/".join((one.group, one.resource, one.namespace, one.name))] = {
                part: names for part, names in parts.items() if names
            }
    return canonical(shown).decode() if shown else None


def new_record(agent: Agent, work: Obj, keys: Mapping[Resource, SetKeys]) -> Create:
    """Return the creation of the record of a work."""
    metadata: Made = {"name": agent.record_name(meta.name(work)), "finalizers": [APPLIED_CLEANUP]}
    if meta.labels(work):
        metadata["labels"] = dict(meta.labels(work))
    if text := as_annotation(keys):
        metadata["annotations"] = {SET_KEYS: text}
    return Create(
        obj={
            "apiVersion": WORK_VERSION,
            "kind": APPLIED_WORK.kind,
            "metadata": metadata,
            "spec": _spec(agent, work),
        }
    )


def _spec(agent: Agent, work: Obj) -> Made:
    return {"hubHash": agent.hub, "agentID": agent.id, "manifestWorkName": meta.name(work)}


def metadata_patches(
    agent: Agent, work: Obj, record: Obj, keys: Mapping[Resource, SetKeys]
) -> Sequence[Action]:
    """Return the patch of a record that lacks its spec, the labels of its work, its finalizer or the keys that are set."""
    annotations = {key: value for key, value in meta.annotations(record).items() if key != SET_KEYS}
    if text := as_annotation(keys):
        annotations[SET_KEYS] = text
    finalizers = list(meta.finalizers(record))
    wanted: Made = {
        "metadata": {
            "labels": dict(meta.labels(work)),
            "annotations": annotations,
            "finalizers": finalizers if APPLIED_CLEANUP in finalizers else [*finalizers, APPLIED_CLEANUP],
        },
        "spec": _spec(agent, work),
    }
    live: Made = {
        "metadata": {
            "labels": dict(meta.labels(record)),
            "annotations": dict(meta.annotations(record)),
            "finalizers": finalizers,
        },
        "spec": dict(record.get("spec") or {}),
    }
    patch = create_merge_patch(live, wanted)
    if not patch:
        return ()
    # Without a version: no other writes these fields, and the status is patched in the same stage.
    return (Patch(ref=meta.ref(record), uid=meta.uid(record), version="", patch=patch),)
