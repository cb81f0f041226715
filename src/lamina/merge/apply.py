"""
Server-side apply: field ownership and conflicts.

Every field of an object may have owners, its field managers. An applier owns
exactly the fields of the configuration it applies; an updater owns the fields
it changed.

    Applying a field without another owner, or with its current value, makes
    the applier an owner, next to others.

    Applying another value to a field that another manager owns is a conflict.
    With force, the applier becomes its only owner.

    Leaving out a field that was applied before removes it, unless it has
    another owner.

    Updating a field makes the writer its only owner. Removing a field removes
    it from every manager's set.

apiVersion, kind, and the identity, versions and times in metadata have no
owners.

`field_ownership` compares the objects before and after a write, and from that
computes the fields of each manager; here managedFields are read and written, and
conflicts are worded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from lamina.errors import BadRequest, Cause, Conflict, Unclassified
from lamina.merge import fieldset, last_applied
from lamina.merge.field_ownership import ApplyResult, Conflicts, Updater, Versions
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
from lamina.merge.schema import Schema
from lamina.merge.schema_node import UntypableError
from lamina.merge.typed_check import listed, problems
from lamina.objects.types import Made, Obj

__all__ = ["Applied", "Manager", "Versions", "apply", "track_update"]


class Applied(NamedTuple):
    """
    The result of an apply.

    `changed` is false when neither the object nor the ownership changed;
    `managed_fields` is then the list that was stored. `obj` has no
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
    reset_fields: Iterable[Sequence[str]] = (),
    versions: Versions | None = None,
) -> list[Made]:
    """
    Return the managedFields of an object after a create or an update.

    `live` is the object before, None for a new one. `reset_fields` are paths
    that this write cannot change. The managedFields in `new` replace the
    stored ones if they are valid and the write is not to a subresource; one
    empty entry clears them. An object without entries stays without until the
    first apply. Where `now` is empty, the writer's entry has no time, as
    kube-apiserver leaves it for scale.

    Without `versions`, entries written in another version stay as they are;
    with it, those in an unknown version are dropped.
    """
    updater = Updater(schema, manager.api_version, _as_set(reset_fields), versions)
    if live is None and _metadata(new).get("managedFields") is None:
        try:
            return updater.first(new, manager.identity, now).as_json()
        except UntypableError:
            return []
    stored = _stored(live)
    owners = _owners(stored, new, manager, built_in=bool(schema.name))
    if not owners and live is not None:
        return []
    try:
        owners = updater.update(owners, live, new, manager.identity, now)
    except UntypableError:
        # No ownership is safer than wrong ownership: the next apply computes it anew.
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
    reset_fields: Iterable[Sequence[str]] = (),
    versions: Versions | None = None,
    kind: str = "",
) -> Applied:
    """
    Return an object after a manager applied a configuration to it, with its new managedFields.

    `live` is None for an object that does not exist yet. `kind` is for an
    applied object without one. Raises Unclassified for fields that are not in
    the schema, and Conflict, with a cause for each field, where another
    manager owns a field that would change.

    An applied null is in the result. Dropping nulls and defaulting are left
    to the caller.
    """
    updater = Updater(schema, manager.api_version, _as_set(reset_fields), versions)
    if _metadata(applied).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    stored = _stored(live)
    try:
        obj, owners = _applied(updater, stored, live, applied, manager, force, now)
    except UntypableError as error:
        object_text = _object_text(applied, manager, kind)
        found = problems(applied, updater.node)
        if found:
            raise Unclassified(
                f"failed to create typed patch object ({object_text}): {listed(found)}"
            ) from None
        raise Unclassified(f"failed to create typed live object ({object_text}): {error}") from None
    if manager.name == last_applied.KUBECTL:
        obj = last_applied.with_annotation_updated(obj, applied, manager.api_version, kind)
    entries = owners.as_json()
    if obj is live and entries == stored:
        return Applied(_with_own_metadata(obj), stored, changed=False)
    return Applied(_with_own_metadata(obj), entries, changed=True)


def _applied(
    updater: Updater,
    stored: list[Made],
    live: Obj | None,
    applied: Obj,
    manager: Manager,
    force: bool,
    now: str,
) -> ApplyResult:
    owners = stored_owners(stored)
    if live is not None and not owners:
        # There was no tracking until now, so one entry owns every field there is.
        before = Manager(BEFORE_FIRST_APPLY, UPDATE, manager.api_version, manager.subresource)
        owners = updater.update(owners, None, live, before.identity, now)
    try:
        return updater.apply(owners, live, applied, manager.identity, force=force, now=now)
    except Conflicts as refused:
        conflicts = refused.fields
        if manager.name == last_applied.KUBECTL and live is not None:
            theirs = last_applied.fields_still_applied(live, updater.node, updater.version)
            conflicts = {
                owner: left
                for owner, clash in conflicts.items()
                if (left := fieldset.difference(clash, theirs))
            }
        if conflicts:
            raise _conflict(conflicts) from None
        return updater.apply(owners, live, applied, manager.identity, force=True, now=now)


def _stored(live: Obj | None) -> list[Made]:
    entries: list[Made] | None = _metadata(live or {}).get("managedFields")
    return entries or []


def _metadata(obj: Obj) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _owners(stored: list[Made], new: Obj, manager: Manager, *, built_in: bool) -> Owners:
    """Return the owners before a write: of the entries in the new object if they may replace the stored ones."""
    given = _metadata(new).get("managedFields")
    if given is None or given is stored or given == stored or manager.subresource:
        return stored_owners(stored)
    if means_reset(given, built_in=built_in):
        return Owners()
    # A client that sends invalid managedFields does not delete them by accident.
    return given_owners(given) or stored_owners(stored)


@lru_cache(maxsize=256)
def _set_of(paths: tuple[tuple[str, ...], ...]) -> FieldSet:
    return fieldset.of(*paths)


def _as_set(paths: Iterable[Sequence[str]]) -> FieldSet:
    return _set_of(tuple(map(tuple, paths))) if paths else {}


def _with_own_metadata(obj: Mapping[str, Any]) -> Made:
    made = dict(obj)
    metadata = _metadata(made)
    made["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
    return made


def _object_text(applied: Obj, manager: Manager, kind: str) -> str:
    metadata = _metadata(applied)
    version = manager.api_version if "/" in manager.api_version else f"/{manager.api_version}"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {version}, Kind={applied.get('kind') or kind}"


def _conflict(conflicts: Mapping[Identity, FieldSet]) -> Conflict:
    by_manager = {
        manager: [fieldset.show(path) for path in fieldset.paths(conflicts[manager])]
        for manager in sorted(conflicts, key=Identity.as_text)
    }
    causes = [
        Cause("FieldManagerConflict", f"conflict with {manager}", path)
        for manager, paths in by_manager.items()
        for path in paths
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = []
        for manager, paths in by_manager.items():
            lines += [f"conflicts with {manager}:", *(f"- {path}" for path in paths)]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Conflict(message, causes=causes)
