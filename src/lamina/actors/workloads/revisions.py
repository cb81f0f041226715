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

from lamina.core.model.plan import Action, Create, Delete, change, delete
from lamina.core.model.world import World
from lamina.core.rollout.history import history, next_collision, prune
from lamina.core.rollout.history import look_up as find
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.revision_object import (
    CONTROLLER_REVISION,
    create_revision,
    read_revision,
    revision_name,
    revision_ref,
)
from lamina.objects import meta
from lamina.objects.digest import canonical, safe
from lamina.objects.types import Made, Obj, Ref

REVISION = CONTROLLER_REVISION
HASH_LABEL = "controller-revision-hash"
"""The label on a pod that says which revision it was made of."""


class RevisionLookup(Struct, frozen=True, kw_only=True):
    """The name of the revision of a template, its collision count, and the object that has this name."""

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


def find_name(
    world: World, owner: Obj, collisions: int, hashed: Callable[[Obj, int], str] = go_hash
) -> RevisionLookup:
    """Return the name of the revision of an owner's template: the first that no other content has taken."""
    template: Obj = owner["spec"]["template"]
    held = snapshot(template)
    hashes: dict[int, str] = {}

    def at(count: int) -> Ref:
        if count not in hashes:
            hashes[count] = hashed(template, count)
        return revision_ref(meta.namespace(owner), revision_name(meta.name(owner), hashes[count]))

    def is_taken(count: int) -> bool:
        there = world.get(at(count))
        return there is not None and there.get("data") != held

    count = next_collision(is_taken, collisions)
    found = at(count)
    return RevisionLookup(name=found.name, hash=hashes[count], collisions=count, there=world.get(found))


def make(owner: Obj, lookup: RevisionLookup, hash_label: str, number: int) -> Create:
    """Return the creation of the revision of an owner's template."""
    template: Obj = owner["spec"]["template"]
    held = snapshot(template)
    return create_revision(
        Revision(number=number, name=lookup.name, snapshot=held, hash=lookup.hash),
        owner,
        meta.owner_ref(owner, controller=True, blocks=True),
        data=held,
        labels={**meta.labels(template), hash_label: lookup.hash},
        annotations=meta.annotations(owner),
    )


def look_up(owner: Obj, revisions: Iterable[Obj], lookup: RevisionLookup, hash_label: str) -> History:
    """Return an owner's history with the revision of its template as the newest: found, renumbered or new."""
    read = (read_revision(one, one.get("data") or {}, hash_label=hash_label) for one in revisions)
    past = history(read)
    held = snapshot(owner["spec"]["template"])
    found = find(past, Revision(number=0, name=lookup.name, snapshot=held), ties=True)
    known = tuple(one.obj for one in past.revisions if one.obj is not None)
    if found.stored is not None and found.stored.obj is not None:
        stored, number = found.stored.obj, found.wanted.number
        if not found.is_renumbered:
            return History(revisions=known, wanted=stored)
        record = (change(stored, {"revision": number}),)
        return History(revisions=known, wanted={**stored, "revision": number}, record=record)
    if lookup.there is not None:
        # It has the content, and another controller or none: it is used as it is.
        return History(revisions=known, wanted=lookup.there)
    new = make(owner, lookup, hash_label, found.wanted.number)
    return History(revisions=known, wanted=new.obj, record=(new,))


def too_old(past: History, limit: int, live: Collection[str]) -> list[Delete]:
    """Return the deletions of the oldest revisions beyond the limit, without the wanted one and those in `live`."""
    if limit < 0:
        return []
    read = history(read_revision(one, {}, hash_label=HASH_LABEL) for one in past.revisions)
    unused = prune(read, limit=limit, keep={*live, meta.name(past.wanted)})
    return [delete(one.obj) for one in unused if one.obj is not None]
