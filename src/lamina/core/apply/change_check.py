"""
Says whether a server-side apply or a replace would change an object, before it is sent.

A server defaults, converts and drops fields, so desired and live content differ
where nothing has to be written. Three checks decide that, the cheapest first:

    managed fields   the field manager has applied exactly this, and it is unchanged: no write
    the content      a replacement is equal to the live object: no write
    a dry run        the server returns what the object would become; it is asked once for each
                     state of the object, and its status is no part of that state
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from lamina.core.model.queries import Answers, DryRun, Found, Refused
from lamina.merge.is_applied import is_applied
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj

SYSTEM_METADATA = (
    "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields",
)  # fmt: skip
"""The fields of metadata that only the server writes."""

_VERSIONED = ("resourceVersion", "generation", "managedFields")
_DESIRED_METADATA = ("labels", "annotations", "finalizers")
_NOT_CONTENT = ("apiVersion", "kind", "metadata", "status")


class Effect(StrEnum):
    """What a write would do to a live object."""

    NONE = "none"
    CHANGE = "change"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The dry run has not been answered yet."""


class Check(Struct, frozen=True):
    """What a write would do, with the dry run that shows it, or what the server refuses about it."""

    effect: Effect
    query: DryRun | None = None
    code: int = 0
    because: str = ""


NO_EFFECT = Check(Effect.NONE)
CHANGES = Check(Effect.CHANGE)


# Server-side apply


def apply_query(live: Obj, body: Made, manager: str, *, force: bool = True) -> DryRun | None:
    """Return the dry run of a server-side apply; None where managed fields show that it changes nothing."""
    if is_applied(live, body, manager):
        return None
    key = digest(["apply", body, manager, without_status(live), field_managers(live)])
    return DryRun(obj=body, manager=manager, key=key, force=force)


def check_apply(query: DryRun | None, live: Obj, answers: Answers, *, ownership: bool = True) -> Check:
    """Return what a server-side apply would do; with `ownership`, to own fields counts as a change."""

    def is_unchanged(became: Obj) -> bool:
        return is_same(without_status(became), without_status(live)) and (
            not ownership or is_same(field_managers(became), field_managers(live))
        )

    return _check(query, answers, is_unchanged) if query is not None else NO_EFFECT


# Replacement


def check_replace(live: Obj, replacement: Made, manager: str, answers: Answers) -> Check:
    """Return what a replacement would do; owner references are written as they are, so they need no dry run."""
    if is_same(_content(replacement), _content(live)):
        parts = (*_DESIRED_METADATA, "ownerReferences")
        return NO_EFFECT if _is_same_metadata(replacement, live, parts) else CHANGES
    # Owner references are left out of the key, so that a thousand owners of one object share one dry run.
    key = digest(["replace", _without_owners(replacement), _without_owners(live)])
    query = DryRun(obj=replacement, manager=manager, key=key, replaces=True)

    def is_unchanged(became: Obj) -> bool:
        return (
            _is_same_metadata(became, live, _DESIRED_METADATA)
            and is_same(_content(became), _content(live))
            and list(meta.owner_refs(replacement)) == list(meta.owner_refs(live))
        )

    return _check(query, answers, is_unchanged)


def _check(query: DryRun, answers: Answers, is_unchanged: Callable[[Obj], bool]) -> Check:
    match answers.get(query):
        case None:
            return Check(Effect.UNKNOWN, query)
        case Found(obj=became) if is_unchanged(became):
            return NO_EFFECT
        case Refused(code=code, because=because):
            return Check(Effect.REFUSED, query, code, because)
        case _:
            return CHANGES


# What of an object counts


def without_status(obj: Obj) -> Made:
    """Return what a write is about: not the status, nor what changes with every write."""
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in _VERSIONED}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def field_managers(obj: Obj) -> list[Made]:
    """Return which manager owns which fields, whenever it wrote them, subresources left out."""
    return [{key: value for key, value in entry.items() if key != "time"} for entry in _managers(obj)]


def is_written_only_by(obj: Obj, manager: str) -> bool:
    """Say whether one manager has written an object, and no other has, subresources left out."""
    has_managers = bool(meta.metadata(obj).get("managedFields"))
    return has_managers and all(entry.get("manager") == manager for entry in _managers(obj))


def _managers(obj: Obj) -> Iterable[Obj]:
    return (one for one in meta.metadata(obj).get("managedFields") or () if not one.get("subresource"))


def _content(obj: Obj) -> Made:
    return {key: value for key, value in obj.items() if key not in _NOT_CONTENT}


def _is_same_metadata(one: Obj, other: Obj, parts: Sequence[str]) -> bool:
    first, second = meta.metadata(one), meta.metadata(other)
    return all(is_same(first.get(key) or None, second.get(key) or None) for key in parts)


def _without_owners(obj: Obj) -> Made:
    still = without_status(obj)
    metadata = {key: value for key, value in still["metadata"].items() if key != "ownerReferences"}
    return {**still, "metadata": metadata}
