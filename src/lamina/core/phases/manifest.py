"""The objects of a phase as they are desired: keys, labels, annotations and the default namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamina.core.ownership.handover import Adoption
from lamina.core.phases.conventions import Conventions
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref


class ObjectKey(NamedTuple):
    """An object, whatever the version of its kind."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.group} {self.kind} {where}".strip()


class ConditionMapping(NamedTuple):
    """A condition of an object that is copied into the status of its owner, under another type."""

    source: str
    destination: str


class Manifest(Struct, frozen=True, kw_only=True):
    """One object of a phase, as its spec has it; `key` has the namespace that it is written to."""

    phase: str
    obj: Obj
    key: ObjectKey
    kind: Kind | None
    """Its kind in the version of the manifest, None where that is not served."""
    adoption: Adoption | None = Adoption.NEVER
    """What may be taken over, None where that is not known."""
    mappings: tuple[ConditionMapping, ...] = ()
    is_orphaned: bool = False
    """Whether the object stays when its owner is archived or deleted."""
    part: str = ""
    """The part of the phase that has it; the parts of a phase are written in order."""
    problems: tuple[str, ...] = ()
    """What is wrong with it besides what preflight finds."""

    def ref(self, cluster: str) -> Ref:
        return Ref(
            str(self.obj.get("apiVersion") or ""), self.key.kind, self.key.namespace, self.key.name, cluster
        )


def located(obj: Obj, namespace: str, kinds: Kinds) -> tuple[ObjectKey, Kind | None]:
    """Return the key and the kind of an object; one that names no namespace is in that of its owner."""
    api_version, name = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    kind = kinds.find(api_version, name)
    # The kind decides: a server drops the namespace of an object that has none.
    is_namespaced = kind is None or kind.namespaced
    where = (meta.namespace(obj) or namespace) if is_namespaced else ""
    return ObjectKey(api_version.rpartition("/")[0], name, where, meta.name(obj)), kind


def reported(key: ObjectKey, kinds: Kinds) -> Manifest:
    """Return an object that only a status names, which cannot be written, but deleted."""
    kind = kinds.preferred(GroupKind(key.group, key.kind))
    obj: Made = {"apiVersion": kind.api_version if kind is not None else "", "kind": key.kind}
    return Manifest(phase="", obj=obj, key=key, kind=kind)


def desired(manifest: Manifest, owner: Obj, revision: int, conventions: Conventions) -> Made:
    """Return an object as its owner desires it, without its owners: marked with the revision that writes it."""
    metadata = meta.metadata(manifest.obj)
    own = {key: value for key, value in meta.labels(owner).items() if key in conventions.inherited_labels}
    made: Made = {
        **metadata,
        "labels": {**(metadata.get("labels") or {}), conventions.mark: "True", **own},
        "annotations": {**(metadata.get("annotations") or {}), conventions.revision: str(revision)},
    }
    made.pop("namespace", None)
    if manifest.key.namespace:
        made["namespace"] = manifest.key.namespace
    return {**{key: value for key, value in manifest.obj.items() if key != "status"}, "metadata": made}


def duplicates(phases: Iterable[Sequence[Manifest]]) -> Iterator[Manifest]:
    """Yield the objects that come a second time, in one phase or in several."""
    seen: set[ObjectKey] = set()
    for those in phases:
        for one in those:
            if one.key in seen:
                yield one
            seen.add(one.key)
