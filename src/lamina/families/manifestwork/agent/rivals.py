"""
Works of one cluster that state an object with different content.

Each would undo the writes of the other without end. The oldest of them keeps the object;
the others do not write its content, report which work keeps it, and take it over once
that work states it no longer, cannot apply it, or is gone.

Only works whose update strategy is Update replace what they find: the others share an
object with them as their strategy says. Labels and annotations are merged, so only a key
that two works set to different values is a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from lamina.core.model.world import Change, World, derived
from lamina.errors import SpecError
from lamina.families.manifestwork.agent import api
from lamina.families.manifestwork.agent.api import Resource, Terms
from lamina.families.manifestwork.agent.applied_manifestwork import resource_of
from lamina.families.manifestwork.agent.labels import HUB, Agent
from lamina.families.manifestwork.agent.manifest import Manifest, without_server_metadata
from lamina.families.manifestwork.agent.reported_status import find_at
from lamina.families.manifestwork.agent.shared_resources import could_not_apply
from lamina.families.manifestwork.labels import WORK
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Obj, Ref

_NOT_CONTENT = ("apiVersion", "kind", "metadata", "status")


class Stated(Struct, frozen=True, kw_only=True):
    """What a manifest states of its object."""

    namespace: str
    content: str
    """The digest of everything but its metadata."""
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    """None: it removes the key."""

    def differs(self, other: Stated) -> bool:
        return self.content != other.content or self.differs_in_keys(other)

    def differs_in_keys(self, other: Stated) -> bool:
        """Say whether one sets a label or an annotation that the other sets to another value, or removes."""
        return _clash(self.labels, other.labels) or _clash(self.annotations, other.annotations)


def _clash(one: Mapping[str, str | None], other: Mapping[str, str | None]) -> bool:
    return any(one[key] != other[key] for key in one.keys() & other.keys())


class Statements(Struct, frozen=True, kw_only=True, dict=True):
    """What a work states of its objects; read once for each version of it, and only where works share an object."""

    kinds: frozenset[tuple[str, str]]
    """The apiVersions and kinds of its manifests."""
    manifests: tuple[Any, ...]
    spec: Obj
    cluster: str

    @cached_property
    def by_object(self) -> Mapping[str, tuple[Stated, ...]]:
        found: dict[str, tuple[Stated, ...]] = {}
        for one in self.manifests:
            if _is_named(one):
                key = _key(self.cluster, one)
                found[key] = (*found.get(key, ()), _stated(without_server_metadata(one)))
        return found

    @cached_property
    def terms(self) -> Terms | None:
        try:
            return api.terms({"spec": self.spec})
        except SpecError:
            return None

    def of(self, key: str, resource: Resource) -> Stated | None:
        """Return what is stated of an object, where it is written by Update."""
        for one in self.by_object.get(key, ()):
            # The resource of an object without a namespace has none, whatever its manifest says.
            if not resource.namespace or one.namespace == resource.namespace:
                is_update = self.terms is not None and self.terms.config(resource).strategy.type == "Update"
                return one if is_update else None
        return None


def statements(work: Obj) -> Statements:
    """Return what a work states of its objects."""
    manifests = api.manifests(work)
    return Statements(
        kinds=frozenset(
            (str(one.get("apiVersion")), str(one.get("kind")))
            for one in manifests
            if isinstance(one, Mapping)
        ),
        manifests=manifests,
        spec={key: value for key, value in (work.get("spec") or {}).items() if key != "workload"},
        cluster=meta.namespace(work),
    )


def _stated(obj: Obj) -> Stated:
    return Stated(
        namespace=meta.namespace(obj),
        content=digest({key: value for key, value in obj.items() if key not in _NOT_CONTENT}),
        labels=_keys(meta.labels(obj)),
        annotations=_keys(meta.annotations(obj)),
    )


def _keys(stated: Mapping[str, str]) -> Mapping[str, str | None]:
    return {key.removesuffix("-"): None if key.endswith("-") else value for key, value in stated.items()}


def _is_named(manifest: Any) -> bool:
    return isinstance(manifest, Mapping) and isinstance(manifest.get("metadata"), Mapping)


def _key(cluster: str, manifest: Obj) -> str:
    """Return the object that a manifest is about, without its namespace: the scope of its kind is unknown here."""
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    return f"{cluster}/{group}/{manifest.get('kind')}/{manifest['metadata'].get('name')}"


def by_object(work: Obj) -> Iterable[str]:
    """Return the objects that a work states."""
    return {_key(meta.namespace(work), one) for one in api.manifests(work) if _is_named(one)}


def age(work: Obj) -> tuple[str, str]:
    """Return a key that orders works by creation."""
    return meta.metadata(work).get("creationTimestamp") or "", meta.name(work)


class Rivals(Struct, frozen=True, kw_only=True):
    """The other works of an agent that state the same objects as one work."""

    work: Obj
    stating: Mapping[str, tuple[Obj, ...]] = field(default_factory=dict)
    """By object, from the oldest, and only where there are others."""

    def older_work(self, manifest: Manifest) -> Obj | None:
        """Return the oldest other work that applies the object of a manifest, if it is older and states it otherwise."""
        key, ours = self._ours(manifest)
        for one in self.stating.get(key, ()) if ours is not None else ():
            if age(one) > age(self.work):
                break
            stated = derived(statements, one).of(key, manifest.resource)
            if stated is None or _has_completed(one, manifest.resource):
                continue
            if not could_not_apply(one, manifest.resource):
                return one if ours is not None and stated.differs(ours) else None
        return None

    def differs_in_keys(self, older_work: Obj, manifest: Manifest) -> bool:
        """Say whether a manifest sets a label or an annotation that the older_work sets to another value."""
        key, ours = self._ours(manifest)
        stated = derived(statements, older_work).of(key, manifest.resource)
        return ours is not None and stated is not None and stated.differs_in_keys(ours)

    def yielding(self, manifest: Manifest) -> tuple[str, ...]:
        """Return the names of younger works that state the object of a manifest otherwise."""
        key, ours = self._ours(manifest)
        if ours is None:
            return ()
        return tuple(
            meta.name(one)
            for one in self.stating.get(key, ())
            if age(one) > age(self.work)
            and (stated := derived(statements, one).of(key, manifest.resource)) is not None
            and stated.differs(ours)
        )

    def _ours(self, manifest: Manifest) -> tuple[str, Stated | None]:
        """Return the object of a manifest and what that states of it, where there are others and it is an Update."""
        if not self.stating or manifest.kind is None:
            return "", None
        key = _key(meta.namespace(self.work), manifest.obj)
        return key, derived(statements, self.work).of(key, manifest.resource) if key in self.stating else None


def rivals(agent: Agent, world: World, work: Obj) -> Rivals:
    """Return the other works of an agent that state objects of a work, where any of them states one otherwise."""
    found: dict[str, tuple[Obj, ...]] = {}
    for key in by_object(work):
        stating = world.on(HUB).by_index(WORK, by_object, key)
        if len(stating) > 1 and _are_different(key, stating):
            others = [
                one for one in stating if meta.name(one) != meta.name(work) and not meta.is_deleting(one)
            ]
            found[key] = tuple(sorted(others, key=age))
    return Rivals(work=work, stating=found)


def _are_different(key: str, works: Iterable[Obj]) -> bool:
    """Say whether works may state an object differently: usually a thousand works share one with the same content."""
    stated = [derived(statements, one).by_object.get(key, ()) for one in works]
    return any(one != stated[0] for one in stated)


def rivals_of(agent: Agent, world: World, change: Change) -> Iterator[Ref]:
    """
    Yield the oldest other work of each object that a changed work states, or stated, with other content.

    That is the work that keeps the object, or the one that takes it over: one for each
    object, however many works share it.
    """
    if change.preserves(lambda work: (meta.generation(work), meta.is_deleting(work))):
        return
    found = {
        name
        for version in change.versions
        for key in by_object(version)
        if (name := _oldest_rival(world, version, key))
    }
    yield from (agent.work_ref(name) for name in sorted(found))


def _oldest_rival(world: World, work: Obj, key: str) -> str:
    """Return the oldest other work that states an object otherwise."""
    others = world.on(HUB).by_index(WORK, by_object, key)
    ours = derived(statements, work).by_object.get(key, ()) if others else ()
    oldest: Obj | None = None
    for one in others:
        theirs = derived(statements, one).by_object.get(key, ())
        if theirs == ours or meta.name(one) == meta.name(work) or meta.is_deleting(one):
            continue
        if oldest is not None and age(oldest) < age(one):
            continue
        if any(a.namespace == b.namespace and a.differs(b) for a in ours for b in theirs):
            oldest = one
    return meta.name(oldest) if oldest is not None else ""


def _has_completed(work: Obj, resource: Resource) -> bool:
    """Say whether a work, or its manifest of an object, completed at its generation: it is not written any more then."""
    status = work.get("status") or {}
    both = [status.get("conditions") or ()]
    for one in (status.get("resourceStatus") or {}).get("manifests") or ():
        if resource_of(one.get("resourceMeta") or {}) == resource:
            both.append(one.get("conditions") or ())
    found = (find_at(reported, "Complete", meta.generation(work)) for reported in both)
    return any(one is not None and one["status"] == "True" for one in found)
