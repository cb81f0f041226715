"""
The next step of one child: create it, apply it, leave it, or wait.

    it does not exist              it is created, once a live read confirms that
    it is being deleted            it is waited for
    another ApplySet has it        it is left to that one, and the node fails
    no ApplySet has it             it is adopted
    it is as desired               no write
    its metadata differ            it is applied
    anything else                  a dry run shows whether an apply would change it

An apply names the version that it was decided on. What a dry run refuses is applied all the
same: the write reports what the server says now, and is retried.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.apply.change_check import Effect, apply_query, check_apply
from lamina.core.model.plan import Action, Apply
from lamina.core.model.queries import Absent, Answers, Follow, Listed, Query, Read
from lamina.families.resourcegraph.instances.children import Desired, Owner, input_stamp
from lamina.families.resourcegraph.labels import APPLYSET, OWNED, PART_OF
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj


class ChildRelation(StrEnum):
    """How a live child relates to what is desired of it."""

    SAME = "same"
    WRITE = "write"
    WAIT = "wait"
    DELETING = "deleting"
    CONFLICT = "conflict"
    HELD = "held"
    """It would be written, and is not allowed to be."""


class ChildStep(Struct, frozen=True, kw_only=True):
    """One child, what is done about it next, and what has to be asked first."""

    desired: Desired
    live: Obj | None
    """The object as it is cached; None where it does not exist or is of another ApplySet."""
    relation: ChildRelation
    because: str = ""
    action: Action | None = None
    queries: tuple[Query, ...] = ()

    @property
    def is_same(self) -> bool:
        return self.relation is ChildRelation.SAME

    @property
    def is_unseen(self) -> bool:
        """Say whether the object exists, and the cache does not have it yet."""
        return self.relation is ChildRelation.WAIT and self.live is None and not self.queries

    @property
    def stamp(self) -> int:
        """Return the input revision that the live child was made from; 0 where it does not exist."""
        return input_stamp(self.live, self.desired.owner) if self.live is not None else 0


def child_step(by: Owner, kind: Kind, wanted: Desired, found: Obj | None, answers: Answers) -> ChildStep:
    """Return the next step of a child, given the cached object of its name."""
    if found is None:
        return _create(wanted, answers)
    holder = meta.labels(found).get(PART_OF)
    if holder and holder != by.id:
        return _conflict(by, kind, wanted, answers)
    if meta.is_deleting(found):
        shown = meta.ref(found)
        because = f'resource "{shown}" for node "{wanted.node}" is currently being deleted{_held(found)}'
        return ChildStep(desired=wanted, live=found, relation=ChildRelation.DELETING, because=because)
    return _keep(wanted, found, answers)


def _create(wanted: Desired, answers: Answers) -> ChildStep:
    """
    Create a child, once a live read confirms that it does not exist.

    An apply would take over an object that the cache does not have yet.
    """
    read, because = Read(wanted.ref), f"{wanted.ref} does not exist"
    made = ChildStep(desired=wanted, live=None, relation=ChildRelation.WRITE, because=because)
    if read not in answers:
        return replace(made, queries=(read,))
    if isinstance(answers.get(read), Absent):
        return replace(made, action=Apply(obj=wanted.body, force=True, manager=APPLYSET))
    return replace(made, relation=ChildRelation.WAIT, because=f"waiting for the cache to have {wanted.ref}")


def _conflict(by: Owner, kind: Kind, wanted: Desired, answers: Answers) -> ChildStep:
    """Leave an object to its ApplySet, and follow it: once it is free, it is adopted, and once it is gone, created."""
    ref = wanted.ref
    follow = Follow(kind=kind, names=(ref.name,), namespaces=(ref.namespace,) if kind.namespaced else None)
    made = ChildStep(desired=wanted, live=None, relation=ChildRelation.CONFLICT)
    answer = answers.get(follow)
    if not isinstance(answer, Listed):
        return replace(made, queries=(follow,))
    holder = next((meta.labels(one).get(PART_OF, "") for one in answer.objects), "")
    if holder in ("", by.id):
        return child_step(by, kind, wanted, next(iter(answer.objects), None), answers)
    where = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    because = (
        f"resource belongs to a different ApplySet: {where} ({ref.api_version}, Kind={ref.kind}) "
        f'belongs to ApplySet "{holder}", cannot reassign to "{by.id}"'
    )
    return replace(made, because=because)


def _keep(wanted: Desired, live: Obj, answers: Answers) -> ChildStep:
    same = ChildStep(desired=wanted, live=live, relation=ChildRelation.SAME)
    if live["apiVersion"] != wanted.body["apiVersion"]:
        # The cache has the version of another revision: metadata decide, since content cannot be compared.
        return same if _has_metadata(live, wanted.body) else _apply(wanted, live)
    query = apply_query(live, wanted.body, APPLYSET)
    if query is None:
        return same
    if not _has_metadata(live, wanted.body):
        return _apply(wanted, live)
    check = check_apply(query, live, answers)
    match check.effect:
        case Effect.NONE:
            return same
        case Effect.UNKNOWN:
            return replace(same, relation=ChildRelation.WAIT, queries=(query,))
        case _:
            return _apply(wanted, live)


def _has_metadata(live: Obj, body: Obj) -> bool:
    """Say whether an object has the labels and annotations that are desired; if not, an apply changes it."""
    return (
        meta.labels(body).items() <= meta.labels(live).items()
        and meta.annotations(body).items() <= meta.annotations(live).items()
    )


def _apply(wanted: Desired, live: Obj) -> ChildStep:
    body = meta.with_metadata(wanted.body, uid=meta.uid(live), resourceVersion=meta.resource_version(live))
    return ChildStep(
        desired=wanted,
        live=live if OWNED in meta.labels(live) else None,
        relation=ChildRelation.WRITE,
        because=f"{wanted.ref} is not at its input revision, or was changed",
        action=Apply(obj=body, force=True, manager=APPLYSET),
    )


def _held(live: Obj) -> str:
    finalizers = ", ".join(meta.finalizers(live))
    return f" and waits for finalizers: {finalizers}" if finalizers else ""
