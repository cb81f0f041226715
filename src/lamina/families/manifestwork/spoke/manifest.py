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
from msgspec.structs import replace

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
    def rank(self) -> int:
        return rank(self.kind.group_kind if self.kind is not None else None)

    @property
    def about(self) -> tuple[str, ...]:
        """What the status of the work says it is about, but for its place."""
        one = self.resource
        return one.group, self.version, self.ref.kind, one.resource, one.name, one.namespace

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
        return _unnamed(ordinal, "the manifest is no object")
    api_version, kind_name = one.get("apiVersion"), one.get("kind")
    if not (isinstance(api_version, str) and isinstance(kind_name, str) and api_version and kind_name):
        return _unnamed(ordinal, "the manifest has no apiVersion or no kind")
    kind, obj = kinds.find(api_version, kind_name), _stated(one)
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
        kind = one.kind or kinds.preferred(GroupKind(one.group, one.ref.kind))
        if kind is None:
            unserved.add((one.group, one.name))
        else:
            namespace = meta.namespace(one.obj) if kind.namespaced else ""
            known.add(Resource(group=one.group, resource=kind.plural, name=one.name, namespace=namespace))
    return Meant(frozenset(known), frozenset(unserved))
