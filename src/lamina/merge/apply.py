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

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from lamina.errors import BadRequest, Cause, Conflict, Unexplained
from lamina.merge import fieldset, last_applied
from lamina.merge.check import listed, problems
from lamina.merge.fieldset import FieldSet
from lamina.merge.managed import (
    BEFORE_FIRST_APPLY,
    UPDATE,
    Identity,
    Manager,
    Owners,
    given_owners,
    means_reset,
    stored_owners,
)
from lamina.merge.node import UntypableError
from lamina.merge.ownership import Disagreement, Ledger, Outcome, Versions
from lamina.merge.schema import Schema
from lamina.objects.types import Made, Obj

__all__ = ["Applied", "Manager", "Versions", "apply", "track_update"]


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
    entries stays without until somebody applies to it. Where `now` is empty,
    the writer's entry has no time, as the real server leaves it for scale.

    Without `versions`, entries written in another version stay as they are;
    with it, those in a version it does not know are dropped.
    """
    ledger = Ledger(schema, manager.api_version, _as_set(untracked), versions)
    if live is None and _metadata(new).get("managedFields") is None:
        try:
            return ledger.first(new, manager.identity, now).as_json()
        except UntypableError:
            return []
    stored = _stored(live)
    owners = _owners(stored, new, manager, built_in=bool(schema.name))
    if not owners and live is not None:
        return []
    try:
        owners = ledger.update(owners, live, new, manager.identity, now)
    except UntypableError:
        # Better nobody's than wrong: the next apply finds out again what there is to own.
        return []
    owners.cap()
    entries = owners.as_json()
    return stored if stored == entries else entries


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

    `live` is None for an object that does not exist yet. `kind` is for
    objects that do not say theirs. Raises Unexplained for fields the schema
    does not have, and Conflict, with a cause for each field, where somebody
    else owns a field that would change.

    A null that was stated is in the result. Dropping nulls and filling in
    defaults are the caller's business.
    """
    ledger = Ledger(schema, manager.api_version, _as_set(untracked), versions)
    if _metadata(applied).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    stored = _stored(live)
    try:
        obj, owners = _applied(ledger, stored, live, applied, manager, force, now)
    except UntypableError as error:
        where = _where(applied, manager, kind)
        found = problems(applied, ledger.node)
        if found:
            raise Unexplained(f"failed to create typed patch object ({where}): {listed(found)}") from None
        raise Unexplained(f"failed to create typed live object ({where}): {error}") from None
    if manager.name == last_applied.KUBECTL:
        obj = last_applied.renewed(obj, applied, manager.api_version, kind)
    entries = owners.as_json()
    if obj is live and entries == stored:
        return Applied(_own(obj), stored, changed=False)
    return Applied(_own(obj), entries, changed=True)


def _applied(
    ledger: Ledger,
    stored: list[Made],
    live: Obj | None,
    applied: Obj,
    manager: Manager,
    force: bool,
    now: str,
) -> Outcome:
    owners = stored_owners(stored)
    if live is not None and not owners:
        # Nobody kept track until now, so everything there is belongs to whoever came before.
        before = Manager(BEFORE_FIRST_APPLY, UPDATE, manager.api_version, manager.subresource)
        owners = ledger.update(owners, None, live, before.identity, now)
    try:
        return ledger.apply(owners, live, applied, manager.identity, force=force, now=now)
    except Disagreement as refused:
        conflicts = refused.fields
        if manager.name == last_applied.KUBECTL and live is not None:
            theirs = last_applied.fields_still_applied(live, ledger.node, ledger.version)
            conflicts = {
                who: left for who, clash in conflicts.items() if (left := fieldset.difference(clash, theirs))
            }
        if conflicts:
            raise _conflict(conflicts) from None
        return ledger.apply(owners, live, applied, manager.identity, force=True, now=now)


def _stored(live: Obj | None) -> list[Made]:
    entries: list[Made] | None = _metadata(live or {}).get("managedFields")
    return entries or []


def _metadata(obj: Obj) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _owners(stored: list[Made], new: Obj, manager: Manager, *, built_in: bool) -> Owners:
    """Return who owns what before a write, by the entries it brings along if it may, else by the stored ones."""
    given = _metadata(new).get("managedFields")
    if given is None or given is stored or given == stored or manager.subresource:
        return stored_owners(stored)
    if means_reset(given, built_in=built_in):
        return Owners()
    # Whoever does not understand managedFields should not lose them by accident.
    return given_owners(given) or stored_owners(stored)


@lru_cache(maxsize=256)
def _set_of(paths: tuple[tuple[str, ...], ...]) -> FieldSet:
    return fieldset.of(*paths)


def _as_set(paths: Iterable[Sequence[str]]) -> FieldSet:
    return _set_of(tuple(map(tuple, paths))) if paths else {}


def _own(obj: Mapping[str, Any]) -> Made:
    made = dict(obj)
    metadata = _metadata(made)
    made["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
    return made


def _where(applied: Obj, manager: Manager, kind: str) -> str:
    metadata = _metadata(applied)
    version = manager.api_version if "/" in manager.api_version else f"/{manager.api_version}"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {version}, Kind={applied.get('kind') or kind}"


def _conflict(conflicts: Mapping[Identity, FieldSet]) -> Conflict:
    by_manager = {
        who: [fieldset.show(path) for path in fieldset.paths(conflicts[who])]
        for who in sorted(conflicts, key=Identity.as_text)
    }
    causes = [
        Cause("FieldManagerConflict", f"conflict with {who}", path)
        for who, paths in by_manager.items()
        for path in paths
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = []
        for who, paths in by_manager.items():
            lines += [f"conflicts with {who}:", *(f"- {path}" for path in paths)]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Conflict(message, causes=causes)
