"""
How fields change hands.

Seen from one version of a kind, that of the request. Entries that were written
in another version are judged there: the object is shown in that version before
and after, and what differs then is what changed for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from lamina.merge import fieldset
from lamina.merge.compare import Comparison, compare, everything, fields_of
from lamina.merge.fieldset import FieldSet, difference, in_order, intersection, union, without
from lamina.merge.managed import Entry, Identity, Owners
from lamina.merge.node import Node, node_of
from lamina.merge.overlay import overlay
from lamina.merge.prune import Claim, abandoned, reconciled, removed
from lamina.merge.schema import Schema
from lamina.objects.diff import is_same
from lamina.objects.types import Obj

Versions: TypeAlias = Callable[[str], tuple[Schema, Callable[[Obj], Obj]] | None]
"""Gives for an API version its schema and how to show an object of the request's version in it; None if it is not served."""  # fmt: skip

NOBODYS: Final = frozenset(
    {
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
        "resourceVersion",
    }
)  # fmt: skip
"""The fields of metadata that the server keeps, and nobody owns."""

_METADATA_ITSELF: Final = fieldset.of(["metadata"])
_NAME: Final = fieldset.of(["metadata", "name"])
_NOTHING: Final = Comparison({}, {})


class Disagreement(Exception):
    """Others own fields that an apply would change; `fields` says who and which."""

    def __init__(self, fields: Mapping[Identity, FieldSet]) -> None:
        super().__init__(", ".join(map(str, fields)))
        self.fields = fields


class Outcome(NamedTuple):
    """An object after an apply, the live one itself where it does not change, and everybody who owns part of it."""

    obj: Mapping[str, Any]
    owners: Owners


class Ledger:
    """The rules of ownership for one kind in one version; `untracked` are fields this request cannot change."""

    def __init__(self, schema: Schema, version: str, untracked: FieldSet, versions: Versions | None) -> None:
        self.node = node_of(schema)
        self.version = version
        self._untracked = untracked
        self._versions = versions

    def first(self, new: Obj, writer: Identity, now: str) -> Owners:
        """Return who owns what of an object that was not there before: its writer, everything."""
        fields = self._ownable_fields(everything(ownable(new), self.node))
        return Owners({writer: Entry(self.version, fields, now)}) if fields else Owners()

    def update(self, owners: Owners, live: Obj | None, new: Obj, writer: Identity, now: str) -> Owners:
        """Return who owns what after a writer made one object out of another: it owns what it changed, alone."""
        before = live or {}
        here = self.compare(before, new, self.node)
        owners = _after(_Change(self, before, new, here), self._in_todays_terms(owners))
        fields = difference(here.changed, _METADATA_ITSELF)
        if fields:
            previous = owners.get(writer)
            if previous is not None:
                fields = union(fields, previous.fields)
            owners[writer] = Entry(self.version, fields, now)
        return owners

    def apply(
        self, owners: Owners, live: Obj | None, applied: Obj, applier: Identity, *, force: bool, now: str
    ) -> Outcome:
        """
        Return what an applier makes of an object.

        Raises Disagreement unless by force, and UntypableError for what the
        schema does not allow.
        """
        if live is None:
            fields = in_order(self._ownable_fields(fields_of(ownable(applied), self.node)))
            return Outcome(applied, Owners({applier: Entry(self.version, fields, now)}))
        stated = ownable(applied)
        laid = overlay(live, stated, self.node)
        fields = self._ownable_fields(laid.fields)
        last = owners.get(applier)
        if last is not None and last.api_version == self.version and last.fields == fields:
            if laid.obj is live and all(entry.api_version == self.version for entry in owners.values()):
                return Outcome(live, owners)
            fields = last.fields
        else:
            fields = in_order(fields)
        time = last.time if last else ""
        owners = self._in_todays_terms(owners)
        last = owners.get(applier)
        gone: FieldSet = {}
        if last is None or last.fields is not fields:
            owners[applier] = Entry(self.version, fields, time)
            gone = self._abandoned(last, owners) if last else {}
        kept = seen = laid.obj
        here = self._tracked(laid.changed, laid.removed)
        if gone:
            # Something that was stated empty is there, even when all it held has just gone.
            kept = overlay(removed(seen, gone, self.node, nulls=False) or {}, stated, self.node).obj
            seen = removed(seen, gone, self.node) or {}
            here = self.compare(live, seen, self.node)
        if seen is live:
            return Outcome(live, owners)
        change = _Change(self, live, seen, here)
        if not force:
            _refuse_conflicts(change, owners, applier)
        owners = _after(change, owners, applier)
        if is_same(live, kept):
            return Outcome(live, owners)
        owners[applier] = Entry(self.version, fields, now)
        return Outcome(kept, owners)

    def compare(self, before: Obj, after: Obj, node: Node) -> Comparison:
        """Return what of an object changed that anybody could own."""
        return self._tracked(*compare(ownable(before), ownable(after), node))

    def shown(self, version: str, obj: Obj) -> tuple[Node, Obj] | None:
        """Return an object as another version shows it; None where that version is not known."""
        served = self._versions(version) if self._versions else None
        if served is None:
            return None
        schema, convert = served
        return node_of(schema), convert(obj) if obj else obj

    def _tracked(self, changed: FieldSet, gone: FieldSet) -> Comparison:
        if self._untracked:
            return Comparison(without(changed, self._untracked), without(gone, self._untracked))
        return Comparison(changed, gone)

    def _ownable_fields(self, stated: FieldSet) -> FieldSet:
        return without(difference(stated, _METADATA_ITSELF), self._untracked)

    def _in_todays_terms(self, owners: Owners) -> Owners:
        """Return owners without those whose version is gone, in the terms of the schemas there are now."""
        settled = Owners()
        for identity, entry in owners.items():
            if entry.api_version == self.version:
                settled[identity] = entry.owning(reconciled(entry.fields, self.node))
            elif self._versions is None:
                settled[identity] = entry
            elif served := self._versions(entry.api_version):
                settled[identity] = entry.owning(reconciled(entry.fields, node_of(served[0])))
        return settled

    def _abandoned(self, last: Entry, owners: Owners) -> FieldSet:
        """Return what an applier stated last time and is nobody's now."""
        claims = [Claim(self._node_in(entry.api_version), entry.fields) for entry in owners.values()]
        # Everybody states the name, so metadata is never left without an owner.
        claims.append(Claim(self.node, _NAME))
        return abandoned(Claim(self._node_in(last.api_version), last.fields), claims)

    def _node_in(self, version: str) -> Node:
        served = self._versions(version) if self._versions and version != self.version else None
        return node_of(served[0]) if served else self.node


class _Change:
    """What one write changes, as each version of the kind sees it."""

    def __init__(self, ledger: Ledger, before: Obj, after: Obj, here: Comparison) -> None:
        self._ledger, self._before, self._after = ledger, before, after
        self._seen = {ledger.version: here}

    def seen_in(self, version: str) -> Comparison:
        """Return what changed for an owner who wrote in this version; nothing where it is not known."""
        comparison = self._seen.get(version)
        if comparison is None:
            before, after = (
                self._ledger.shown(version, self._before),
                self._ledger.shown(version, self._after),
            )
            comparison = _NOTHING
            if before and after:
                comparison = self._ledger.compare(before[1], after[1], before[0])
            self._seen[version] = comparison
        return comparison


def _refuse_conflicts(change: _Change, owners: Owners, applier: Identity) -> None:
    conflicts: dict[Identity, FieldSet] = {}
    for identity, entry in owners.items():
        if identity != applier:
            clash = intersection(entry.fields, change.seen_in(entry.api_version).changed)
            if clash:
                conflicts[identity] = clash
    if conflicts:
        raise Disagreement(conflicts)


def _after(change: _Change, owners: Owners, applier: Identity | None = None) -> Owners:
    """Return the owners after everybody but the applier has lost what changed and what is gone."""
    settled = Owners()
    for identity, entry in owners.items():
        if identity != applier:
            changed, gone = change.seen_in(entry.api_version)
            entry = entry.owning(difference(difference(entry.fields, changed), gone))
        if entry.fields:
            settled[identity] = entry
    return settled


def ownable(obj: Obj) -> Obj:
    """Return an object without what is nobody's: its type, and the part of metadata the server keeps."""
    view = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
    metadata = view.get("metadata")
    if isinstance(metadata, dict):
        view["metadata"] = {name: value for name, value in metadata.items() if name not in NOBODYS}
    return view
