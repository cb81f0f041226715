"""
Three-way merge: what is desired, merged into the live object, given what was applied last.

    live is         desired is      it becomes
    an object       an object       per key: removed where it was applied last and is not desired,
                                    merged where it is desired, kept otherwise
    a list of       a list of       the same, per item, by the first key all items have
    keyed objects   keyed objects
    another list    a list          what is desired
    anything else   anything        what is desired
    an object       something else  as it was, less what was applied last and is not desired
    a list          something else  as for an empty list

A null that is desired counts as absent: a server that drops it would differ
for ever otherwise. What was applied last is recorded on the object, as JSON in
an annotation, as kubectl and Metacontroller do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from lamina.core.apply.change_check import SYSTEM_METADATA
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj

_KEYS = (("containerPort", "protocol"), ("port", "protocol"), ("containerPort",), ("port",), ("mountPath",),
         ("name",), ("uid",), ("ip",), ("path",))  # fmt: skip


class Applied(NamedTuple):
    """What is desired of an object, without nulls, and how that is recorded on it."""

    content: Made
    record: str


class ThreeWay(NamedTuple):
    """A three-way merge that records what was applied last in one annotation."""

    annotation: str

    def last_applied(self, live: Obj) -> Made:
        """Return what was applied to an object last, or nothing where there is no record of it."""
        text = meta.annotations(live).get(self.annotation)
        if not text:
            return {}
        try:
            read = orjson.loads(text)
        except orjson.JSONDecodeError:
            return {}
        return read if isinstance(read, dict) else {}

    def create(self, desired: Obj) -> Made:
        """Return an object to create, with the record of what is desired."""
        metadata = {key: value for key, value in meta.metadata(desired).items() if key not in SYSTEM_METADATA}
        made: Made = without_nulls({**desired, "metadata": metadata})
        return meta.with_annotation(made, self.annotation, self._record(desired))

    def applied(self, desired: Obj) -> Applied:
        return Applied(without_nulls(desired), self._record(desired))

    def merge(self, live: Obj, desired: Obj, applied: Applied | None = None) -> Made:
        """
        Return what a live object becomes; `applied` is that of `desired`, where it is computed already.

        Unchanged values are the very same, the record included: it is compared as
        JSON, not as text.
        """
        content, record = applied or self.applied(desired)
        written = meta.annotations(live).get(self.annotation)
        # An unchanged record, as on nearly every object, need not be parsed.
        is_recorded = written == record and self.annotation not in meta.annotations(desired)
        last = content if is_recorded else without_nulls(self.last_applied(live))
        became: Made = _merge(live, last, content)
        metadata = dict(became.get("metadata") or {})
        there = meta.metadata(live)
        for field in SYSTEM_METADATA:
            metadata.pop(field, None)
            if field in there:
                metadata[field] = there[field]
        became["metadata"] = metadata
        # What is desired may be in another version of the kind than what is live.
        became |= {field: live[field] for field in ("apiVersion", "kind") if field in live}
        became.pop("status", None)
        if "status" in live:
            became["status"] = live["status"]
        if written and written != record and self.is_last_applied(live, desired):
            record = written
        return meta.with_annotation(became, self.annotation, record)

    def is_merged(self, live: Obj, desired: Obj, applied: Applied) -> bool:
        """
        Say whether a live object obviously is as it was applied last and is desired now.

        Most are, and then nothing has to be merged. False is no answer: lists of
        objects, for example, are not compared.
        """
        return (
            meta.annotations(live).get(self.annotation) == applied.record
            and self.annotation not in meta.annotations(desired)
            and _contains(live, applied.content)
        )

    def is_last_applied(self, live: Obj, desired: Obj) -> bool:
        """Say whether what was applied last is what is desired now, whatever the live object has become since."""
        if meta.annotations(live).get(self.annotation) == self._record(desired):
            return True
        before = self.last_applied(live)
        return bool(before) and is_same(self._decidable(before), self._decidable(desired))

    def differs(self, live: Obj, became: Obj) -> bool:
        """
        Say whether a merge changes a live object.

        Once what is desired has been recorded on the object, empty and absent are
        the same: a server may drop what is empty, and would be written to for ever.
        """
        if is_same(live, became):
            return False
        written = meta.annotations(live).get(self.annotation)
        if written is None or written != meta.annotations(became).get(self.annotation):
            return True
        return not is_same(_without_empty(live), _without_empty(became))

    def _decidable(self, desired: Obj) -> Made:
        """Return what can be desired of an object: not its status, nor what the server keeps in its metadata."""
        content = {key: value for key, value in desired.items() if key != "status"}
        metadata = {key: value for key, value in meta.metadata(desired).items() if key not in SYSTEM_METADATA}
        annotations = {
            key: value for key, value in (metadata.get("annotations") or {}).items() if key != self.annotation
        }
        metadata.pop("annotations", None)
        made: Made = without_nulls(
            {**content, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
        )
        return made

    def _record(self, desired: Obj) -> str:
        kept = {key: value for key, value in meta.annotations(desired).items() if key != self.annotation}
        recorded = {**desired, "metadata": {**meta.metadata(desired)}}
        if "annotations" in recorded["metadata"]:
            recorded["metadata"]["annotations"] = kept
        return go_json(recorded)


def go_json(value: Any) -> str:
    """Return JSON as Go writes it: sorted, compact, and safe in HTML."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    for character, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"),
                              ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):  # fmt: skip
        text = text.replace(character, escape)
    return text


def without_nulls(value: Any) -> Any:
    """Return a value without nulls, and with whole numbers as integers."""
    if value.__class__ is str:
        return value
    if value.__class__ is dict or isinstance(value, Mapping):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _contains(live: Any, wanted: Any) -> bool:
    if wanted.__class__ is dict:
        return live.__class__ is dict and all(
            key in live and _contains(live[key], value) for key, value in wanted.items()
        )
    if wanted.__class__ is list and any(isinstance(one, Mapping) for one in wanted):
        return False
    return is_same(live, wanted)


def _merge(live: Any, before: Any, desired: Any) -> Any:
    if live.__class__ is str:
        return desired
    if live.__class__ is dict or isinstance(live, Mapping):
        return _merge_objects(live, _mapping(before), _mapping(desired))
    if isinstance(live, list):
        return _merge_lists(live, _list(before), _list(desired))
    return desired


def _merge_objects(live: Obj, before: Obj, desired: Obj) -> Made:
    became: Made = {key: value for key, value in live.items() if key in desired or key not in before}
    for key, value in desired.items():
        became[key] = _merge(live[key], before.get(key), value) if key in live else value
    return became


def _merge_lists(live: Sequence[Any], before: Sequence[Any], desired: Sequence[Any]) -> list[Any]:
    key = _common_key([*live, *before, *desired])
    if key is None:
        return list(desired)
    there, last, wanted = (_by(key, items) for items in (live, before, desired))
    became = [
        _merge(item, last.get(name), wanted[name]) if name in wanted else item
        for name, item in there.items()
        if name in wanted or name not in last
    ]
    return became + [item for name, item in wanted.items() if name not in there]


def _common_key(items: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the first key that identifies all of these items, if they are objects and have one in common."""
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    for key in _KEYS:
        if all(key[0] in item for item in items) and (len(key) == 1 or any(key[1] in item for item in items)):
            return key
    return None


def _by(key: tuple[str, ...], items: Sequence[Any]) -> dict[tuple[str, ...], Any]:
    # A port without protocol is TCP, as the server defaults it.
    return {tuple(str(item.get(part, "TCP")) for part in key): item for item in items}


def _mapping(value: Any) -> Obj:
    return value if value.__class__ is dict or isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _without_empty(value: Any) -> Any:
    """Return a value without what is empty, which a server may drop."""
    if isinstance(value, Mapping):
        kept = {key: _without_empty(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in (None, "") and one != {} and one != []}
    if isinstance(value, list):
        return [_without_empty(one) for one in value]
    return value
