"""
What a child becomes: what is desired, laid over what is there, given what was desired last.

    there is        desired is      it becomes
    an object       an object       per key: gone where it was desired and is no more,
                                    merged where it is desired, kept otherwise
    a list of       a list of       the same, per item, by the first key all items have
    keyed objects   keyed objects
    another list    a list          what is desired
    anything else   anything        what is desired
    an object       something else  as it was, less what was desired and is no more
    a list          something else  as for an empty list

A null that is desired means that nothing is: a server that drops it would differ
for ever otherwise. What was desired last is kept on the child, as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from lamina.families.metacontroller.names import LAST_APPLIED
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj

_KEYS = (("containerPort", "protocol"), ("port", "protocol"), ("containerPort",), ("port",), ("mountPath",),
         ("name",), ("uid",), ("ip",), ("path",))  # fmt: skip
_SYSTEM = (
    "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields",
)  # fmt: skip


def last_applied(child: Obj) -> Made:
    """Return what was desired of a child last, or nothing where nobody wrote it down."""
    text = meta.annotations(child).get(LAST_APPLIED)
    if not text:
        return {}
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def new_child(desired: Obj) -> Made:
    """Return a child to be made, with what is desired of it written down."""
    metadata = {key: value for key, value in meta.metadata(desired).items() if key not in _SYSTEM}
    made: Made = stated({**desired, "metadata": metadata})
    return meta.with_annotation(made, LAST_APPLIED, _record(desired))


class Statement(NamedTuple):
    """What is stated of a child, and how that is written down on it."""

    stated: Made
    record: str


def statement(desired: Obj) -> Statement:
    return Statement(stated(desired), _record(desired))


def merged(observed: Obj, desired: Obj, said: Statement | None = None) -> Made:
    """
    Return what an observed child becomes; `said` is the statement of what is desired, where it is known.

    The very same values come back where nothing differs, the record of what was
    desired included: that is compared as JSON, not by the letter.
    """
    wanted, record = said or statement(desired)
    written = meta.annotations(observed).get(LAST_APPLIED)
    # Word for word what is desired now, as it is on every child that nothing has happened to: no need to read it.
    again = written == record and LAST_APPLIED not in meta.annotations(desired)
    became: Made = _merge(observed, wanted if again else stated(last_applied(observed)), wanted)
    metadata = dict(became.get("metadata") or {})
    there = meta.metadata(observed)
    for field in _SYSTEM:
        metadata.pop(field, None)
        if field in there:
            metadata[field] = there[field]
    became["metadata"] = metadata
    # A hook may speak of a child in another version than it is seen in.
    became |= {field: observed[field] for field in ("apiVersion", "kind") if field in observed}
    became.pop("status", None)
    if "status" in observed:
        became["status"] = observed["status"]
    if written and written != record and is_as_last_applied(observed, desired):
        record = written
    return meta.with_annotation(became, LAST_APPLIED, record)


def holds_already(observed: Obj, desired: Obj, said: Statement) -> bool:
    """
    Say whether a child is plainly as it was desired last and is desired now.

    Most are, and then nothing has to be merged. A no says nothing: lists of
    objects, say, are not looked into.
    """
    return (
        meta.annotations(observed).get(LAST_APPLIED) == said.record
        and LAST_APPLIED not in meta.annotations(desired)
        and _holds(observed, said.stated)
    )


def _holds(there: Any, wanted: Any) -> bool:
    if wanted.__class__ is dict:
        return there.__class__ is dict and all(
            key in there and _holds(there[key], value) for key, value in wanted.items()
        )
    if wanted.__class__ is list and any(isinstance(one, Mapping) for one in wanted):
        return False
    return is_same(there, wanted)


def is_as_last_applied(observed: Obj, desired: Obj) -> bool:
    """Say whether a child was last made as it is desired now, whatever has become of it since."""
    if meta.annotations(observed).get(LAST_APPLIED) == _record(desired):
        return True
    before = last_applied(observed)
    return bool(before) and is_same(_meant(before), _meant(desired))


def _meant(desired: Obj) -> Made:
    """Return what a hook can decide about a child: not its status, nor what the server keeps about it."""
    told = {key: value for key, value in desired.items() if key != "status"}
    metadata = {key: value for key, value in meta.metadata(desired).items() if key not in _SYSTEM}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED
    }
    metadata.pop("annotations", None)
    made: Made = stated(
        {**told, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
    )
    return made


def differs(observed: Obj, became: Obj) -> bool:
    """
    Say whether a child is to become something else than it is.

    Once what is desired has been written down on the child, what is empty there
    counts as not being there: a server may drop it, and would be told for ever.
    """
    if is_same(observed, became):
        return False
    written = meta.annotations(observed).get(LAST_APPLIED)
    if written is None or written != meta.annotations(became).get(LAST_APPLIED):
        return True
    return not is_same(_solid(observed), _solid(became))


def _record(desired: Obj) -> str:
    """Return what is written down of what is desired."""
    kept = {key: value for key, value in meta.annotations(desired).items() if key != LAST_APPLIED}
    recorded = {**desired, "metadata": {**meta.metadata(desired)}}
    if "annotations" in recorded["metadata"]:
        recorded["metadata"]["annotations"] = kept
    return as_go_writes(recorded)


def as_go_writes(value: Any) -> str:
    """Return JSON as the original wrote it: sorted, compact, and safe to put into a page."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    for character, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"),
                              ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):  # fmt: skip
        text = text.replace(character, escape)
    return text


def stated(value: Any) -> Any:
    """Return what is really desired: without the nulls, and with whole numbers as whole numbers."""
    if value.__class__ is str:
        return value
    if value.__class__ is dict or isinstance(value, Mapping):
        return {key: stated(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [stated(one) for one in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _merge(observed: Any, before: Any, desired: Any) -> Any:
    if observed.__class__ is str:
        return desired
    if observed.__class__ is dict or isinstance(observed, Mapping):
        return _merge_objects(observed, _mapping(before), _mapping(desired))
    if isinstance(observed, list):
        return _merge_lists(observed, _list(before), _list(desired))
    return desired


def _merge_objects(observed: Obj, before: Obj, desired: Obj) -> Made:
    became: Made = {key: value for key, value in observed.items() if key in desired or key not in before}
    for key, value in desired.items():
        became[key] = _merge(observed[key], before.get(key), value) if key in observed else value
    return became


def _merge_lists(observed: Sequence[Any], before: Sequence[Any], desired: Sequence[Any]) -> list[Any]:
    key = _common_key([*observed, *before, *desired])
    if key is None:
        return list(desired)
    there, last, wanted = (_by(key, items) for items in (observed, before, desired))
    became = [
        _merge(item, last.get(name), wanted[name]) if name in wanted else item
        for name, item in there.items()
        if name in wanted or name not in last
    ]
    return became + [item for name, item in wanted.items() if name not in there]


def _common_key(items: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the first key that tells all of these apart, if they are objects and have one in common."""
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    for key in _KEYS:
        if all(key[0] in item for item in items) and (len(key) == 1 or any(key[1] in item for item in items)):
            return key
    return None


def _by(key: tuple[str, ...], items: Sequence[Any]) -> dict[tuple[str, ...], Any]:
    # A protocol that is not said is TCP, as the server would fill it in.
    return {tuple(str(item.get(part, "TCP")) for part in key): item for item in items}


def _mapping(value: Any) -> Obj:
    return value if value.__class__ is dict or isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _solid(value: Any) -> Any:
    """Return a value without what is empty: a server may drop that, and nobody could tell."""
    if isinstance(value, Mapping):
        kept = {key: _solid(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in (None, "") and one != {} and one != []}
    if isinstance(value, list):
        return [_solid(one) for one in value]
    return value
