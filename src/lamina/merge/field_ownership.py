"""
Updates of field ownership by applies and other writes.

The version of the request is the main one. For entries in another version, the
object is converted to that version before and after the write, and compared
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from lamina.merge import fieldset
from lamina.merge.compare import Comparison, compare, everything, fields_of
from lamina.merge.fieldset import FieldSet, difference, in_order, intersection, union, without
from lamina.merge.managed import Entry, Identity, Owners
from lamina.merge.merge_values import merge_values
from lamina.merge.prune import VersionedSet, reconciled, removed, unowned
from lamina.merge.schema import Schema
from lamina.merge.schema_node import Node, node_of
from lamina.objects.diff import is_same
from lamina.objects.types import Obj

Versions: TypeAlias = Callable[[str], tuple[Schema, Callable[[Obj], Obj]] | None]
"""Maps an API version to its schema and to the conversion from the request's version; None if it is not served."""  # fmt: skip

STRIPPED_METADATA: Final = frozenset(
    {
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
        "resourceVersion",
    }
)  # fmt: skip
"""The fields of metadata that the server maintains, and that have no owner."""

_METADATA_ITSELF: Final = fieldset.of(["metadata"])
_NAME: Final = fieldset.of(["metadata", "name"])
_NOTHING: Final = Comparison({}, {})


class Conflicts(Exception):
    """Other managers own fields that an apply would change; `fields` has them by manager."""

    def __init__(self, fields: Mapping[Identity, FieldSet]) -> None:
        super().__init__(", ".join(map(str, fields)))
        self.fields = fields


class ApplyResult(NamedTuple):
    """An object after an apply, the live one itself where it does not change, and its owners."""

    obj: Mapping[str, Any]
    owners: Owners


class Updater:
    """The rules of ownership for one kind in one version; `reset_fields` are fields that this request cannot change."""

    def __init__(
        self, schema: Schema, version: str, reset_fields: FieldSet, versions: Versions | None
    ) -> None:
        self.node = node_of(schema)
        self.version = version
        self._reset_fields = reset_fields
        self._versions = versions

    def first(self, new: Obj, writer: Identity, now: str) -> Owners:
        """Return the owners of a new object: its writer owns everything."""
        fields = self._ownable_fields(everything(ownable(new), self.node))
        return Owners({writer: Entry(self.version, fields, now)}) if fields else Owners()

    def update(self, owners: Owners, live: Obj | None, new: Obj, writer: Identity, now: str) -> Owners:
        """Return the owners after an update: the writer is the only owner of what it changed."""
        before = live or {}
        here = self.compare(before, new, self.node)
        owners = _after(_Change(self, before, new, here), self._reconciled(owners))
        fields = difference(here.changed, _METADATA_ITSELF)
        if fields:
            previous = owners.get(writer)
            if previous is not None:
                fields = union(fields, previous.fields)
            owners[writer] = Entry(self.version, fields, now)
        return owners

    def apply(
        self, owners: Owners, live: Obj | None, applied: Obj, applier: Identity, *, force: bool, now: str
    ) -> ApplyResult:
        """
        Return an object and its owners after an apply.

        Raises Conflicts unless forced, and UntypableError where the applied
        object does not fit the schema.
        """
        if live is None:
            fields = in_order(self._ownable_fields(fields_of(ownable(applied), self.node)))
            return ApplyResult(applied, Owners({applier: Entry(self.version, fields, now)}))
        configuration = ownable(applied)
        merged = merge_values(live, configuration, self.node)
        fields = self._ownable_fields(merged.fields)
        last = owners.get(applier)
        if last is not None and last.api_version == self.version and last.fields == fields:
            if merged.obj is live and all(entry.api_version == self.version for entry in owners.values()):
                return ApplyResult(live, owners)
            fields = last.fields
        else:
            fields = in_order(fields)
        time = last.time if last else ""
        owners = self._reconciled(owners)
        last = owners.get(applier)
        gone: FieldSet = {}
        if last is None or last.fields is not fields:
            owners[applier] = Entry(self.version, fields, time)
            gone = self._unowned(last, owners) if last else {}
        kept = pruned = merged.obj
        here = self._tracked(merged.changed, merged.removed)
        if gone:
            # A map or list that was applied empty stays, even when all its content has been removed.
            kept = merge_values(
                removed(pruned, gone, self.node, nulls=False) or {}, configuration, self.node
            ).obj
            pruned = removed(pruned, gone, self.node) or {}
            here = self.compare(live, pruned, self.node)
        if pruned is live:
            return ApplyResult(live, owners)
        change = _Change(self, live, pruned, here)
        if not force:
            _refuse_conflicts(change, owners, applier)
        owners = _after(change, owners, applier)
        if is_same(live, kept):
            return ApplyResult(live, owners)
        owners[applier] = Entry(self.version, fields, now)
        return ApplyResult(kept, owners)

    def compare(self, before: Obj, after: Obj, node: Node) -> Comparison:
        """Return the changes of an object, without fields that have no owners."""
        return self._tracked(*compare(ownable(before), ownable(after), node))

    def converted(self, version: str, obj: Obj) -> tuple[Node, Obj] | None:
        """Return an object converted to another version; None where that version is not known."""
        served = self._versions(version) if self._versions else None
        if served is None:
            return None
        schema, convert = served
        return node_of(schema), convert(obj) if obj else obj

    def _tracked(self, changed: FieldSet, gone: FieldSet) -> Comparison:
        if self._reset_fields:
            return Comparison(without(changed, self._reset_fields), without(gone, self._reset_fields))
        return Comparison(changed, gone)

    def _ownable_fields(self, fields: FieldSet) -> FieldSet:
        return without(difference(fields, _METADATA_ITSELF), self._reset_fields)

    def _reconciled(self, owners: Owners) -> Owners:
        """Return owners reconciled with the current schemas, without those whose version is not served."""
        settled = Owners()
        for identity, entry in owners.items():
            if entry.api_version == self.version:
                settled[identity] = entry.owning(reconciled(entry.fields, self.node))
            elif self._versions is None:
                settled[identity] = entry
            elif served := self._versions(entry.api_version):
                settled[identity] = entry.owning(reconciled(entry.fields, node_of(served[0])))
        return settled

    def _unowned(self, last: Entry, owners: Owners) -> FieldSet:
        """Return what an applier applied last time and no manager owns now."""
        owned = [VersionedSet(self._node_in(entry.api_version), entry.fields) for entry in owners.values()]
        # Every applier has the name in its set, so metadata is never left without an owner.
        owned.append(VersionedSet(self.node, _NAME))
        return unowned(VersionedSet(self._node_in(last.api_version), last.fields), owned)

    def _node_in(self, version: str) -> Node:
        served = self._versions(version) if self._versions and version != self.version else None
        return node_of(served[0]) if served else self.node


class _Change:
    """What one write changes, compared in each version of the kind."""

    def __init__(self, updater: Updater, before: Obj, after: Obj, here: Comparison) -> None:
        self._updater, self._before, self._after = updater, before, after
        self._seen = {updater.version: here}

    def compared_in(self, version: str) -> Comparison:
        """Return what changed in terms of a version; nothing where it is not known."""
        comparison = self._seen.get(version)
        if comparison is None:
            before, after = (
                self._updater.converted(version, self._before),
                self._updater.converted(version, self._after),
            )
            comparison = _NOTHING
            if before and after:
                comparison = self._updater.compare(before[1], after[1], before[0])
            self._seen[version] = comparison
        return comparison


def _refuse_conflicts(change: _Change, owners: Owners, applier: Identity) -> None:
    conflicts: dict[Identity, FieldSet] = {}
    for identity, entry in owners.items():
        if identity != applier:
            clash = intersection(entry.fields, change.compared_in(entry.api_version).changed)
            if clash:
                conflicts[identity] = clash
    if conflicts:
        raise Conflicts(conflicts)


def _after(change: _Change, owners: Owners, applier: Identity | None = None) -> Owners:
    """Return the owners after all but the applier have lost the changed and removed fields."""
    settled = Owners()
    for identity, entry in owners.items():
        if identity != applier:
            changed, gone = change.compared_in(entry.api_version)
            entry = entry.owning(difference(difference(entry.fields, changed), gone))
        if entry.fields:
            settled[identity] = entry
    return settled


def ownable(obj: Obj) -> Obj:
    """Return an object without the fields that have no owners: its type, and the metadata that the server maintains."""
    view = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
    metadata = view.get("metadata")
    if isinstance(metadata, dict):
        view["metadata"] = {name: value for name, value in metadata.items() if name not in STRIPPED_METADATA}
    return view
