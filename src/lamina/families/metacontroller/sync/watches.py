"""The watches of one controller, and the parents that a change enqueues: itself, its controller, or those that may adopt it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial

from lamina.core.apply.change_check import without_status
from lamina.core.model.controller import Enqueue, Watch, no_keys, only
from lamina.core.model.world import Change, World, everything
from lamina.core.ownership.controller_ref import owner_among
from lamina.core.ownership.selector_index import by_spec_selector, by_uid, selecting
from lamina.errors import SpecError
from lamina.families.metacontroller.compile import ChildRule, ParentRule, Setup
from lamina.families.metacontroller.labels import CONTROLLER_UID, REVISION
from lamina.families.metacontroller.sync.revisions import read_revision
from lamina.families.metacontroller.sync.view import selector_of
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Obj, OwnerRef, Ref


def watches(setup: Setup) -> tuple[Watch, ...]:
    """Return the watches on parents, children and revisions, and on the controller itself."""
    child = partial(child_changed, setup)
    revisions = Watch(selects=only(*REVISION), enqueue=child, keep=everything, derive=read_revision)
    return (
        *rule_watches(setup.parents, partial(parent_changed, setup)),
        *rule_watches(setup.children, child),
        *((revisions,) if setup.rolls else ()),
        # Its own status is compared before it is written.
        Watch(selects=only(*setup.kind), enqueue=no_keys, keep=everything),
    )


def rule_watches(
    rules: Mapping[GroupKind, ParentRule] | Mapping[GroupKind, ChildRule],
    enqueue: Enqueue,
    delay: timedelta = timedelta(0),
) -> Iterator[Watch]:
    """Yield a watch on the kind of each rule."""
    for kind, rule in rules.items():
        version = rule.kind.api_version
        yield Watch(selects=only(*kind), api_version=version, enqueue=enqueue, keep=everything, delay=delay)


def parent_changed(setup: Setup, world: World, change: Change) -> Iterable[Ref]:
    """Enqueue a parent that changed, unless only its status did and that is ignored."""
    rule = setup.parents.get(change.kind.group_kind)
    if rule is None:
        return ()
    shown = change.versions
    if not any(rule.wants(obj) or setup.finalizer in meta.finalizers(obj) for obj in shown):
        return ()
    if rule.ignores_status and len(shown) == 2 and _only_status(*shown):
        return ()
    return (change.ref,)


def _only_status(before: Obj, after: Obj) -> bool:
    return not meta.is_deleting(after) and is_same(without_status(before), without_status(after))


def child_changed(setup: Setup, world: World, change: Change) -> Iterable[Ref]:
    """Enqueue the parent that controls a child that changed, and for an orphan the parents that may adopt it."""
    keys: dict[Ref, None] = {}
    kinds = {kind: rule.kind for kind, rule in setup.parents.items()}
    known: OwnerRef | None = None
    for obj in change.versions:
        owner = meta.controller_of(obj)
        if owner is not None:
            if owner == known:
                continue
            known = owner
            parent = owner_among(world, obj, kinds)
            if parent is not None:
                keys[meta.ref(parent)] = None
        elif setup.is_composite and obj is change.after:
            keys |= dict.fromkeys(_adopters(setup, world, obj))
    return keys


def _adopters(setup: Setup, world: World, orphan: Obj) -> Iterator[Ref]:
    """Yield the parents whose selector matches an orphan."""
    labels = meta.labels(orphan)

    def selector(parent: Obj) -> LabelSelector | None:
        try:
            return selector_of(setup, parent)
        except SpecError:
            # It is reported on the parent itself.
            return None

    for rule in setup.parents.values():
        kind = rule.kind.group_kind
        if setup.generates_selector:
            parents = iter(world.by_index(kind, by_uid, labels.get(CONTROLLER_UID, "")))
        else:
            namespace = meta.namespace(orphan) if rule.kind.namespaced else ""
            parents = selecting(world, kind, by_spec_selector, selector, namespace, labels)
        for parent in parents:
            if rule.wants(parent):
                yield meta.ref(parent)
