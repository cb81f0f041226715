"""
One manifest: which object it means on this cluster, and how that is to be treated.

A manifest whose kind this cluster does not serve, or that is no object at all, has
`wrong` say so; it fails alone. What a server keeps for itself in metadata is nobody's
to write, so it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.families.manifestwork.spoke.api import Config, Resource, Terms
from lamina.families.manifestwork.spoke.order import rank
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref

_KEPT_BY_SERVERS = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip


class Manifest(Struct, frozen=True, kw_only=True):
    """One manifest of a work; `ordinal` is its place there."""

    ordinal: int
    obj: Obj
    api_version: str = ""
    kind_name: str = ""
    kind: Kind | None = None
    wrong: str = ""
    config: Config = Config()
    is_orphaned: bool = False

    @property
    def namespace(self) -> str:
        named = meta.namespace(self.obj)
        return named if self.kind is None or self.kind.namespaced else ""

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def ref(self) -> Ref:
        """Where its object is."""
        return Ref(self.api_version, self.kind_name, self.namespace, self.name)

    @property
    def rank(self) -> int:
        return rank(self.kind.group_kind if self.kind is not None else None)

    @property
    def resource(self) -> Resource:
        """Its object, as others name it."""
        plural = self.kind.plural if self.kind is not None else ""
        return Resource(group=self.group, resource=plural, name=self.name, namespace=self.namespace)

    @property
    def meta(self) -> Made:
        """What the status of the work says it is about."""
        return {
            "ordinal": self.ordinal,
            "group": self.group,
            "version": self.api_version.rpartition("/")[2],
            "kind": self.kind_name,
            "resource": self.resource.resource,
            "name": self.name,
            "namespace": self.namespace,
        }

    def __str__(self) -> str:
        return str(self.resource) if self.kind is not None else f"manifest {self.ordinal}"


def resolved(written: Sequence[Any], terms: Terms, kinds: Kinds) -> tuple[Manifest, ...]:
    """Return what the manifests of a work mean on a cluster that serves these kinds."""
    seen: dict[Resource, int] = {}
    found: list[Manifest] = []
    for ordinal, one in enumerate(written):
        manifest = _resolved(ordinal, one, terms, kinds)
        if not manifest.wrong:
            first = seen.setdefault(manifest.resource, ordinal)
            if first != ordinal:
                # Each would undo what the other does, for ever.
                manifest = _wrong(manifest, f"manifest {first} is about the same object")
        found.append(manifest)
    return tuple(found)


def _resolved(ordinal: int, one: Any, terms: Terms, kinds: Kinds) -> Manifest:
    if not isinstance(one, Mapping):
        return Manifest(ordinal=ordinal, obj={}, wrong="the manifest is no object")
    api_version, kind_name = one.get("apiVersion"), one.get("kind")
    if not (isinstance(api_version, str) and isinstance(kind_name, str) and api_version and kind_name):
        return Manifest(ordinal=ordinal, obj={}, wrong="the manifest has no apiVersion or no kind")
    kind = kinds.find(api_version, kind_name)
    made = Manifest(
        ordinal=ordinal, obj=_stated(one), api_version=api_version, kind_name=kind_name, kind=kind
    )
    if kind is None:
        return _wrong(made, f'the server doesn\'t have a resource type "{kind_name}"')
    if not made.name:
        return _wrong(made, "the manifest has no name")
    if kind.namespaced and not made.namespace:
        return _wrong(made, "an empty namespace may not be set during creation")
    return Manifest(
        ordinal=ordinal,
        obj=made.obj if kind.namespaced else meta.with_metadata(made.obj, namespace=None),
        api_version=api_version,
        kind_name=kind_name,
        kind=kind,
        config=terms.config(made.resource),
        is_orphaned=terms.orphans(made.resource),
    )


def _wrong(manifest: Manifest, why: str) -> Manifest:
    return Manifest(
        ordinal=manifest.ordinal,
        obj=manifest.obj,
        api_version=manifest.api_version,
        kind_name=manifest.kind_name,
        kind=manifest.kind,
        wrong=why,
    )


def _stated(one: Obj) -> Made:
    """Return a manifest without what a server keeps for itself."""
    given = one.get("metadata")
    metadata = given if isinstance(given, Mapping) else {}
    kept = {
        key: value for key, value in metadata.items() if key not in _KEPT_BY_SERVERS and value is not None
    }
    rest = {key: _unstamped(value) for key, value in one.items() if key != "metadata"}
    return {**rest, "metadata": kept}


def _unstamped(value: Any) -> Any:
    """Return a value without the null times that Go leaves in templates of pods and the like."""
    if isinstance(value, Mapping):
        made = {key: _unstamped(held) for key, held in value.items()}
        inner = made.get("metadata")
        if isinstance(inner, dict) and "creationTimestamp" in inner and inner["creationTimestamp"] is None:
            del inner["creationTimestamp"]
        return made
    if isinstance(value, list):
        return [_unstamped(held) for held in value]
    return value


class Meant(Struct, frozen=True):
    """
    The objects that manifests are about, those included that cannot be applied now.

    One whose version is no longer served still means its object, in whatever version
    that is; and of one whose kind is not served at all, nobody knows better.
    """

    known: frozenset[Resource]
    unserved: frozenset[tuple[str, str]]
    """Group and name of those whose kind is not served."""

    def __contains__(self, one: Resource) -> bool:
        return one in self.known or (one.group, one.name) in self.unserved


def meant(manifests: Iterable[Manifest], kinds: Kinds) -> Meant:
    """Return what manifests are about."""
    known: set[Resource] = set()
    unserved: set[tuple[str, str]] = set()
    for one in manifests:
        kind = one.kind or kinds.preferred(GroupKind(one.group, one.kind_name))
        if kind is None:
            unserved.add((one.group, one.name))
        else:
            namespace = meta.namespace(one.obj) if kind.namespaced else ""
            known.add(Resource(group=one.group, resource=kind.plural, name=one.name, namespace=namespace))
    return Meant(frozenset(known), frozenset(unserved))
