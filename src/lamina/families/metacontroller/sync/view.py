"""The view of one parent: everything that its plan is decided from, besides the answers to its queries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from lamina.core.model.memo import Memo
from lamina.core.ownership.controller_ref import Claim
from lamina.errors import BadRequest, SpecError
from lamina.families.metacontroller.compile import ParentRule, Setup
from lamina.families.metacontroller.labels import API_GROUP, CONTROLLER_UID, RESOURCE
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement, from_object
from lamina.objects.types import Made, Obj, OwnerRef, Ref

_LONGEST_LABEL = 63


class Parent(Struct, frozen=True, kw_only=True):
    """What of a parent its children depend on, besides its spec: the same from pass to pass."""

    setup: Setup
    ref: Ref
    owner: OwnerRef
    selector: LabelSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    One parent, its children, and what is to be adopted or released.

    `children` has every kind there is a rule for, empty where there is none.
    """

    setup: Setup
    parent: Obj
    rule: ParentRule
    children: Mapping[Kind, tuple[Obj, ...]]
    kinds: Kinds
    """What the cluster serves."""
    controller: Obj | None = None
    """The CompositeController or DecoratorController itself, with its current status."""
    selector: LabelSelector = EVERYTHING
    revisions: tuple[Obj, ...] = ()
    claim: Claim
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)

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
    def is_released(self) -> bool:
        """Say whether our finalizer has to be removed: there is no finalize hook any more."""
        return self.setup.finalize is None and self.has_finalizer

    @property
    def is_finalizing(self) -> bool:
        """Say whether the finalize hook is called instead of the sync hook."""
        return self.setup.finalize is not None and (self.is_deleting or not self.is_wanted)

    @property
    def about(self) -> str:
        """Return what a hook is called about: this parent, for this generation of the controller."""
        controller = self.setup.obj
        return f"{meta.uid(controller)}/{meta.generation(controller)}/{meta.uid(self.parent)}"

    @property
    def identity(self) -> Parent:
        """Return what of the parent its children depend on; the same value in every pass."""
        return self.memo.once(_identity, self)


def _identity(view: View) -> Parent:
    metadata = view.parent["metadata"]
    return view.memo.call(
        _parent,
        view.setup,
        view.parent["apiVersion"],
        view.parent["kind"],
        metadata.get("namespace") or "",
        metadata["name"],
        metadata["uid"],
        view.selector,
    )


def _parent(
    setup: Setup, api_version: str, kind: str, namespace: str, name: str, uid: str, selector: LabelSelector
) -> Parent:
    owner = OwnerRef(
        apiVersion=api_version, kind=kind, name=name, uid=uid, controller=True, blockOwnerDeletion=True
    )
    return Parent(setup=setup, ref=Ref(api_version, kind, namespace, name), owner=owner, selector=selector)


def revision_labels(kind: Kind) -> Made:
    """Return the labels that the revisions of a kind of parent have."""
    return {API_GROUP: _label_value(kind.group), RESOURCE: _label_value(kind.plural)}


def _label_value(name: str) -> str:
    """Return a name as a label value; one that is too long is cut, and made unique by its hash."""
    if len(name) <= _LONGEST_LABEL:
        return name
    return (
        f"{name[: _LONGEST_LABEL - 11]}-{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:10]}"
    )


def selector_of(setup: Setup, parent: Obj) -> LabelSelector:
    """Return the selector of a composite parent's children; SpecError where it has none that can be used."""
    if setup.generates_selector:
        return generated_selector(meta.uid(parent))
    return read_selector((parent.get("spec") or {}).get("selector"), str(meta.ref(parent)))


def generated_selector(uid: str) -> LabelSelector:
    return LabelSelector((Requirement(CONTROLLER_UID, "=", (uid,)),))


def read_selector(written: object, parent: str) -> LabelSelector:
    """Return a parent's `spec.selector`, as it is written there."""
    where = f"{parent}: spec.selector"
    if not isinstance(written, dict) or not written:
        raise SpecError(
            f"{where}: expected a label selector that is not empty",
            hint="set it to the labels of its children, or set generateSelector on the controller",
        )
    try:
        selector = from_object(written)
    except (BadRequest, AttributeError, TypeError) as wrong:
        raise SpecError(f"{where}: {wrong}") from None
    if selector.is_everything:
        raise SpecError(f"{where}: expected a label selector that is not empty")
    return selector
