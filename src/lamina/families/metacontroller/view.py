"""What a world has to say about one parent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from lamina.core.world import Change, World
from lamina.errors import BadRequest, SpecError
from lamina.families.metacontroller.herd import Seen
from lamina.families.metacontroller.matching import adopters, orphans, owner_named
from lamina.families.metacontroller.names import (
    API_GROUP,
    COMPOSITE,
    CONTROLLER_UID,
    DECORATED_BY,
    RESOURCE,
    REVISION,
)
from lamina.families.metacontroller.recall import Recall, Recent
from lamina.families.metacontroller.setup import ParentRule, Setup
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.kinds import Kind
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement, from_object
from lamina.objects.types import GroupKind, Made, Obj, OwnerRef, Ref

_LONGEST_LABEL = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    One parent, its children, and what is to be claimed or let go.

    `children` has every kind there is a rule for, empty where there is none.
    """

    setup: Setup
    parent: Obj
    rule: ParentRule
    children: Mapping[Kind, tuple[Obj, ...]]
    world: World
    """For looking at what is in the way of a child that is not there."""
    selector: LabelSelector = EVERYTHING
    revisions: tuple[Obj, ...] = ()
    adopts: tuple[Obj, ...] = ()
    releases: tuple[Obj, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What has been worked out about it already, and would come out the same."""
    recall: Recall = field(default_factory=Recall, repr=False, compare=False)
    """What of that was worked out in the pass before, about objects that are still the same."""

    @property
    def is_wanted(self) -> bool:
        return self.rule.wants(self.parent)

    @property
    def is_deleting(self) -> bool:
        return meta.is_deleting(self.parent)

    @property
    def has_finalizer(self) -> bool:
        return self.setup.finalizer in meta.finalizers(self.parent)

    @property
    def is_let_go(self) -> bool:
        """Say whether our finalizer has to come off: there is no finalize hook any more."""
        return self.setup.finalize is None and self.has_finalizer

    @property
    def is_finalizing(self) -> bool:
        """Say whether it is the finalize hook's turn."""
        return self.setup.finalize is not None and (self.is_deleting or not self.is_wanted)

    @property
    def about(self) -> str:
        """Return what a hook is called about: this parent, by this edition of the controller."""
        controller = self.setup.obj
        return f"{meta.uid(controller)}/{meta.generation(controller)}/{meta.uid(self.parent)}"

    @property
    def revision_labels(self) -> Made:
        """Return what tells the revisions of this kind of parent from any other."""
        return _revision_labels(self.rule.kind)


def _revision_labels(kind: Kind) -> Made:
    return {API_GROUP: as_label(kind.group), RESOURCE: as_label(kind.plural)}


def as_label(name: str) -> str:
    """Return a name as a label may hold it: one that is too long is cut, and told apart by its hash."""
    if len(name) <= _LONGEST_LABEL:
        return name
    return (
        f"{name[: _LONGEST_LABEL - 11]}-{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:10]}"
    )


def gather(setup: Setup, world: World, ref: Ref, recent: Recent | None = None) -> View | None:
    """Return the view of a parent, or None if it is none of ours; `recent` is what was known of it before."""
    parent = world.get(ref)
    rule = setup.parents.get(GroupKind(ref.group, ref.kind))
    if (
        parent is None
        or rule is None
        or not (rule.wants(parent) or setup.finalizer in meta.finalizers(parent))
    ):
        if recent is not None:
            recent.forget(ref)
        return None
    recall = recent.of(ref, meta.uid(parent)) if recent is not None else Recall()
    if setup.kind == COMPOSITE:
        return _composite(setup, world, parent, rule, recall)
    recall.turn(EVERYTHING)
    return View(
        recall=recall,
        setup=setup,
        parent=parent,
        rule=rule,
        world=world,
        children={
            child.kind: _attached(world, parent, child.kind, setup.name, recall)
            for child in setup.children.values()
        },
    )


def _attached(world: World, parent: Obj, kind: Kind, decorator: str, recall: Recall) -> tuple[Obj, ...]:
    """Return what this decorator made for a parent, and nobody else did."""
    uid = meta.uid(parent)

    def judge(obj: Obj) -> Seen:
        ours = meta.annotations(obj).get(DECORATED_BY) == decorator
        return Seen(ours and meta.is_controlled_by(obj, uid) and _in_reach(parent, obj), matches=True)

    return recall.herd(kind.group_kind, world.owned_by(uid, kind.group_kind), judge).children


def _composite(setup: Setup, world: World, parent: Obj, rule: ParentRule, recall: Recall) -> View:
    try:
        selector = _selected(setup, parent, recall)
    except SpecError:
        if setup.finalize is None and setup.finalizer in meta.finalizers(parent):
            # Whoever is only to be let go needs no selector for that.
            return View(setup=setup, parent=parent, rule=rule, world=world, children={}, recall=recall)
        raise
    recall.turn(selector)
    claims = _Claims(parent=parent, selector=selector, recall=recall)
    children = {child.kind: claims.of(world, child.kind.group_kind) for child in setup.children.values()}
    labels = _revision_labels(rule.kind)
    revisions = tuple(claims.revisions(world, labels)) if rule.kind.namespaced else ()
    return View(
        setup=setup,
        parent=parent,
        rule=rule,
        world=world,
        children=children,
        selector=selector,
        revisions=revisions,
        adopts=tuple(claims.adopts),
        releases=tuple(claims.releases),
        recall=recall,
    )


class _Claims(Struct, kw_only=True):
    """
    Sorts out whose objects are whose.

        controlled by   labels   the parent   what happens
        another         any      any          it is none of ours
        us              match    any          ours
        us              do not   lives        let go
        us              do not   is going     it is none of ours any more
        nobody          match    lives        adopted, unless it is going itself
        nobody          any      otherwise    left alone
    """

    parent: Obj
    selector: LabelSelector
    recall: Recall
    adopts: list[Obj] = msgspec.field(default_factory=list)
    releases: list[Obj] = msgspec.field(default_factory=list)

    def of(self, world: World, kind: GroupKind) -> tuple[Obj, ...]:
        """Return the children of one kind that are ours."""
        uid = meta.uid(self.parent)

        def judge(obj: Obj) -> Seen:
            own = meta.is_controlled_by(obj, uid) and _in_reach(self.parent, obj)
            return Seen(own, self.selector.matches(meta.labels(obj)))

        herd = self.recall.herd(kind, world.owned_by(uid, kind), judge)
        if not meta.is_deleting(self.parent):
            self.releases += herd.others
            self.adopts += orphans(world, kind, meta.namespace(self.parent), self.selector)
        return herd.children

    def revisions(self, world: World, labels: Mapping[str, str]) -> Iterator[Obj]:
        """Yield the revisions that are ours; what we own is ours, whatever its labels."""
        uid = meta.uid(self.parent)
        for obj in world.owned_by(uid, REVISION):
            if meta.is_controlled_by(obj, uid) and not meta.is_deleting(obj):
                yield obj
        if not meta.is_deleting(self.parent):
            for obj in orphans(world, REVISION, meta.namespace(self.parent), self.selector):
                if labels.items() <= meta.labels(obj).items():
                    self.adopts.append(obj)


def _in_reach(parent: Obj, obj: Obj) -> bool:
    home = meta.namespace(parent)
    return not home or meta.namespace(obj) == home


def _selected(setup: Setup, parent: Obj, recall: Recall) -> LabelSelector:
    """Return the selector of a parent, which is read once for as long as nobody writes to its spec."""
    written = (parent.get("spec") or {}).get("selector")
    known = recall.selected.find(written)
    return known if known is not None else recall.selected.keep(_selector(setup, parent), written)


def _selector(setup: Setup, parent: Obj) -> LabelSelector:
    if setup.generates_selector:
        return LabelSelector((Requirement(CONTROLLER_UID, "=", (meta.uid(parent),)),))
    written = (parent.get("spec") or {}).get("selector")
    where = f"{meta.ref(parent)}: spec.selector"
    if not isinstance(written, dict) or not written:
        raise SpecError(
            f"{where}: expected a label selector that is not empty",
            hint="say which children are its own, or set generateSelector on the controller",
        )
    try:
        selector = from_object(written)
    except (BadRequest, AttributeError, TypeError) as wrong:
        raise SpecError(f"{where}: {wrong}") from None
    if selector.is_everything:
        raise SpecError(f"{where}: expected a label selector that is not empty")
    return selector


# Whom a change concerns


def parent_changed(setup: Setup, change: Change) -> Iterable[Ref]:
    """A change to a parent concerns it, unless only its status changed and nobody is to care."""
    rule = setup.parents.get(change.kind.group_kind)
    if rule is None:
        return ()
    shown = [obj for obj in (change.before, change.after) if obj is not None]
    if not any(rule.wants(obj) or setup.finalizer in meta.finalizers(obj) for obj in shown):
        return ()
    if rule.ignores_status and len(shown) == 2 and _only_status(*shown):
        return ()
    return (change.ref,)


def _only_status(before: Obj, after: Obj) -> bool:
    return not meta.is_deleting(after) and is_same(meaning(before), meaning(after))


def meaning(obj: Obj) -> Made:
    """Return what somebody wants of an object: all of it but its status and the server's own bookkeeping."""
    left_out = ("managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in left_out}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def child_changed(setup: Setup, world: World, change: Change) -> Iterable[Ref]:
    """A change to a child concerns its parent; one to an orphan, whoever might adopt it."""
    concerned: dict[Ref, None] = {}
    known: OwnerRef | None = None
    for obj in (change.before, change.after):
        if obj is None:
            continue
        owner = meta.controller_of(obj)
        if owner is not None:
            if owner == known:
                continue
            known = owner
            parent = _parent(setup, world, obj, owner["apiVersion"], owner["kind"], owner["name"])
            if parent is not None and meta.uid(parent) == owner["uid"]:
                concerned[meta.ref(parent)] = None
        elif setup.kind == COMPOSITE and obj is change.after:
            concerned |= dict.fromkeys(_adopters(setup, world, obj))
    return concerned


def _parent(setup: Setup, world: World, child: Obj, api_version: str, kind: str, name: str) -> Obj | None:
    group = api_version.rpartition("/")[0]
    rule = setup.parents.get(GroupKind(group, kind))
    if rule is None:
        return None
    return world.get(rule.kind.ref(meta.namespace(child), name))


def _adopters(setup: Setup, world: World, orphan: Obj) -> Iterator[Ref]:
    find = owner_named if setup.generates_selector else adopters
    for rule in setup.parents.values():
        for parent in find(world, rule.kind, orphan):
            try:
                if rule.wants(parent) and _selector(setup, parent).matches(meta.labels(orphan)):
                    yield meta.ref(parent)
            except SpecError:
                # It says so itself; nobody else's orphan is the place to.
                continue
