"""
One manifest: which object it is about on this cluster, and how that is applied.

A manifest whose kind this cluster does not serve, or that is no object at all, has
`wrong` set and fails by itself. Metadata that only the server writes is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.families.manifestwork.agent.api import Config, Resource, Terms
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref

_SERVER_METADATA = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip

KEPT = "which keeps it"
AWAITS_DELETION = "is being deleted, and is created anew once it is gone"
WAITS = (KEPT, AWAITS_DELETION)
"""How messages end about an object that is not applied for now, and was not refused."""


class Manifest(Struct, frozen=True, kw_only=True):
    """One manifest of a work; `ordinal` is its place there."""

    ordinal: int
    obj: Obj
    ref: Ref
    """Where its object is."""
    resource: Resource
    """Its object, as others name it."""
    kind: Kind | None = None
    wrong: str = ""
    config: Config = Config()
    is_orphaned: bool = False

    @property
    def group(self) -> str:
        return self.resource.group

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def version(self) -> str:
        return self.ref.api_version.rpartition("/")[2]

    @property
    def group_kind(self) -> GroupKind | None:
        return self.kind.group_kind if self.kind is not None else None

    @property
    def about(self) -> tuple[str, ...]:
        """What the status of the work names it by, without its position."""
        one = self.resource
        return one.group, self.version, self.ref.kind, one.resource, one.name, one.namespace

    def __str__(self) -> str:
        return str(self.resource) if self.kind is not None else f"manifest {self.ordinal}"


def resolved(as_annotation: Sequence[Any], terms: Terms, kinds: Kinds) -> tuple[Manifest, ...]:
    """Return the manifests of a work as a cluster that serves these kinds has them."""
    seen: dict[Resource, int] = {}
    found: list[Manifest] = []
    for ordinal, one in enumerate(as_annotation):
        manifest = _resolved(ordinal, one, terms, kinds)
        if not manifest.wrong:
            first = seen.setdefault(manifest.resource, ordinal)
            if first != ordinal:
                # Each would undo the writes of the other.
                manifest = _wrong(manifest, f"manifest {first} is about the same object")
        found.append(manifest)
    return tuple(found)


def _resolved(ordinal: int, one: Any, terms: Terms, kinds: Kinds) -> Manifest:
    if not isinstance(one, Mapping):
        return _unnamed(ordinal, "the manifest is no object")
    api_version, kind_name = one.get("apiVersion"), one.get("kind")
    if not (isinstance(api_version, str) and isinstance(kind_name, str) and api_version and kind_name):
        return _unnamed(ordinal, "the manifest has no apiVersion or no kind")
    kind, obj = kinds.find(api_version, kind_name), without_server_metadata(one)
    if kind is not None and not kind.namespaced:
        obj = meta.with_metadata(obj, namespace=None)
    ref = Ref(api_version, kind_name, meta.namespace(obj), meta.name(obj))
    resource = Resource(
        group=ref.group,
        resource=kind.plural if kind is not None else "",
        name=ref.name,
        namespace=ref.namespace,
    )
    made = Manifest(ordinal=ordinal, obj=obj, ref=ref, resource=resource, kind=kind)
    if kind is None:
        return _wrong(made, f'the server doesn\'t have a resource type "{kind_name}"')
    if not ref.name:
        return _wrong(made, "the manifest has no name")
    if kind.namespaced and not ref.namespace:
        return _wrong(made, "an empty namespace may not be set during creation")
    return replace(made, config=terms.config(resource), is_orphaned=terms.orphans(resource))


def _unnamed(ordinal: int, why: str) -> Manifest:
    return Manifest(ordinal=ordinal, obj={}, ref=Ref("", "", "", ""), resource=Resource(), wrong=why)


def _wrong(manifest: Manifest, why: str) -> Manifest:
    return replace(manifest, wrong=why, config=Config(), is_orphaned=False)


def without_server_metadata(one: Obj) -> Made:
    """Return a manifest without metadata that only the server writes."""
    given = one.get("metadata")
    metadata = given if isinstance(given, Mapping) else {}
    kept = {
        key: value for key, value in metadata.items() if key not in _SERVER_METADATA and value is not None
    }
    rest = {key: _without_null_times(value) for key, value in one.items() if key != "metadata"}
    return {**rest, "metadata": kept}


def _without_null_times(value: Any) -> Any:
    """Return a value without the null creationTimestamps that Go writes into embedded metadata."""
    if isinstance(value, Mapping):
        made = {key: _without_null_times(held) for key, held in value.items()}
        inner = made.get("metadata")
        if isinstance(inner, dict) and "creationTimestamp" in inner and inner["creationTimestamp"] is None:
            del inner["creationTimestamp"]
        return made
    if isinstance(value, list):
        return [_without_null_times(held) for held in value]
    return value


class WantedResources(Struct, frozen=True):
    """
    The objects that manifests are about, with those that cannot be applied now.

    A manifest whose version is no longer served is about its object in any version. Of one
    whose kind is not served, the resource is unknown, so group and name have to do.
    """

    known: frozenset[Resource]
    unserved: frozenset[tuple[str, str]]
    """Group and name of those whose kind is not served."""

    def __contains__(self, one: Resource) -> bool:
        return one in self.known or (one.group, one.name) in self.unserved


def wanted_resources(manifests: Iterable[Manifest], kinds: Kinds) -> WantedResources:
    """Return the objects that manifests are about."""
    known: set[Resource] = set()
    unserved: set[tuple[str, str]] = set()
    for one in manifests:
        kind = one.kind or kinds.preferred(GroupKind(one.group, one.ref.kind))
        if kind is None:
            unserved.add((one.group, one.name))
        else:
            namespace = meta.namespace(one.obj) if kind.namespaced else ""
            known.add(Resource(group=one.group, resource=kind.plural, name=one.name, namespace=namespace))
    return WantedResources(frozenset(known), frozenset(unserved))
