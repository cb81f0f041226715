"""
What is said to a hook, and what its answer means.

Objects are sent whole. Maps are keyed by kind, and inside a kind by name where
that is enough and by namespace and name where it is not: version 1 leaves the
namespace out where it is the parent's, and does not show what lies elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import orjson
from msgspec import Struct, field

from lamina.errors import HookError
from lamina.families.metacontroller.herd import Seen
from lamina.families.metacontroller.names import COMPOSITE
from lamina.families.metacontroller.recall import Recall
from lamina.families.metacontroller.setup import Setup
from lamina.families.metacontroller.webhooks import Endpoint
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj

Shown: TypeAlias = Mapping[Kind, Iterable[Obj]]

_COMPOSITE_KEYS = frozenset(("status", "children", "resyncAfterSeconds", "finalized"))
_DECORATOR_KEYS = frozenset(
    ("labels", "annotations", "status", "attachments", "resyncAfterSeconds", "finalized")
)
_CUSTOMIZE_KEYS = frozenset(("relatedResources",))


class Response(Struct, frozen=True, kw_only=True):
    """
    What a hook wants.

    `status` is None where a decorator leaves it alone. A label or annotation
    that is None is to go.
    """

    status: Obj | None = None
    children: tuple[Obj, ...] = ()
    resync_after: timedelta | None = None
    finalized: bool = False
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)


# What is said


def sync_request(
    setup: Setup, parent: Obj, children: orjson.Fragment, related: orjson.Fragment, *, finalizing: bool
) -> bytes:
    """Return the body of a sync or finalize call, with children and related objects as they are shown."""
    names = ("parent", "children") if setup.kind == COMPOSITE else ("object", "attachments")
    said = {
        "controller": _controller(setup),
        names[0]: parent,
        names[1]: children,
        "related": related,
        "finalizing": finalizing,
    }
    return orjson.dumps(said)


def customize_request(setup: Setup, parent: Obj) -> bytes:
    return orjson.dumps({"controller": _controller(setup), "parent": parent})


def _controller(setup: Setup) -> Made:
    return {**setup.obj, "status": {}}


def written(objects: Shown, parent: Obj, version: str, recall: Recall) -> orjson.Fragment:
    """Return objects as they are sent: those that are as they were the last time are written down already."""
    shown: dict[str, dict[str, orjson.Fragment]] = {}
    home, is_kept = meta.namespace(parent), False
    for kind, those in objects.items():
        name, herd = f"{kind.kind}.{kind.api_version}", recall.herd_of(kind.group_kind, those)
        if herd is not None:
            shown[name] = herd.each(f"shown to {version}", partial(_shown, home, version))
            is_kept = True
            continue
        keyed = ((_key(obj, home, version), obj) for obj in those)
        shown[name] = {key: orjson.Fragment(orjson.dumps(obj)) for key, obj in keyed if key is not None}
    # In the order of their names, as the original sends them: what is the same is sent the same.
    text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
    if is_kept:
        recall.show(len(text))
    return orjson.Fragment(text)


def _shown(home: str, version: str, obj: Obj, seen: Seen) -> tuple[str, orjson.Fragment] | None:
    known = seen.shown
    if known is None or known[0] != version:
        known = seen.shown = version, _key(obj, home, version), orjson.Fragment(orjson.dumps(obj))
    return (known[1], known[2]) if known[1] is not None else None


def _key(obj: Obj, home: str, version: str) -> str | None:
    namespace, name = meta.namespace(obj), meta.name(obj)
    if version == "v1" and home:
        return name if namespace == home else None
    return f"{namespace}/{name}" if namespace else name


# What comes back


def read_composite(endpoint: Endpoint, body: bytes) -> Response:
    """Return what a composite's hook wants; HookError where that cannot be understood."""
    said = _object(endpoint, body, _COMPOSITE_KEYS)
    return Response(
        status=_field(endpoint, said, "status", dict) or {},
        children=_children(endpoint, said, "children"),
        resync_after=_resync(endpoint, said),
        finalized=bool(_field(endpoint, said, "finalized", bool)),
    )


def read_decorator(endpoint: Endpoint, body: bytes) -> Response:
    """Return what a decorator's hook wants; HookError where that cannot be understood."""
    said = _object(endpoint, body, _DECORATOR_KEYS)
    return Response(
        status=_field(endpoint, said, "status", dict),
        children=_children(endpoint, said, "attachments"),
        resync_after=_resync(endpoint, said),
        finalized=bool(_field(endpoint, said, "finalized", bool)),
        labels=_words(endpoint, said, "labels"),
        annotations=_words(endpoint, said, "annotations"),
    )


def read_customize(endpoint: Endpoint, body: bytes) -> Sequence[Any]:
    """Return the rules that a customize hook answers with, unread."""
    said = _object(endpoint, body, _CUSTOMIZE_KEYS)
    return _field(endpoint, said, "relatedResources", list) or ()


def _object(endpoint: Endpoint, body: bytes, known: frozenset[str]) -> Made:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as wrong:
        raise _wrong(endpoint, f"cannot be read as JSON: {wrong}") from None
    if not isinstance(said, dict):
        raise _wrong(endpoint, f"is {_kind_of(said)}, where an object was expected")
    if endpoint.strict:
        unknown = sorted(said.keys() - known)
        if unknown:
            raise _wrong(endpoint, f'has a key nobody knows: "{unknown[0]}"')
        twice = _twice(body)
        if twice:
            raise _wrong(endpoint, f'has a key twice: "{twice}"')
    return said


def _twice(body: bytes) -> str:
    """Return a key that the outermost object of a JSON text gives twice, if there is one."""
    outermost: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        # The outermost object is the last to be read to its end.
        outermost[:] = [key for key, _ in pairs]

    json.loads(body, object_pairs_hook=note)
    return next((key for place, key in enumerate(outermost) if key in outermost[:place]), "")


def _children(endpoint: Endpoint, said: Obj, name: str) -> tuple[Obj, ...]:
    children = _field(endpoint, said, name, list) or []
    for place, child in enumerate(children):
        where = f"{name}[{place}]"
        if not isinstance(child, dict):
            raise _wrong(endpoint, f"has {_kind_of(child)} at {where}, where an object was expected")
        for required in ("apiVersion", "kind"):
            if not isinstance(child.get(required), str) or not child[required]:
                raise _wrong(endpoint, f"has no {required} at {where}")
        metadata = child.get("metadata")
        if (
            not isinstance(metadata, dict)
            or not isinstance(metadata.get("name"), str)
            or not metadata["name"]
        ):
            raise _wrong(endpoint, f"has no metadata.name at {where}")
        if not isinstance(metadata.get("namespace") or "", str):
            raise _wrong(endpoint, f"has no text in metadata.namespace at {where}")
        for words in ("labels", "annotations"):
            held = metadata.get(words)
            if held is not None and not (
                isinstance(held, dict) and all(isinstance(one, str) for one in held.values())
            ):
                raise _wrong(endpoint, f"has something that is no text in metadata.{words} at {where}")
        owners = metadata.get("ownerReferences")
        if owners is not None and not (isinstance(owners, list) and all(map(_is_owner, owners))):
            raise _wrong(endpoint, f"has something that is no owner in metadata.ownerReferences at {where}")
    return tuple(children)


def _is_owner(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("uid"), str)


def _resync(endpoint: Endpoint, said: Obj) -> timedelta | None:
    seconds = said.get("resyncAfterSeconds")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise _wrong(endpoint, f"has {_kind_of(seconds)} in resyncAfterSeconds, where a number was expected")
    # A year is as good as never, and does not overflow; and less than a moment is one, not none at all.
    return timedelta(seconds=min(max(seconds, 0.001), 31_536_000)) if seconds > 0 else None


def _words(endpoint: Endpoint, said: Obj, name: str) -> Mapping[str, str | None]:
    words = _field(endpoint, said, name, dict) or {}
    for key, value in words.items():
        if value is not None and not isinstance(value, str):
            raise _wrong(endpoint, f"has {_kind_of(value)} in {name}.{key}, where text was expected")
    return words


def _field(endpoint: Endpoint, said: Obj, name: str, kind: type) -> Any:
    value = said.get(name)
    if value is not None and not isinstance(value, kind):
        expected = {dict: "an object", list: "a list", bool: "true or false"}[kind]
        raise _wrong(endpoint, f"has {_kind_of(value)} in {name}, where {expected} was expected")
    return value


def _wrong(endpoint: Endpoint, what: str) -> HookError:
    return HookError(f"the answer of {endpoint.purpose} hook {endpoint.url} {what}")


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"
