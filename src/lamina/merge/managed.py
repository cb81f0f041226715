"""
The entries of managedFields.

An entry belongs to a manager and an operation. An applier has one entry, in
whatever version; an updater has one for each version.

    order     appliers first, then by time, oldest first, then by name
    time      moves when the manager changes the object
    at most   ten entries of updaters: the oldest are merged, as `ancient-changes`
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lamina.merge.fieldset import FieldSet, UnreadableFields, read, union
from lamina.objects.go_quote import quoted
from lamina.objects.types import Made

APPLY = "Apply"
UPDATE = "Update"
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
_MOST_UPDATERS = 10


class Manager(NamedTuple):
    """
    A field manager: its name, operation, version and subresource.

    `operation` is Apply or Update. The identity of an applier does not depend
    on the version.
    """

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> Identity:
        version = "" if self.operation == APPLY else self.api_version
        return Identity(self.name or "unknown", self.operation, version, self.subresource)


class Identity(NamedTuple):
    """The identity of an entry; `api_version` is empty for an applier."""

    name: str
    operation: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        """Return the manager as conflicts name it: `"ctl" with subresource "status" using apps/v1`."""
        shown = quoted(self.name)
        if self.subresource:
            shown += f" with subresource {quoted(self.subresource)}"
        return f"{shown} using {self.api_version}" if self.operation == UPDATE else shown

    def as_text(self) -> str:
        """Return the text Kubernetes sorts managers by."""
        parts = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json.dumps({key: value for key, value in parts.items() if value}, ensure_ascii=False, separators=(",", ":"))  # fmt: skip


class Entry(NamedTuple):
    """One entry: its fields, their version, the time of its last change, and its JSON if it is unchanged."""  # fmt: skip

    api_version: str
    fields: FieldSet
    time: str = ""
    stored: Made | None = None

    def owning(self, fields: FieldSet) -> Entry:
        """Return the entry with other fields; itself if they are the same."""
        return self if fields is self.fields else Entry(self.api_version, fields, self.time)


class Owners(dict[Identity, Entry]):
    """The managers of one object, with their entries."""

    def cap(self) -> None:
        """Merge the oldest entries of updaters until there are at most ten."""
        updaters = [identity for identity in self if identity.operation == UPDATE]
        surplus = len(updaters) - _MOST_UPDATERS
        if surplus <= 0:
            return
        updaters.sort(key=lambda identity: (self[identity].time, identity.as_text()))
        first_of: dict[str, Identity] = {}
        for identity in updaters:
            if surplus <= 0:
                break
            entry = self[identity]
            first = first_of.setdefault(entry.api_version, identity)
            if first is identity:
                continue
            bucket = Identity(ANCIENT, UPDATE, entry.api_version, "")
            merged = self.pop(first).fields if bucket not in self else self[bucket].fields
            del self[identity]
            self[bucket] = Entry(entry.api_version, union(entry.fields, merged), entry.time)
            surplus -= 1

    def as_json(self) -> list[Made]:
        """Return the entries as they are stored."""
        pairs = sorted(self.items(), key=_order)
        return [entry.stored or _written(identity, entry) for identity, entry in pairs if entry.fields]


def _order(pair: tuple[Identity, Entry]) -> tuple[str, ...]:
    identity, entry = pair
    return (identity.operation, entry.time, identity.name, entry.api_version, identity.subresource)


def _written(identity: Identity, entry: Entry) -> Made:
    written: Made = {
        "manager": identity.name,
        "operation": identity.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time:
        written["time"] = entry.time
    written["fieldsType"] = "FieldsV1"
    written["fieldsV1"] = entry.fields
    if identity.subresource:
        written["subresource"] = identity.subresource
    return written


def stored_owners(entries: Iterable[Made] | None) -> Owners:
    """Return the owners of a stored object, whose entries are valid."""
    owners = Owners()
    for entry in entries or ():
        version = entry["apiVersion"]
        operation = entry["operation"]
        identity = Identity(
            entry.get("manager", ""),
            operation,
            "" if operation == APPLY else version,
            entry.get("subresource", ""),
        )
        owners[identity] = Entry(version, entry.get("fieldsV1") or {}, entry.get("time", ""), entry)
    return owners


def given_owners(entries: Sequence[Any]) -> Owners | None:
    """Return the owners in a client's managedFields; None where an entry is invalid."""
    owners = Owners()
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        operation, version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE) or not version or entry.get("fieldsType") != "FieldsV1":
            return None
        try:
            fields = read(entry.get("fieldsV1") or {})
            time = _canonical_time(entry.get("time"))
        except ValueError:
            return None
        manager = Manager(entry.get("manager") or "", operation, version, entry.get("subresource") or "")
        identity = manager.identity._replace(name=manager.name)
        owners[identity] = Entry(version, fields, time)
    return owners


def _canonical_time(given: Any) -> str:
    if not given:
        return ""
    if not isinstance(given, str):
        raise UnreadableFields(f"a time is text, not {given!r}")
    if len(given) == 20 and given.endswith("Z"):
        return given
    return datetime.fromisoformat(given).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def means_reset(entries: Any, *, built_in: bool) -> bool:
    """
    Say whether a client clears managedFields: with one empty entry.

    For a built-in kind an empty list does so too; a custom resource loses an
    empty list when it is decoded.
    """
    return bool(entries == [{}] or (built_in and entries == []))


def differ_only_in_time(one: Sequence[Made], two: Sequence[Made]) -> bool:
    """Say whether two lists of entries are equal except for times; a write that changes nothing else is a no-op."""
    return len(one) == len(two) and all(
        {**first, "time": ""} == {**second, "time": ""} for first, second in zip(one, two, strict=True)
    )
