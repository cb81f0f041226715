"""
The children that a hook desires, completed, validated and indexed, and the children that exist.

A hook may leave out the namespace, the label of a generated selector and the
annotation of a decorator. What it may not desire is refused before anything is
written. A response that desires the same children has the same index, in however
many passes it is looked at.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import compress, repeat
from operator import is_
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from lamina.core.model.memo import Memo
from lamina.core.model.object_map import ObjectMap, object_map
from lamina.errors import HookError, LaminaError
from lamina.families.metacontroller.compile import ChildRule
from lamina.families.metacontroller.hooks.protocol import Response
from lamina.families.metacontroller.labels import CONTROLLER_UID, DECORATED_BY
from lamina.families.metacontroller.sync.view import Parent, View
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj

Name: TypeAlias = tuple[GroupKind, str]
"""How a revision names a child that it claims."""


class Key(NamedTuple):
    """Identifies a child, in whatever version of its kind."""

    kind: GroupKind
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.kind.lower()} {where}"


class Desired(Struct, frozen=True, kw_only=True):
    """One child as a hook desires it."""

    key: Key
    obj: Obj
    rule: ChildRule


class DesiredChildren(Struct, frozen=True, kw_only=True):
    """The children of a parent as they are to be written."""

    latest: tuple[Desired, ...]
    """As the latest revision desires them."""
    children: tuple[Desired, ...]
    """The same children, in the same order, each as the revision that claims it desires it."""
    waiting: frozenset[Key] = frozenset()
    """Those that are left as they are until a rollout comes to them."""
    follows_claims: bool = False
    """Whether claims are written just before, without which no child may be touched."""


def key_of(obj: Obj) -> Key:
    ref = meta.ref(obj)
    return Key(GroupKind(ref.group, ref.kind), ref.namespace, ref.name)


def desired(view: View, response: Response) -> tuple[tuple[Desired, ...], tuple[LaminaError, ...]]:
    """
    Return the desired children, in the order of the response, and why others are refused.

    HookError where the whole response is refused: one child twice, one that is
    out of reach, one whose labels the selector does not match.
    """
    children, unlisted = view.memo.call_nested(_desired, view.identity, response.children)
    return children, tuple(_unlisted(view, obj) for obj in unlisted)


def _desired(
    memo: Memo, parent: Parent, children: tuple[Obj, ...]
) -> tuple[tuple[Desired, ...], tuple[Obj, ...]]:
    found: dict[Key, Desired] = {}
    unlisted: list[Obj] = []
    for obj in children:
        child = memo.call(_child, parent, obj)
        if child is None:
            unlisted.append(obj)
        elif child.key in found:
            raise HookError(f"the hook's response has {child.key} twice for {parent.ref}")
        else:
            found[child.key] = child
    return tuple(found.values()), tuple(unlisted)


def _child(parent: Parent, obj: Obj) -> Desired | None:
    """Return one desired child, or None if there is no rule for its kind."""
    kind = GroupKind(str(obj["apiVersion"]).rpartition("/")[0], str(obj["kind"]))
    rule = parent.setup.children.get(kind)
    if rule is None:
        return None
    whole = _completed(parent, obj, rule)
    key = key_of(whole)
    _check(parent, whole, key, rule)
    return Desired(key=key, obj=whole, rule=rule)


def _unlisted(view: View, obj: Obj) -> LaminaError:
    api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
    where = "childResources" if view.setup.is_composite else "attachments"
    if view.kinds.find(api_version, kind) is None:
        return HookError(f"discovery: can't find kind {kind} in apiVersion {api_version}")
    return HookError(
        f"the hook's response has {kind} {meta.name(obj)} for {meta.ref(view.parent)}, but {kind} in apiVersion "
        f"{api_version} is not listed in spec.{where}"
    )


def _completed(parent: Parent, obj: Obj, rule: ChildRule) -> Obj:
    setup = parent.setup
    metadata = dict(meta.metadata(obj))
    if rule.kind.namespaced and not metadata.get("namespace") and parent.ref.namespace:
        metadata["namespace"] = parent.ref.namespace
    if setup.generates_selector:
        metadata["labels"] = {CONTROLLER_UID: parent.owner["uid"], **(metadata.get("labels") or {})}
    if not setup.is_composite:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), DECORATED_BY: setup.name}
    return {**obj, "metadata": metadata}


def _check(parent: Parent, obj: Obj, key: Key, rule: ChildRule) -> None:
    home = parent.ref.namespace
    if not rule.kind.namespaced:
        if home:
            raise HookError(
                f"{key} is cluster-scoped, and {parent.ref} is in a namespace: it could not own it, and the "
                "garbage collector would delete it again"
            )
        if key.namespace:
            raise HookError(
                f"{key} is cluster-scoped, and the hook's response has it in namespace {key.namespace}"
            )
    elif not key.namespace:
        raise HookError(f"{key} has no namespace, and neither has {parent.ref}: set metadata.namespace")
    elif home and key.namespace != home:
        raise HookError(f"{key} is in another namespace than {parent.ref}, which could not own it")
    if parent.setup.is_composite and not parent.selector.matches(meta.labels(obj)):
        raise HookError(f"labels on desired child {key} don't match parent selector {parent.selector}")


def observed(view: View) -> dict[Key, Obj]:
    """Return the children that exist."""
    return view.memo.once(_observed_of, view)


def _observed_of(view: View) -> dict[Key, Obj]:
    return view.memo.call_nested(_observed, *view.children.values())


def _observed(memo: Memo, *children: tuple[Obj, ...]) -> dict[Key, Obj]:
    parts = [memo.update(_by_key, place, those).entries for place, those in enumerate(children)]
    return parts[0] if len(parts) == 1 else {key: obj for part in parts for key, obj in part.items()}


def _by_key(last: ObjectMap[Key, Obj] | None, children: tuple[Obj, ...]) -> ObjectMap[Key, Obj]:
    return object_map(last, children, lambda obj: (key_of(obj), obj))


# The index


class DesiredIndex:
    """All children of one response."""

    __slots__ = ("by_key", "by_label", "by_name", "children", "keys", "names", "rolling")

    def __init__(self, children: tuple[Desired, ...], keys: tuple[Key, ...]) -> None:
        self.children, self.keys = children, keys
        self.by_key: dict[Key, Desired] = dict(zip(keys, children, strict=True))
        self.names: tuple[Name | None, ...] = tuple(
            (child.key.kind, child.key.name) if child.rule.rolling else None for child in children
        )
        """The name of each of them; None for those that are not rolled out."""
        self.by_name: dict[Name, Desired] = {
            name: child for name, child in zip(self.names, children, strict=True) if name is not None
        }
        positions = {name: position for position, name in enumerate(self.names) if name is not None}
        self.rolling = tuple(
            (positions[name], name, f"{name[0].kind} {name[1]}", child)
            for name, child in self.by_name.items()
        )
        """Those that are rolled out: position, name, label in messages, and what is desired."""
        self.by_label: dict[str, Name] = {words: name for _, name, words, _ in self.rolling}

    def in_order_of(self, other: DesiredIndex) -> tuple[Desired, ...]:
        """Return the children of another response, each as this one desires it if it desires it at all."""
        if self.keys is other.keys:
            return self.children
        return tuple(self.by_key.get(child.key, child) for child in other.children)


def desired_index(view: View, children: tuple[Desired, ...]) -> DesiredIndex:
    """Return the index of the children of one response."""
    return view.memo.call_nested(_index, children)


def _index(memo: Memo, children: tuple[Desired, ...]) -> DesiredIndex:
    # The same tuple of keys for two responses that desire the same children, each in its own way.
    return DesiredIndex(children, memo.unique(tuple(child.key for child in children)))


def existing(view: View, index: DesiredIndex) -> tuple[Obj | None, ...]:
    """Return the desired children that exist, in the order of the index; None for those that do not."""
    return view.memo.call(_existing, observed(view), index.keys)


def _existing(there: dict[Key, Obj], keys: tuple[Key, ...]) -> tuple[Obj | None, ...]:
    return tuple(map(there.get, keys))


def missing(view: View, index: DesiredIndex) -> tuple[Desired, ...]:
    """Return the desired children that do not exist."""
    return view.memo.call(_missing, existing(view, index), index.children)


def _missing(found: tuple[Obj | None, ...], children: tuple[Desired, ...]) -> tuple[Desired, ...]:
    return tuple(compress(children, map(is_, found, repeat(None))))


def undesired(view: View, index: DesiredIndex) -> Set[Key]:
    """Return the keys of the children that exist and are not desired."""
    there = observed(view)
    expected = len(index.keys) - len(missing(view, index))
    return there.keys() - index.by_key.keys() if len(there) > expected else set()
