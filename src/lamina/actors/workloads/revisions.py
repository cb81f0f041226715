"""
The ControllerRevisions of stateful sets and daemon sets.

A revision holds one pod template, as the patch that puts it back. Revisions are
numbered as they come to be wanted: a template that is wanted again gets the
next number on the revision that holds it, and no second one is made. Its name
ends in a hash of what it holds; where that name is taken by something else, the
count of collisions goes into the hash and makes it another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

from lamina.core.plan import Action, Create, Delete, change, delete
from lamina.core.world import World
from lamina.objects import meta
from lamina.objects.digest import canonical, safe
from lamina.objects.types import GroupKind, Made, Obj, Ref

REVISION = GroupKind("apps", "ControllerRevision")
HASH_LABEL = "controller-revision-hash"
"""The label on a pod that says which revision it was made of."""

_API_VERSION = "apps/v1"
_LONGEST_PREFIX = 223


class Place(Struct, frozen=True, kw_only=True):
    """Where the revision of a template is found, or is to be made, and what stood in its way."""

    name: str
    hash: str
    collisions: int
    there: Obj | None = None


class History(Struct, frozen=True, kw_only=True):
    """What an owner remembers, oldest first, and which of it is wanted now."""

    revisions: tuple[Obj, ...]
    wanted: Obj
    record: tuple[Action, ...] = ()
    """What has to be written before anything is made of the wanted revision."""


def snapshot(template: Obj) -> Made:
    """Return what a revision holds: the patch that puts a template back in its place."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_in(revision: Obj) -> Made:
    """Return the template a revision holds."""
    held: Obj = revision["data"]["spec"]["template"]
    return {field: value for field, value in held.items() if field != "$patch"}


def number(revision: Obj) -> int:
    return revision.get("revision") or 0


def in_order(revisions: Iterable[Obj]) -> tuple[Obj, ...]:
    """Return revisions oldest first; those of one number by when they were made, then by name."""
    return tuple(
        sorted(
            revisions,
            key=lambda one: (number(one), meta.metadata(one).get("creationTimestamp") or "", meta.name(one)),
        )
    )


def go_hash(template: Obj, collisions: int) -> str:
    """Return the hash that Kubernetes' own controller history gives to a template."""
    # Go writes these three inside strings as escapes, and hashes what it writes.
    text = canonical(snapshot(template))
    for character in b"&<>":
        text = text.replace(bytes((character,)), f"\\u{character:04x}".encode())
    mark = 0x811C9DC5
    for byte in text + str(collisions).encode():
        mark = (mark * 0x01000193 & 0xFFFFFFFF) ^ byte
    return safe(str(mark))


def find_place(
    world: World, owner: Obj, collisions: int, hashed: Callable[[Obj, int], str] = go_hash
) -> Place:
    """Return where the revision of an owner's template belongs: the first name nothing else has taken."""
    template: Obj = owner["spec"]["template"]
    held = snapshot(template)
    while True:
        mark = hashed(template, collisions)
        name = f"{meta.name(owner)[:_LONGEST_PREFIX]}-{mark}"
        there = world.get(Ref(_API_VERSION, REVISION.kind, meta.namespace(owner), name))
        if there is None or there.get("data") == held:
            return Place(name=name, hash=mark, collisions=collisions, there=there)
        collisions += 1


def make(owner: Obj, place: Place, hash_label: str, revision: int) -> Made:
    """Return the revision that remembers an owner's template under a number."""
    template: Obj = owner["spec"]["template"]
    metadata: Made = {
        "name": place.name,
        "namespace": meta.namespace(owner),
        "labels": {**(meta.labels(template)), hash_label: place.hash},
        "ownerReferences": [meta.owner_ref(owner, controller=True, blocks=True)],
    }
    if meta.annotations(owner):
        metadata["annotations"] = dict(meta.annotations(owner))
    return {
        "apiVersion": _API_VERSION,
        "kind": REVISION.kind,
        "metadata": metadata,
        "data": snapshot(template),
        "revision": revision,
    }


def look_up(owner: Obj, revisions: Iterable[Obj], place: Place, hash_label: str) -> History:
    """
    Return an owner's history with the revision of its template as the newest.

    The last of several that hold the template is the one that counts. Where it
    is not the newest it is renumbered, and where none holds it one is made.
    """
    known = in_order(revisions)
    held = snapshot(owner["spec"]["template"])
    equal = [one for one in known if one.get("data") == held]
    following = number(known[-1]) + 1 if known else 1
    if equal and known[-1].get("data") == held:
        return History(revisions=known, wanted=known[-1])
    if equal:
        found = equal[-1]
        return History(
            revisions=known,
            wanted={**found, "revision": following},
            record=(change(found, {"revision": following}),),
        )
    if place.there is not None:
        # Somebody has made it who is not seen as ours; it says what we want to say.
        return History(revisions=known, wanted=place.there)
    new = make(owner, place, hash_label, following)
    return History(revisions=known, wanted=new, record=(Create(obj=new),))


def too_old(history: History, limit: int, live: Collection[str]) -> list[Delete]:
    """Return what to forget: the oldest revisions beyond the limit that nobody is on, wanted or named in `live`."""
    idle = [
        one
        for one in history.revisions
        if meta.name(one) not in live and meta.name(one) != meta.name(history.wanted)
    ]
    excess = len(idle) - limit if limit >= 0 else 0
    return [delete(one) for one in idle[: max(excess, 0)]]
