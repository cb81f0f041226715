"""
The record of a work on the cluster it is applied to: an AppliedManifestWork.

It owns what was applied, and lists it. An object is on the list before it is made,
without a uid as long as nobody has seen it: whoever dies between the two leaves
nothing behind that nobody knows of. The same goes for the labels and annotations that
manifests bring: which they are is written down before they are set, and what is
written down and no longer brought is taken off again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from lamina.core.plan import Action, Create, Patch
from lamina.families.manifestwork.names import APPLIED_WORK, WORK_VERSION
from lamina.families.manifestwork.spoke.api import Resource
from lamina.families.manifestwork.spoke.names import APPLIED_CLEANUP, SET_KEYS, Agent
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.digest import canonical
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj


class Entry(Struct, frozen=True, kw_only=True):
    """One object on the list; without a uid it is about to be made."""

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
    """The labels and annotations that an object has from its manifest."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()

    def __or__(self, other: SetKeys) -> SetKeys:
        return SetKeys(labels=self.labels | other.labels, annotations=self.annotations | other.annotations)

    def __bool__(self) -> bool:
        return bool(self.labels or self.annotations)

    def covers(self, other: SetKeys) -> bool:
        return other.labels <= self.labels and other.annotations <= self.annotations


def entries(record: Obj) -> tuple[Entry, ...]:
    """Return what is on the list."""
    listed: Iterable[Obj] = (record.get("status") or {}).get("appliedResources") or ()
    return tuple(
        Entry(
            resource=Resource(
                group=one.get("group") or "",
                resource=one.get("resource") or "",
                name=one.get("name") or "",
                namespace=one.get("namespace") or "",
            ),
            version=one.get("version") or "",
            uid=one.get("uid") or "",
        )
        for one in listed
    )


def listed(found: Iterable[Entry]) -> list[Made]:
    """Return a list in the one order that it always has."""

    def place(entry: Entry) -> tuple[str, ...]:
        one = entry.resource
        return one.group, entry.version, one.resource, one.namespace, one.name

    return [entry.as_json() for entry in sorted(found, key=place)]


def brought(obj: Obj) -> SetKeys:
    """Return the keys that a manifest brings; one that ends in a dash is there to be taken off."""
    return SetKeys(
        labels=frozenset(key for key in meta.labels(obj) if not key.endswith("-")),
        annotations=frozenset(key for key in meta.annotations(obj) if not key.endswith("-")),
    )


def set_keys(record: Obj) -> Mapping[Resource, SetKeys]:
    """Return the keys that objects have from their manifests, as far as that is written down."""
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


def written(keys: Mapping[Resource, SetKeys]) -> str | None:
    """Return the keys as they are written down, or nothing where there are none."""
    shown: dict[str, Any] = {}
    for one, those in keys.items():
        if those:
            parts = {"labels": sorted(those.labels), "annotations": sorted(those.annotations)}
            shown["/".join((one.group, one.resource, one.namespace, one.name))] = {
                part: names for part, names in parts.items() if names
            }
    return canonical(shown).decode() if shown else None


def opened(agent: Agent, work: Obj, keys: Mapping[Resource, SetKeys]) -> Create:
    """Return the making of the record of a work."""
    metadata: Made = {"name": agent.record_name(meta.name(work)), "finalizers": [APPLIED_CLEANUP]}
    if meta.labels(work):
        metadata["labels"] = dict(meta.labels(work))
    if text := written(keys):
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


def kept_in_step(agent: Agent, work: Obj, record: Obj, keys: Mapping[Resource, SetKeys]) -> Sequence[Action]:
    """Return what makes a record say whose it is, carry the labels of its work, and hold the keys that were set."""
    annotations = {key: value for key, value in meta.annotations(record).items() if key != SET_KEYS}
    if text := written(keys):
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
    there: Made = {
        "metadata": {
            "labels": dict(meta.labels(record)),
            "annotations": dict(meta.annotations(record)),
            "finalizers": finalizers,
        },
        "spec": dict(record.get("spec") or {}),
    }
    patch = create_merge_patch(there, wanted)
    if not patch:
        return ()
    # Of these fields only we write, and the list beside them may be written in the same breath.
    return (Patch(ref=meta.ref(record), uid=meta.uid(record), version="", patch=patch),)
