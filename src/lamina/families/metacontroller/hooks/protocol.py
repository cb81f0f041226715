"""
Encodes the requests to hooks, and decodes their responses.

Objects are sent whole. Maps are keyed by kind, and inside a kind by name where
that is enough and by namespace and name where it is not: version 1 leaves the
namespace out where it is the parent's, and does not show what is in another namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from lamina.core.model.memo import Memo
from lamina.core.model.object_map import ObjectMap, object_map
from lamina.errors import HookError
from lamina.families.metacontroller.compile import Setup
from lamina.families.metacontroller.hooks.endpoint import Endpoint
from lamina.families.metacontroller.hooks.strict import Fields, strict_errors
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj

Shown: TypeAlias = Mapping[Kind, Iterable[Obj]]

_COMPOSITE: Fields = dict.fromkeys(("status", "children", "resyncAfterSeconds", "finalized"))
_DECORATOR: Fields = dict.fromkeys(
    ("labels", "annotations", "status", "attachments", "resyncAfterSeconds", "finalized")
)
_SELECTOR: Fields = {
    "matchLabels": None,
    "matchExpressions": dict.fromkeys(("key", "operator", "values")),
}
_RULE: Fields = {
    **dict.fromkeys(("apiVersion", "resource", "namespace", "names")),
    "labelSelector": _SELECTOR,
    "namespaceSelector": _SELECTOR,
}
_CUSTOMIZE: Fields = {"relatedResources": _RULE}


class Response(Struct, frozen=True, kw_only=True):
    """
    The response of a hook: the desired children and status.

    `status` is None where a decorator leaves it alone. A label or annotation
    that is None is to go.
    """

    status: Obj | None = None
    children: tuple[Obj, ...] = ()
    resync_after: timedelta | None = None
    finalized: bool = False
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)


# Requests


def sync_request(
    setup: Setup, parent: Obj, children: orjson.Fragment, related: orjson.Fragment, *, finalizing: bool
) -> bytes:
    """Return the body of a sync or finalize call, with children and related objects as they are shown."""
    names = ("parent", "children") if setup.is_composite else ("object", "attachments")
    request = {
        "controller": _controller(setup),
        names[0]: parent,
        names[1]: children,
        "related": related,
        "finalizing": finalizing,
    }
    return orjson.dumps(request)


def customize_request(setup: Setup, parent: Obj) -> bytes:
    return orjson.dumps({"controller": _controller(setup), "parent": parent})


def _controller(setup: Setup) -> Made:
    return {**setup.obj, "status": {}}


def encode(objects: Shown, home: str, version: str, memo: Memo | None = None) -> orjson.Fragment:
    """Return objects as they are sent, for a parent in a namespace; with a memo, those that changed are encoded."""
    shown: dict[str, dict[str, orjson.Fragment]] = {}
    for kind, those in objects.items():
        name = f"{kind.kind}.{kind.api_version}"
        shown[name] = (
            memo.update(_encoded, (name, home, version), tuple(those), home, version)
            if memo is not None
            else _encoded(None, tuple(those), home, version)
        ).entries
    # Sorted by name, as upstream sends them: what is the same is sent the same.
    text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
    if memo is not None:
        memo.weigh(("children", version), len(text))
    return orjson.Fragment(text)


def _encoded(
    last: ObjectMap[str, orjson.Fragment] | None, objects: tuple[Obj, ...], home: str, version: str
) -> ObjectMap[str, orjson.Fragment]:
    def entry(obj: Obj) -> tuple[str, orjson.Fragment] | None:
        key = _key(obj, home, version)
        return None if key is None else (key, orjson.Fragment(orjson.dumps(obj)))

    return object_map(last, objects, entry)


def _key(obj: Obj, home: str, version: str) -> str | None:
    namespace, name = meta.namespace(obj), meta.name(obj)
    if version == "v1" and home:
        return name if namespace in ("", home) else None
    return f"{namespace}/{name}" if namespace else name


# Responses


def read_composite(endpoint: Endpoint, body: bytes) -> Response:
    """Return the response of a composite's hook; HookError where it is invalid."""
    read = _response(endpoint, _object(endpoint, body, _COMPOSITE), "children")
    return read if read.status is not None else replace(read, status={})


def read_decorator(endpoint: Endpoint, body: bytes) -> Response:
    """Return the response of a decorator's hook; HookError where it is invalid."""
    fields = _object(endpoint, body, _DECORATOR)
    return replace(
        _response(endpoint, fields, "attachments"),
        labels=_texts(endpoint, fields, "labels"),
        annotations=_texts(endpoint, fields, "annotations"),
    )


def _response(endpoint: Endpoint, fields: Obj, children: str) -> Response:
    return Response(
        status=_field(endpoint, fields, "status", dict),
        children=_children(endpoint, fields, children),
        resync_after=_resync(endpoint, fields),
        finalized=bool(_field(endpoint, fields, "finalized", bool)),
    )


def read_customize(endpoint: Endpoint, body: bytes) -> Sequence[Any]:
    """Return the rules of a customize hook's response, not decoded yet."""
    fields = _object(endpoint, body, _CUSTOMIZE)
    return _field(endpoint, fields, "relatedResources", list) or ()


def _object(endpoint: Endpoint, body: bytes, known: Fields) -> Made:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as wrong:
        raise _wrong(endpoint, f"cannot be read as JSON: {wrong}") from None
    if not isinstance(fields, dict):
        raise _wrong(endpoint, f"is {_kind_of(fields)}, where an object was expected")
    if endpoint.strict and (errors := strict_errors(body, known)):
        shown = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise HookError(
            f"strict validation failed for {endpoint.version} webhookResponse (type: {endpoint.purpose}, "
            f"mode: strict): {shown}"
        )
    return fields


def _children(endpoint: Endpoint, fields: Obj, name: str) -> tuple[Obj, ...]:
    children = _field(endpoint, fields, name, list) or []
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
        for field_name in ("labels", "annotations"):
            held = metadata.get(field_name)
            if held is not None and not (
                isinstance(held, dict) and all(isinstance(one, str) for one in held.values())
            ):
                raise _wrong(endpoint, f"has something that is no text in metadata.{field_name} at {where}")
        owners = metadata.get("ownerReferences")
        if owners is not None and not (isinstance(owners, list) and all(map(_is_owner, owners))):
            raise _wrong(endpoint, f"has something that is no owner in metadata.ownerReferences at {where}")
    return tuple(children)


def _is_owner(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("uid"), str)


def _resync(endpoint: Endpoint, fields: Obj) -> timedelta | None:
    seconds = fields.get("resyncAfterSeconds")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise _wrong(endpoint, f"has {_kind_of(seconds)} in resyncAfterSeconds, where a number was expected")
    # At most a year, which does not overflow, and at least a millisecond, which is not zero.
    return timedelta(seconds=min(max(seconds, 0.001), 31_536_000)) if seconds > 0 else None


def _texts(endpoint: Endpoint, fields: Obj, name: str) -> Mapping[str, str | None]:
    texts = _field(endpoint, fields, name, dict) or {}
    for key, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise _wrong(endpoint, f"has {_kind_of(value)} in {name}.{key}, where text was expected")
    return texts


def _field(endpoint: Endpoint, fields: Obj, name: str, kind: type) -> Any:
    value = fields.get(name)
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
