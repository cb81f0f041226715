"""
What a hook wants, made fit to be made.

A hook may leave a few things to us: the namespace, the label that a generated
selector goes by, the mark of a decorator. What it may not do is refused here,
before anything is touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from lamina.core.probe import Verdict
from lamina.core.questions import Rehearse
from lamina.errors import HookError, LaminaError
from lamina.families.metacontroller.apply import Statement
from lamina.families.metacontroller.herd import Seen
from lamina.families.metacontroller.hooks import Response
from lamina.families.metacontroller.names import COMPOSITE, CONTROLLER_UID, DECORATED_BY
from lamina.families.metacontroller.recall import Once
from lamina.families.metacontroller.setup import ChildRule
from lamina.families.metacontroller.view import View
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Made, Obj


class Key(NamedTuple):
    """Which child: its version does not matter, and neither does it to the server."""

    kind: GroupKind
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.kind.lower()} {where}"


class Notes:
    """What is known of a child that is wanted: by itself, and of the one that is there, for as long as it is the same."""

    __slots__ = (
        "became",
        "body",
        "desired",
        "equal",
        "futile",
        "rehearsal",
        "rests",
        "stated",
        "statement",
        "verdict",
    )

    def __init__(self) -> None:
        self.statement: Statement | None = None
        self.body: Made | None = None
        self.became: Once[Made] = Once()
        """What the one that is there would become."""
        self.desired: Once[bool] = Once()
        """Whether there is nothing to do about it."""
        self.equal: Once[bool] = Once()
        """Whether it is as it would be merged."""
        self.stated: Once[bool] = Once()
        """Whether the server has applied it so."""
        self.rests: Once[bool] = Once()
        """Whether there is nothing to be said about it, either."""
        self.futile: Once[bool] = Once()
        self.rehearsal: Once[Rehearse] = Once()
        self.verdict: Once[Verdict] = Once()


class Desired(Struct, frozen=True, kw_only=True):
    """One child as a hook wants it."""

    key: Key
    obj: Obj
    rule: ChildRule
    notes: Notes = field(default_factory=Notes)
    """What has been worked out about it and the child that is there."""


def key_of(obj: Obj) -> Key:
    ref = meta.ref(obj)
    return Key(GroupKind(ref.group, ref.kind), ref.namespace, ref.name)


def desired(view: View, response: Response) -> tuple[tuple[Desired, ...], tuple[LaminaError, ...]]:
    """
    Return the children to be made, in the order they were wanted, and what is wrong with the others.

    HookError where the whole answer cannot be followed: two children that are
    one, one that is out of reach, one whose labels would lose it again.
    """
    followed = view.recall.followed.find(response)
    if followed is not None:
        return followed, ()
    found: dict[Key, Desired] = {}
    wrong: list[LaminaError] = []
    for obj in response.children:
        known = view.recall.wanted.find(obj)
        if known is not None and known.key not in found:
            found[known.key] = known
            continue
        api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
        rule = view.setup.children.get(GroupKind(api_version.rpartition("/")[0], kind))
        if rule is None:
            wrong.append(_unlisted(view, obj))
            continue
        whole = _completed(view, obj, rule)
        key = key_of(whole)
        if key in found:
            raise HookError(f"the hook wants {key} twice for {meta.ref(view.parent)}")
        _check(view, whole, key)
        found[key] = view.recall.wanted.keep(Desired(key=key, obj=whole, rule=rule), obj)
    made = tuple(found.values())
    return made if wrong else view.recall.followed.keep(made, response), tuple(wrong)


def _unlisted(view: View, obj: Obj) -> LaminaError:
    api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
    where = "childResources" if view.setup.kind == COMPOSITE else "attachments"
    if view.world.kinds.find(api_version, kind) is None:
        return HookError(f"discovery: can't find kind {kind} in apiVersion {api_version}")
    return HookError(
        f"the hook wants {kind} {meta.name(obj)} for {meta.ref(view.parent)}, but {kind} in apiVersion "
        f"{api_version} is not listed in spec.{where}"
    )


def _completed(view: View, obj: Obj, rule: ChildRule) -> Obj:
    home = meta.namespace(view.parent)
    metadata = dict(meta.metadata(obj))
    if rule.kind.namespaced and not metadata.get("namespace") and home:
        metadata["namespace"] = home
    if view.setup.generates_selector:
        metadata["labels"] = {CONTROLLER_UID: meta.uid(view.parent), **(metadata.get("labels") or {})}
    if view.setup.kind != COMPOSITE:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), DECORATED_BY: view.setup.name}
    return {**obj, "metadata": metadata}


def _check(view: View, obj: Obj, key: Key) -> None:
    home, rule = meta.namespace(view.parent), view.setup.children[key.kind]
    parent = meta.ref(view.parent)
    if not rule.kind.namespaced:
        if home:
            raise HookError(
                f"{key} is cluster-scoped, and {parent} is in a namespace: it could not own it, and the "
                "garbage collector would delete it again"
            )
        if key.namespace:
            raise HookError(f"{key} is cluster-scoped, and the hook wants it in namespace {key.namespace}")
    elif not key.namespace:
        raise HookError(f"{key} has no namespace, and neither has {parent}: say which in metadata.namespace")
    elif home and key.namespace != home:
        raise HookError(f"{key} is in another namespace than {parent}, which could not own it")
    if view.setup.kind == COMPOSITE and not view.selector.matches(meta.labels(obj)):
        raise HookError(f"labels on desired child {key} don't match parent selector {view.selector}")


def observed(view: View) -> dict[Key, Obj]:
    """Return the children there are."""
    known: dict[Key, Obj] | None = view.notes.get("observed")
    if known is None:
        parts = [_observed(view, kind, those) for kind, those in view.children.items()]
        known = parts[0] if len(parts) == 1 else {key: obj for part in parts for key, obj in part.items()}
        view.notes["observed"] = known
    return known


def _observed(view: View, kind: Kind, children: tuple[Obj, ...]) -> dict[Key, Obj]:
    herd = view.recall.herd_of(kind.group_kind, children)
    return herd.each("there", _keyed) if herd is not None else {key_of(obj): obj for obj in children}


def _keyed(obj: Obj, seen: Seen) -> tuple[Key, Obj]:
    if seen.key is None:
        seen.key = key_of(obj)
    return seen.key, obj


def in_kind_order(keys: Iterable[Key]) -> list[Key]:
    return sorted(keys, key=lambda key: (key.kind, key.namespace, key.name))
