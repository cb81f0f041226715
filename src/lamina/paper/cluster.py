"""
A cluster on paper: what a server does with the plans of controllers, carried out on a dict.

Small enough to be checked by reading, and strict where it matters: versions and
uids are compared, finalizers hold, generations count, a namespace that is ending
takes nothing new, and whoever applies owns what it stated. Objects are never
changed in place: whoever holds one holds a picture of how it was.

What a server knows about kinds beyond their names (what it fills in, how its
lists merge) is not known here; who knows it hands it in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Self, TypeAlias, assert_never

from lamina.core.controller import AnyController
from lamina.core.definitions import is_established, kinds_of
from lamina.core.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Post, Propagation, Replace
from lamina.core.questions import (
    Absent,
    Answer,
    Call,
    Follow,
    Found,
    Listed,
    Question,
    Read,
    ReadAll,
    Refused,
    Rehearse,
    Review,
    Unserved,
)
from lamina.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from lamina.merge.patches import merge_patch
from lamina.merge.schema import Schema
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.times import stamp
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.paper.becoming import OPEN, applied, changed, tracked
from lamina.paper.kinds import KINDS
from lamina.paper.rules import (
    as_given,
    established,
    everybody_may,
    grace_of,
    is_definition,
    nobody_calls,
    owned,
)
from lamina.paper.seeing import concerned, remembered
from lamina.runtime.memory import Gone, Memory

Listener: TypeAlias = Callable[[Ref, Obj | None, Obj | None], None]
"""Who is told what an object was and what it is now."""
Calling: TypeAlias = Callable[[Call], Answer]
"""Who calls hooks; raises HookError where one does not say anything that counts."""

START = datetime(2026, 1, 1, tzinfo=UTC)
_BY_PROPAGATION = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}


@dataclass
class Paper:
    """One cluster, and everything that was written to it."""

    kinds: Kinds = KINDS
    now: datetime = START
    objects: dict[Ref, Made] = field(default_factory=dict)
    gone: Gone = field(default_factory=Gone)
    journal: list[Action] = field(default_factory=list)
    """What controllers had written, in order."""
    refuse: Mapping[type[Action], ApiError] = field(default_factory=dict)
    version: int = 0
    uids: int = 0
    admit: Callable[[Made, Obj | None], Made] = as_given
    """What a server fills in on an object that is made, or made out of an old one; what it refuses is an error."""
    fate: Callable[[Made], Made] = as_given
    """What becomes of an object, whoever writes it and whatever they write."""
    look: Callable[[GroupKind], None] = lambda kind: None
    """Who sees to it that what there is of a kind has been loaded before anything is said of it."""
    schema: Callable[[Ref], Schema] = lambda ref: OPEN
    """By what the fields of a kind merge when somebody applies."""
    call: Calling = nobody_calls
    review: Callable[[Obj], Answer] = everybody_may
    """What is said to whoever asks whether somebody may do something."""
    listeners: list[Listener] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._by_kind: dict[GroupKind, dict[Ref, Made]] = {}
        self._versions: dict[GroupKind, dict[str, None]] = {}
        for ref, obj in self.objects.items():
            self._shelf(ref)[ref] = obj

    def as_it_is(self) -> Self:
        """Return the cluster as it is now; whatever becomes of this one, that one stays, and nobody listens to it."""
        return replace(
            self, objects=dict(self.objects), journal=list(self.journal), listeners=[], gone=Gone()
        )

    # ── what anybody may do ──

    def create(self, obj: Obj) -> Made:
        made = owned(obj)
        metadata = made["metadata"]
        self.uids += 1
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{digest([self.uids])[:5]}"
        ref = meta.ref(made)
        if self.at(ref) is not None:
            raise AlreadyExists(f"{ref} already exists")
        self._refuse_ending(ref)
        metadata["uid"] = f"uid-{self.uids}"
        metadata.setdefault("creationTimestamp", stamp(self.now))
        metadata.setdefault("generation", 1)
        made = self.admit(made, None)
        if is_definition(ref) and obj.get("status") is None:
            made = established(made, self.now)
        return self._put(ref, None, made)

    def load(self, objects: Iterable[Obj]) -> None:
        """Take objects over as they are, from a cluster that has made them; nobody is told."""
        for obj in objects:
            made = owned(obj)
            if (there := self.at(meta.ref(made))) is not None:
                made["apiVersion"] = there["apiVersion"]
            ref = meta.ref(made)
            self.objects[ref] = self._shelf(ref)[ref] = made
            version = meta.resource_version(made)
            self.version = max(self.version, int(version) if version.isdigit() else 0)
            if is_definition(ref):
                self._serve(made)

    def at(self, ref: Ref) -> Made | None:
        """Return the object that is there, whatever version it was asked for in."""
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
        """Say whether this very object is still there."""
        there = self.at(meta.ref(obj))
        return there is not None and meta.uid(there) == meta.uid(obj)

    def patch(
        self, ref: Ref, patch: Obj, *, uid: str = "", version: str = "", subresource: str | None = None
    ) -> Made:
        """Change an object; with a subresource, or an empty one for the object itself, only what is behind it."""
        old = self._checked(ref, uid, version)
        return self._change(old, merge_patch(old, owned(patch)), subresource)

    def replace(self, obj: Obj, subresource: str | None = None) -> Made:
        """Put an object in the place of the one it was made from."""
        old = self._checked(meta.ref(obj), meta.uid(obj), meta.resource_version(obj))
        return self._change(old, owned(obj), subresource)

    def apply(
        self, obj: Obj, *, manager: str = "somebody", force: bool = True, subresource: str | None = None
    ) -> Made:
        """State fields of an object, as its manager; what the manager stated before and no more goes."""
        ref = meta.ref(obj)
        old = self.at(ref)
        if old is not None and meta.uid(obj) not in ("", meta.uid(old)):
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
        """Ask for the end of an object. A pod that is on a node is given time, and goes when nobody gives it any."""
        old = self._checked(ref, uid, version)
        metadata = dict(old["metadata"])
        finalizers = [one for one in metadata.get("finalizers") or () if one not in _BY_PROPAGATION.values()]
        if how in _BY_PROPAGATION:
            finalizers.append(_BY_PROPAGATION[how])
        elif metadata.get("deletionTimestamp"):
            finalizers = metadata.get("finalizers") or []
        metadata["finalizers"] = finalizers
        given = grace_of(old, grace)
        if given:
            metadata["deletionGracePeriodSeconds"] = given
        else:
            metadata.pop("deletionGracePeriodSeconds", None)
        if not metadata.get("deletionTimestamp") or grace is not None:
            metadata["deletionTimestamp"] = stamp(self.now + timedelta(seconds=given))
        new = {**old, "metadata": metadata}
        if new != old:
            self._put(ref, old, new)

    def perform(self, action: Action, manager: str = "lamina") -> None:
        """Carry out one action, or refuse it as a server would."""
        if type(action) in self.refuse:
            raise self.refuse[type(action)]
        # Whoever chose this cluster did so by its name; here it has none.
        ref = action.ref._replace(cluster="")
        match action:
            case Create(obj=obj):
                self.create(obj)
            case Emit(event=event, counts=counts):
                self._tell(event, counts)
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

    def answer(self, question: Question) -> Answer:
        """Answer what a planner asks, as a server and its hooks would."""
        match question:
            case Read(ref, whole=whole):
                ref = ref._replace(cluster="")
                self.look(GroupKind(ref.group, ref.kind))
                if self.kinds.find(ref.api_version, ref.kind) is None:
                    return Unserved()
                there = self.at(ref)
                if there is None:
                    return Absent()
                return Found(there if whole else _partial(there))
            case ReadAll(what, namespace):
                self.look(what.group_kind)
                return Listed(tuple(map(_partial, self.listed(what, namespace))))
            case Follow(kind=what):
                self.look(what.group_kind)
                return Listed(tuple(one for one in self.listed(what) if question.matches(one)))
            case Rehearse():
                return self._rehearsed(question)
            case Review(body=body):
                return self.review(body)
            case Call():
                return self.call(question)
            case _:
                assert_never(question)

    # ── what a controller sees ──

    def world(
        self,
        controller: AnyController,
        *,
        unseen: Collection[Ref] = (),
        others: Mapping[str, Paper] | None = None,
    ) -> Memory:
        """Return what a controller's informers would remember, leaving out what they have not seen yet."""
        worlds: dict[str, Memory] = {}
        for cluster, paper in (others or {}).items():
            worlds[cluster] = remembered(paper, controller.watches, cluster, unseen=unseen, others=worlds)
        return remembered(self, controller.watches, unseen=unseen, others=worlds)

    def concerned(
        self, controller: AnyController, before: Obj | None, after: Obj | None, world: Memory
    ) -> list[Ref]:
        """Return whom a change concerns, as one controller sees it."""
        return concerned(self.kinds, controller.watches, before, after, world)

    # ── inside ──

    def _rehearsed(self, asked: Rehearse) -> Answer:
        """Return what would become of an object."""
        obj, there = asked.obj, self.at(meta.ref(asked.obj))
        if asked.creates:
            taken = there is not None
            return Refused(409, f"{meta.ref(obj)} already exists") if taken else Found(owned(obj))
        if asked.replaces:
            return Found(self.admit(owned(obj), there))
        try:
            return Found(self._applied(there, obj, asked.manager, asked.force, None))
        except Conflict as disputed:
            return Refused(disputed.code, str(disputed))

    def _shelf(self, ref: Ref) -> dict[Ref, Made]:
        kind = GroupKind(ref.group, ref.kind)
        self._versions.setdefault(kind, {})[ref.api_version] = None
        return self._by_kind.setdefault(kind, {})

    def _refuse_ending(self, ref: Ref) -> None:
        namespace = self.objects.get(Ref("v1", "Namespace", "", ref.namespace)) if ref.namespace else None
        if namespace is not None and meta.is_deleting(namespace):
            raise Forbidden(
                f"unable to create new content in namespace {ref.namespace} because it is being terminated"
            )

    def _tell(self, event: Obj, counts: bool) -> None:
        """Tell something. Told already, or not to be told, it holds nobody up."""
        with suppress(AlreadyExists, Forbidden):
            there = self.at(meta.ref(event))
            if there is not None and counts:
                again = {"count": (there.get("count") or 1) + 1, "lastTimestamp": event.get("lastTimestamp")}
                self.patch(meta.ref(event), again)
            elif there is None:
                self.create(event)

    def _bind(self, ref: Ref, node: str) -> None:
        """Give a pod its node."""
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
        """Put what an object becomes in its place."""
        new = changed(old, new, subresource)
        if not by_apply and old["metadata"].get("managedFields"):
            schema = self.schema(meta.ref(old))
            new["metadata"]["managedFields"] = tracked(old, new, schema, subresource, self.now)
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new = self.admit(new, old)
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = meta.generation(old) + 1
        return self._put(meta.ref(old), old, new)

    def _put(self, ref: Ref, before: Made | None, new: Made) -> Made:
        self.version += 1
        new = self.fate(new)
        metadata = new["metadata"]
        metadata["resourceVersion"] = str(self.version)
        if before is not None:
            # Written in another version, it is kept in the one it was kept in.
            ref, new["apiVersion"] = meta.ref(before), before["apiVersion"]
        held = (
            metadata.get("finalizers")
            or (new.get("spec") or {}).get("finalizers")
            or metadata.get("deletionGracePeriodSeconds")
        )
        if metadata.get("deletionTimestamp") and not held:
            del self.objects[ref], self._shelf(ref)[ref]
            self.gone.add(meta.uid(new))
            after: Made | None = None
        else:
            self.objects[ref] = self._shelf(ref)[ref] = new
            after = new
        if is_definition(ref):
            self._serve(after, before)
        for tell in self.listeners:
            tell(ref, before, after)
        return new

    def _serve(self, definition: Obj | None, before: Obj | None = None) -> None:
        """Serve the kinds that a definition brings, and no more those that it brought."""
        brought = set(kinds_of(before)) if before is not None else set()
        brings = kinds_of(definition) if definition is not None and is_established(definition) else ()
        known = {(kind.api_version, kind.kind) for kind in self.kinds.versions() if kind not in brought}
        fresh = [kind for kind in brings if (kind.api_version, kind.kind) not in known]
        if fresh or brought.difference(brings):
            self.kinds = Kinds([*(one for one in self.kinds.versions() if one not in brought), *fresh])


def _partial(obj: Made) -> Made:
    """Return what is read of an object where nobody asks for the whole of it."""
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata")}
