"""
Server-side apply: who owns what, and who disagrees.

Every field of an object may have owners. Who applies states the fields it cares
about and owns exactly those; who writes in any other way owns what it changed.

    Applying a field nobody else owns, or with the value it has, makes the
    applier an owner, next to others.

    Applying a field somebody else owns with another value is a conflict.
    By force the applier becomes its only owner.

    Leaving out a field that was applied before takes it away, unless it has
    another owner.

    Updating a field makes the writer its only owner. Removing one takes it from
    everybody.

Objects are told apart from what the server keeps about them: apiVersion, kind,
and the names, numbers and times in metadata are nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from lamina.errors import BadRequest, Cause, Conflict
from lamina.merge import fieldset
from lamina.merge.check import listed, problems
from lamina.merge.compare import Comparison, added, compare, fields_of
from lamina.merge.fieldset import FieldSet, difference, intersection, union, without
from lamina.merge.managed import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entry,
    Identity,
    Manager,
    Owners,
    given_owners,
    means_reset,
    stored_owners,
)
from lamina.merge.node import UntypableError, node_of
from lamina.merge.overlay import overlay
from lamina.merge.prune import Claim, View, pruned, reconciled
from lamina.merge.schema import Schema
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj

Versions: TypeAlias = Callable[[str], tuple[Schema, Callable[[Obj], Obj]] | None]
"""Gives for an API version its schema and how to show an object in it; None for one that is not served."""

NOBODYS: Final = frozenset(
    {
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
        "resourceVersion",
    }
)  # fmt: skip
"""The fields of metadata that are nobody's."""

_ITSELF: Final = fieldset.of(["metadata"])


class Applied(NamedTuple):
    """
    What an apply makes of an object.

    `changed` is false when neither the object nor anybody's fields changed;
    `managed_fields` is then the list that was there. `obj` has no
    managedFields. Its top level and its metadata are new dicts; everything
    else may be shared with the live and the applied object.
    """

    obj: Made
    managed_fields: list[Made]
    changed: bool


def track_update(
    live: Obj | None,
    new: Obj,
    schema: Schema,
    *,
    manager: Manager,
    now: str,
    untracked: Iterable[Sequence[str]] = (),
    versions: Versions | None = None,
) -> list[Made]:
    """
    Return the managedFields of an object that was written in any way but apply.

    `live` is what it was before, None for a new object. `untracked` are paths
    that this write cannot change, whatever it says. What `new` says about
    managedFields counts, as long as it makes sense and the object itself was
    written: one empty entry starts again with nothing. An object without any
    entries stays without until somebody applies to it.
    """
    before = (live or {}).get("metadata") or {}
    owners = _owners(before.get("managedFields"), new, manager)
    if not owners and live is not None:
        return []
    session = _Session(schema, manager.api_version, _set_of(tuple(map(tuple, untracked))), versions)
    try:
        session.update(owners, live, new, manager.identity, now)
    except UntypableError:
        # Better nobody's than wrong: the next apply finds out again who owns what.
        return []
    owners.cap()
    entries = owners.as_json()
    stored: list[Made] | None = before.get("managedFields")
    return stored if stored is not None and entries == stored else entries


def apply(
    live: Obj | None,
    applied: Obj,
    schema: Schema,
    *,
    manager: Manager,
    force: bool,
    now: str,
    untracked: Iterable[Sequence[str]] = (),
    versions: Versions | None = None,
    kind: str = "",
) -> Applied:
    """
    Return what an object becomes when a manager states part of it, and who owns what then.

    `live` is None for an object that does not exist yet. Raises BadRequest
    for fields the schema does not have, and Conflict, with a cause for each
    field, where somebody else owns a field that would change.

    Nulls stay: a null that was stated is in the result. Defaults are the
    caller's business, and so is dropping nulls.
    """
    session = _Session(schema, manager.api_version, _set_of(tuple(map(tuple, untracked))), versions)
    found = problems(applied, session.node)
    if found:
        where = _where(applied, manager, kind)
        raise BadRequest(f"failed to create typed patch object ({where}): {listed(found)}")
    before: list[Made] | None = ((live or {}).get("metadata") or {}).get("managedFields")
    owners = stored_owners(before)
    try:
        if live is not None and not owners:
            first = Identity(BEFORE_FIRST_APPLY, UPDATE, manager.api_version, "")
            session.update(owners, None, live, first, now)
        obj = session.apply(owners, live or {}, applied, manager, force=force, now=now)
    except UntypableError as error:
        where = _where(applied, manager, kind)
        raise BadRequest(f"failed to create typed live object ({where}): {error}") from None
    entries = owners.as_json()
    if live is not None and obj is live and entries == before:
        return Applied(_own(live), before, changed=False)
    return Applied(_own(obj), entries, changed=True)
