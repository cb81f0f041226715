"""
A simulated API server: it performs plans and answers queries on a dict of objects.

Versions and uids are checked, finalizers hold objects, generations count, a
terminating namespace accepts nothing new, and server-side apply tracks field
ownership. Objects are never changed in place, so a reference is a snapshot.

Defaults, validation and merge keys of kinds are not known here; the caller passes
them in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Self, TypeAlias, assert_never

from lamina.core.crd.kinds import DEFINITION, is_established, kinds_of
from lamina.core.model.controller import AnyController
from lamina.core.model.plan import (
    Action,
    Apply,
    Create,
    Delete,
    DeleteAll,
    Emit,
    Patch,
    Post,
    Propagation,
    Replace,
)
from lamina.core.model.queries import (
    Absent,
    Answer,
    Call,
    DryRun,
    Follow,
    Found,
    Listed,
    Query,
    Read,
    ReadAll,
    ReadSchema,
    Review,
    Unserved,
)
from lamina.core.model.query_refusal import answer_of
from lamina.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from lamina.merge.patches import merge_patch
from lamina.merge.schema import Schema
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.times import stamp
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids
from lamina.runtime.cache.lister import Lister
from lamina.simulation.cluster.field_ownership import OPEN, applied, changed, created, tracked
from lamina.simulation.cluster.kinds import KINDS
from lamina.simulation.cluster.lister import cached_world, keys_for
from lamina.simulation.cluster.object_rules import (
    USUAL,
    KindRules,
    allow_all,
    deep_copy,
    established,
    grace_period,
    is_definition,
    is_edited,
    refuse_hooks,
    unchanged,
    without_empty,
)
from lamina.simulation.cluster.published_schema import published_schema

Listener: TypeAlias = Callable[[Ref, Obj | None, Obj | None], None]
"""Called with each change of an object: before and after."""
HookCaller: TypeAlias = Callable[[Call], Answer]
"""Calls a hook; raises HookError where it has no valid response."""

START = datetime(2026, 1, 1, tzinfo=UTC)
_BY_PROPAGATION = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}


@dataclass
class SimulatedCluster:
    """One simulated cluster, with a journal of the actions that were performed."""

    kinds: Kinds = KINDS
    now: datetime = START
    objects: dict[Ref, Made] = field(default_factory=dict)
    deleted_uids: DeletedUids = field(default_factory=DeletedUids)
    journal: list[Action] = field(default_factory=list)
    """The actions of controllers, in order."""
    refuse: Mapping[type[Action] | type[Query], ApiError] = field(default_factory=dict)
    """The errors that actions and queries of a type are refused with."""
    unlisted: set[GroupKind] = field(default_factory=set)
    """The kinds that controllers may not list or watch."""
    version: int = 0
    uids: int = 0
    admit: Callable[[Made, Obj | None], Made] = unchanged
    """Defaults and validates an object that is created or updated; raises what a server would refuse."""
    mutate: Callable[[Made], Made] = unchanged
    """Changes every object that is stored, to simulate failures."""
    ensure_loaded: Callable[[GroupKind], None] = lambda kind: None
    """Loads the objects of a kind before a query about it is answered."""
    schema: Callable[[Ref], Schema] = lambda ref: OPEN
    """Returns the schema by which server-side apply merges an object."""
    rules: Callable[[Ref], KindRules] = lambda ref: USUAL
    """Returns what the server does with the metadata of an object's kind."""
    call: HookCaller = refuse_hooks
    tracks_creates: bool = False
    """Whether what a controller creates has managed fields from the start, and not only from its first apply."""
    review: Callable[[Obj], Answer] = allow_all
    """Answers access and token reviews."""
    listeners: list[Listener] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._by_kind: dict[GroupKind, dict[Ref, Made]] = {}
        self._versions: dict[GroupKind, dict[str, None]] = {}
        for ref, obj in self.objects.items():
            self._objects_of(ref)[ref] = obj

    def copy(self) -> Self:
        """Return a copy of the cluster's present state, without its listeners."""
        return replace(
            self,
            objects=dict(self.objects),
            journal=list(self.journal),
            listeners=[],
            deleted_uids=DeletedUids(),
        )

    # ── verbs ──

    def create(self, obj: Obj, manager: str = "") -> Made:
        made = deep_copy(obj)
        metadata = made["metadata"]
        self.uids += 1
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{digest([self.uids])[:5]}"
        kind = self.kinds.find(made.get("apiVersion") or "", made.get("kind") or "")
        if kind is not None and not kind.namespaced:
            metadata.pop("namespace", None)
        ref = meta.ref(made)
        if self.at(ref) is not None:
            raise AlreadyExists(f"{ref} already exists")
        self._check_namespace(ref)
        metadata["uid"] = f"uid-{self.uids}"
        metadata.setdefault("creationTimestamp", stamp(self.now))
        if self.rules(ref).has_generation:
            metadata.setdefault("generation", 1)
        made = self.admit(made, None)
        if is_definition(ref) and obj.get("status") is None:
            made = established(made, self.now)
        if self.tracks_creates and manager and "managedFields" not in metadata:
            made["metadata"]["managedFields"] = created(made, self.schema(ref), manager, self.now)
        return self._put(ref, None, made)

    def load(self, objects: Iterable[Obj]) -> None:
        """Store objects of another cluster as they are, without calling listeners."""
        for obj in objects:
            made = deep_copy(obj)
            if (there := self.at(meta.ref(made))) is not None:
                made["apiVersion"] = there["apiVersion"]
            ref = meta.ref(made)
            self.objects[ref] = self._objects_of(ref)[ref] = made
            self.version = max(self.version, meta.version_number(made))
            if is_definition(ref):
                self._serve(made)

    def at(self, ref: Ref) -> Made | None:
        """Return the object of a ref in any served version, or None."""
        found = self.objects.get(ref)
        if found is None:
            for version in self._versions.get(GroupKind(ref.group, ref.kind), ()):
                if (found := self.objects.get(ref._replace(api_version=version))) is not None:
                    break
        return found

    def get(self, ref: Ref) -> Made:
        found = self.at(ref)
        if found is None:
            raise NotFound(f"{ref} not found")
        return found

    def has(self, obj: Obj) -> bool:
        """Say whether the object of this uid still exists."""
        there = self.at(meta.ref(obj))
        return there is not None and meta.uid(there) == meta.uid(obj)

    def patch(
        self, ref: Ref, patch: Obj, *, uid: str = "", version: str = "", subresource: str | None = None
    ) -> Made:
        """Patch an object; with a subresource, or an empty one for the main resource, only the fields of that."""
        old = self._checked(ref, uid, version)
        return self._change(old, merge_patch(old, deep_copy(patch)), subresource)

    def replace(self, obj: Obj, subresource: str | None = None) -> Made:
        """Update an object as a whole."""
        old = self._checked(meta.ref(obj), meta.uid(obj), meta.resource_version(obj))
        return self._change(old, deep_copy(obj), subresource)

    def apply(
        self, obj: Obj, *, manager: str = "unknown", force: bool = True, subresource: str | None = None
    ) -> Made:
        """Server-side apply; fields that the manager applied before and no longer names are removed."""
        ref = meta.ref(obj)
        old = self.at(ref)
        if not _is_still(old, meta.uid(obj), meta.resource_version(obj)):
            raise Conflict(f"{ref} has moved on")
        new = self._applied(old, obj, manager, force, subresource)
        return self.create(new) if old is None else self._change(old, new, subresource, by_apply=True)

    def delete(
        self,
        ref: Ref,
        how: Propagation = Propagation.BACKGROUND,
        *,
        uid: str = "",
        version: str = "",
        grace: int | None = None,
    ) -> None:
        """Delete an object. A pod on a node has a grace period, and is removed by a delete without one."""
        old = self._checked(ref, uid, version)
        metadata = dict(old["metadata"])
        finalizers = [one for one in metadata.get("finalizers") or () if one not in _BY_PROPAGATION.values()]
        if how in _BY_PROPAGATION:
            finalizers.append(_BY_PROPAGATION[how])
        elif metadata.get("deletionTimestamp"):
            finalizers = metadata.get("finalizers") or []
        metadata["finalizers"] = finalizers
        grace_seconds = grace_period(old, grace)
        metadata["deletionGracePeriodSeconds"] = grace_seconds
        if not metadata.get("deletionTimestamp") and metadata.get("generation"):
            metadata["generation"] += 1
        if not metadata.get("deletionTimestamp") or grace is not None:
            metadata["deletionTimestamp"] = stamp(self.now + timedelta(seconds=grace_seconds))
        new = {**old, "metadata": metadata}
        if new != old:
            self._put(ref, old, new)

    def perform(self, action: Action, manager: str = "lamina") -> None:
        """Perform one action, or refuse it as a server would."""
        if type(action) in self.refuse:
            raise self.refuse[type(action)]
        # The caller resolved the cluster's name; inside the cluster there is none.
        ref = action.ref._replace(cluster="")
        match action:
            case Create(obj=obj):
                self.create(obj, manager)
            case Emit(event=event, counts=counts):
                self._emit(event, counts)
            case Patch(uid=uid, version=version, patch=patch, subresource=subresource):
                self.patch(ref, patch, uid=uid, version=version, subresource=subresource)
            case Replace(obj=obj, subresource=subresource):
                self.replace(obj, subresource)
            case Apply(obj=obj, force=force, manager=name, subresource=subresource):
                self.apply(obj, manager=name or manager, force=force, subresource=subresource)
            case Post(body=body, subresource="binding"):
                self._bind(ref, body["target"]["name"])
            case Post(subresource="eviction"):
                self.delete(ref)
            case Post(subresource=subresource):
                raise NotFound(f"{ref} has no {subresource}")
            case Delete(uid=uid, version=version, propagation=how, grace=grace):
                self.delete(ref, how, uid=uid, version=version, grace=grace)
            case DeleteAll(kind=what, namespace=namespace):
                for one in self.listed(what, namespace):
                    self.delete(meta.ref(one))
            case _:
                assert_never(action)
        self.journal.append(action)

    def listed(self, what: Kind, namespace: str = "") -> list[Made]:
        return [
            obj
            for ref, obj in self._by_kind.get(what.group_kind, {}).items()
            if not namespace or ref.namespace == namespace
        ]

    def list_allowed(self, what: Kind) -> list[Made]:
        """Return the objects of a kind, as a controller lists them; raises Forbidden where it may not."""
        self._check_list(what)
        return self.listed(what)

    def answer(self, query: Query, /) -> Answer:
        """Answer a query of a plan, as a server and its webhooks do."""
        try:
            if type(query) in self.refuse:
                raise self.refuse[type(query)]
            return self._answer(query)
        except ApiError as error:
            return answer_of(query, error)

    def _answer(self, query: Query) -> Answer:
        match query:
            case Read(ref, whole=whole):
                ref = ref._replace(cluster="")
                self.ensure_loaded(GroupKind(ref.group, ref.kind))
                if self.kinds.find(ref.api_version, ref.kind) is None:
                    return Unserved()
                there = self.at(ref)
                if there is None:
                    return Absent()
                return Found(there if whole else _partial(there))
            case ReadAll(what, namespace, whole=whole, labels=labels):
                self._check_list(what)
                self.ensure_loaded(what.group_kind)
                found = [one for one in self.listed(what, namespace) if labels.matches(meta.labels(one))]
                return Listed(tuple(found if whole else map(_partial, found)))
            case Follow(kind=what):
                self._check_list(what)
                self.ensure_loaded(what.group_kind)
                return Listed(tuple(one for one in self.listed(what) if query.matches(one)))
            case DryRun():
                return Found(self._dry_run(query))
            case Review(body=body):
                return self.review(body)
            case ReadSchema(kind=what):
                return self._published(what)
            case Call():
                return self.call(query)
            case _:
                assert_never(query)

    # ── what a controller sees ──

    def world(
        self,
        controller: AnyController,
        *,
        unseen: Collection[Ref] = (),
        others: Mapping[str, SimulatedCluster] | None = None,
    ) -> Lister:
        """Return the world of a controller whose informers have synced, without the `unseen` objects."""
        worlds: dict[str, Lister] = {}
        for cluster, simulated in (others or {}).items():
            worlds[cluster] = cached_world(
                simulated, controller.watches, cluster, unseen=unseen, others=worlds
            )
        return cached_world(self, controller.watches, unseen=unseen, others=worlds)

    def keys_for(
        self, controller: AnyController, before: Obj | None, after: Obj | None, world: Lister
    ) -> list[Ref]:
        """Return the keys that a change enqueues for a controller."""
        return keys_for(self.kinds, controller.watches, before, after, world)

    # ── inside ──

    def _dry_run(self, asked: DryRun) -> Made:
        """Return the result of a write without storing it, or refuse it as the write would be."""
        obj, ref = asked.obj, meta.ref(asked.obj)
        if asked.creates:
            if self.at(ref) is not None:
                raise AlreadyExists(f"{ref} already exists")
            created: Made = deep_copy(obj)
            return created
        if asked.replaces:
            return self.admit(deep_copy(obj), self._checked(ref, meta.uid(obj), meta.resource_version(obj)))
        old = self.at(ref)
        made = self._applied(old, obj, asked.manager, asked.force, None)
        # What is compared with the live object has the defaults of the fields that are applied, too.
        return self.admit(made, old) if old is not None and is_edited(old, made, self.rules(ref)) else made

    def _published(self, kind: Kind) -> Answer:
        """Return the schema of a kind, as a server publishes it."""
        if self.kinds.find(kind.api_version, kind.kind) is None:
            return Unserved()
        schema = published_schema(kind, self._definitions)
        return Found({"schema": schema}) if schema is not None else Unserved()

    def _definitions(self) -> Iterable[Obj]:
        self.ensure_loaded(DEFINITION)
        return self._by_kind.get(DEFINITION, {}).values()

    def _objects_of(self, ref: Ref) -> dict[Ref, Made]:
        kind = GroupKind(ref.group, ref.kind)
        self._versions.setdefault(kind, {})[ref.api_version] = None
        return self._by_kind.setdefault(kind, {})

    def _check_list(self, what: Kind) -> None:
        if what.group_kind in self.unlisted:
            raise Forbidden(f'{what.plural} is forbidden: cannot list resource "{what.plural}"')

    def _check_namespace(self, ref: Ref) -> None:
        namespace = self.objects.get(Ref("v1", "Namespace", "", ref.namespace)) if ref.namespace else None
        if namespace is not None and meta.is_deleting(namespace):
            raise Forbidden(
                f"unable to create new content in namespace {ref.namespace} because it is being terminated"
            )

    def _emit(self, event: Obj, counts: bool) -> None:
        """Create an Event or increment its count; a refusal is ignored."""
        with suppress(AlreadyExists, Forbidden):
            there = self.at(meta.ref(event))
            if there is not None and counts:
                again = {"count": (there.get("count") or 1) + 1, "lastTimestamp": event.get("lastTimestamp")}
                self.patch(meta.ref(event), again)
            elif there is None:
                self.create(event)

    def _bind(self, ref: Ref, node: str) -> None:
        """Bind a pod to a node."""
        old = self.get(ref)
        status = old.get("status") or {}
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(self.now)}
        others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
        status = {"phase": "Pending", **status, "conditions": [*others, scheduled]}
        spec = {**(old.get("spec") or {}), "nodeName": node}
        self._put(ref, old, {**old, "metadata": dict(old["metadata"]), "spec": spec, "status": status})

    def _checked(self, ref: Ref, uid: str, version: str) -> Made:
        old = self.get(ref)
        if (uid and uid != meta.uid(old)) or (version and version != meta.resource_version(old)):
            raise Conflict(f"{ref} has moved on")
        return old

    def _applied(
        self, old: Made | None, obj: Obj, manager: str, force: bool, subresource: str | None
    ) -> Made:
        schema = self.schema(meta.ref(obj))
        return applied(old, obj, schema, manager=manager, force=force, subresource=subresource, now=self.now)

    def _change(
        self, old: Made, new: Made, subresource: str | None = None, *, by_apply: bool = False
    ) -> Made:
        """Store the new state of an object."""
        ref = meta.ref(old)
        rules = self.rules(ref)
        new = changed(old, new, subresource, has_status=rules.has_status)
        if not by_apply and old["metadata"].get("managedFields"):
            new["metadata"]["managedFields"] = tracked(old, new, self.schema(ref), subresource, self.now)
        without_empty(new["metadata"])
        if new == old:
            return old
        if is_edited(old, new, rules):
            new = self.admit(new, old)
            if new == old:
                return old
            if rules.has_generation and is_edited(old, new, rules):
                new["metadata"]["generation"] = meta.generation(old) + 1
        return self._put(ref, old, new)

    def _put(self, ref: Ref, before: Made | None, new: Made) -> Made:
        self.version += 1
        new = self.mutate(new)
        metadata = without_empty(new["metadata"])
        metadata["resourceVersion"] = str(self.version)
        if before is not None:
            # An object stays in the version in which it was stored first.
            ref, new["apiVersion"] = meta.ref(before), before["apiVersion"]
        held = (
            metadata.get("finalizers")
            or (new.get("spec") or {}).get("finalizers")
            or metadata.get("deletionGracePeriodSeconds")
        )
        if metadata.get("deletionTimestamp") and not held:
            del self.objects[ref], self._objects_of(ref)[ref]
            self.deleted_uids.add(meta.uid(new))
            after: Made | None = None
        else:
            self.objects[ref] = self._objects_of(ref)[ref] = new
            after = new
        if is_definition(ref):
            self._serve(after, before)
        for listener in self.listeners:
            listener(ref, before, after)
        return new

    def _serve(self, definition: Obj | None, before: Obj | None = None) -> None:
        """Serve the kinds of a CRD, and no longer those of its earlier version."""
        brought = set(kinds_of(before)) if before is not None else set()
        brings = kinds_of(definition) if definition is not None and is_established(definition) else ()
        known = {(kind.api_version, kind.kind) for kind in self.kinds.versions() if kind not in brought}
        fresh = [kind for kind in brings if (kind.api_version, kind.kind) not in known]
        if fresh or brought.difference(brings):
            self.kinds = Kinds([*(one for one in self.kinds.versions() if one not in brought), *fresh])


def _is_still(old: Obj | None, uid: str, version: str) -> bool:
    """Say whether an object is the one, in the version, that an apply names."""
    if old is None:
        return not uid and not version
    return uid in ("", meta.uid(old)) and version in ("", meta.resource_version(old))


def _partial(obj: Made) -> Made:
    """Return an object's metadata, as a metadata-only read does."""
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata")}
