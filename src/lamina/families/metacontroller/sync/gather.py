"""Gathers the view of one parent: the children and revisions that it controls, and what it may adopt or has to release."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from msgspec import Struct

from lamina.core.model.memo import Memo, MemoStore
from lamina.core.model.object_map import ObjectMap, object_map
from lamina.core.model.world import World
from lamina.core.ownership.controller_ref import Claim, complete_claim, controls
from lamina.errors import SpecError
from lamina.families.metacontroller.compile import Setup
from lamina.families.metacontroller.labels import DECORATED_BY, REVISION
from lamina.families.metacontroller.sync.view import View, generated_selector, read_selector, revision_labels
from lamina.objects import meta
from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import GroupKind, Obj, Ref


def gather(setup: Setup, world: World, ref: Ref, memos: MemoStore | None = None) -> View | None:
    """Return the view of a parent, or None if it is no parent of this controller."""
    parent = world.get(ref)
    rule = setup.parents.get(GroupKind(ref.group, ref.kind))
    if (
        parent is None
        or rule is None
        or not (rule.wants(parent) or setup.finalizer in meta.finalizers(parent))
    ):
        if memos is not None:
            memos.forget(setup.controller_name, ref)
        return None
    memo = memos.next_pass(setup.controller_name, ref, meta.uid(parent)) if memos is not None else Memo()
    view = View(
        setup=setup,
        parent=parent,
        rule=rule,
        kinds=world.kinds,
        controller=world.get(meta.ref(setup.obj)),
        claim=Claim(owner=parent),
        children={},
        memo=memo,
    )
    return _composite(world, view) if setup.is_composite else _decorator(world, view)


def gather_any(setups: Iterable[Setup], world: World, ref: Ref) -> View | SpecError | None:
    """Return the view of a parent by the controller that rolls its children, or by any; or what is wrong with it."""
    found: list[View] = []
    refused: SpecError | None = None
    for setup in setups:
        try:
            view = gather(setup, world, ref)
        except SpecError as wrong:
            refused = wrong
            continue
        if view is not None:
            found.append(view)
    return next((view for view in found if view.setup.rolls), found[0] if found else refused)


def _decorator(world: World, view: View) -> View:
    children = {
        kind: _owned_of(world, view.parent, kind.group_kind, EVERYTHING, view.setup.name, view.memo).children
        for kind in (child.kind for child in view.setup.children.values())
    }
    return replace(view, children=children)


def _composite(world: World, view: View) -> View:
    setup, parent, rule, memo = view.setup, view.parent, view.rule, view.memo
    try:
        selector = _selector(setup, parent, memo)
    except SpecError:
        if view.is_released:
            # A finalizer is removed without a selector.
            return view
        raise
    claims = {
        child.kind: _claim(world, parent, child.kind.group_kind, selector, memo)
        for child in setup.children.values()
    }
    revisions = Claim(owner=parent)
    if rule.kind.namespaced:
        revisions = _revisions(world, parent, selector, revision_labels(rule.kind))
    return replace(
        view,
        children={kind: one.held for kind, one in claims.items()},
        selector=selector,
        revisions=revisions.held,
        claim=Claim(
            owner=parent,
            adoptable=tuple(obj for one in (*claims.values(), revisions) for obj in one.adoptable),
            releasable=tuple(obj for one in claims.values() for obj in one.releasable),
        ),
    )


def _selector(setup: Setup, parent: Obj, memo: Memo) -> LabelSelector:
    """Return the selector of a parent; as long as it is the same, so is the value."""
    if setup.generates_selector:
        return memo.call(generated_selector, meta.uid(parent))
    written = (parent.get("spec") or {}).get("selector")
    return memo.unique(memo.call(read_selector, written, str(meta.ref(parent))))


def _claim(world: World, parent: Obj, kind: GroupKind, selector: LabelSelector, memo: Memo) -> Claim:
    """Return the claim of a parent on the children of one kind."""
    owned = _owned_of(world, parent, kind, selector, "", memo)
    return complete_claim(world, parent, kind, selector, owned.children, owned.releasable)


def _revisions(world: World, parent: Obj, selector: LabelSelector, labels: Mapping[str, str]) -> Claim:
    """Return the claim of a parent on its revisions; what it controls it holds, whatever its labels."""
    uid = meta.uid(parent)
    held = [obj for obj in world.owned_by(uid, REVISION) if controls(uid, obj) and not meta.is_deleting(obj)]
    return complete_claim(
        world, parent, REVISION, selector, held, (), lambda obj: labels.items() <= meta.labels(obj).items()
    )


class Owned(Struct, frozen=True):
    """The objects of one kind that a parent controls: its children, and those that its selector does not match."""

    children: tuple[Obj, ...]
    releasable: tuple[Obj, ...]
    selector: LabelSelector
    others: ObjectMap[int, bool]
    """What is no child, by identity, and whether the parent controls it."""


def _owned_of(
    world: World, parent: Obj, kind: GroupKind, selector: LabelSelector, decorator: str, memo: Memo
) -> Owned:
    uid = meta.uid(parent)
    slot = kind, decorator, uid, meta.namespace(parent)
    return memo.update(
        owned_objects, slot, world.owned_by(uid, kind), selector, decorator, uid, meta.namespace(parent)
    )


def owned_objects(
    last: Owned | None,
    owned: Collection[Obj],
    selector: LabelSelector,
    decorator: str,
    uid: str,
    namespace: str,
) -> Owned:
    """
    Return which of the objects that name a parent as their owner are its children.

    With a `decorator`, those are children that it made; else those that the selector matches.
    """

    def entry(obj: Obj) -> tuple[int, bool] | None:
        is_own = controls(uid, obj) and (not namespace or meta.namespace(obj) == namespace)
        if decorator:
            is_own = is_own and meta.annotations(obj).get(DECORATED_BY) == decorator
        return None if is_own and selector.matches(meta.labels(obj)) else (id(obj), is_own)

    before = last.others if last is not None and last.selector is selector else None
    others = object_map(before, owned, entry)
    if last is not None and others is before:
        return last
    strange = others.entries
    if not strange:
        return Owned(tuple(owned), (), selector, others)
    return Owned(
        tuple(obj for obj in owned if id(obj) not in strange),
        tuple(obj for obj in owned if strange.get(id(obj))),
        selector,
        others,
    )
