"""
Stored rows to answers.

What is stored is sent as it is wherever the version asked for is the version
stored: the type goes in front, and nothing is decoded on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import orjson

from lamina.errors import BadRequest, NotAcceptable, Unexplained
from lamina.objects.types import Made
from lamina.server.encoding import encode_stored
from lamina.server.kind import Kind
from lamina.server.negotiate import PLAIN, PLAIN_ACCEPTS, Wanted, negotiate
from lamina.server.request import JSON, Answer, Request
from lamina.server.store import Row
from lamina.server.tables import table

_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _Head(msgspec.Struct):
    metadata: msgspec.Raw


_HEAD = msgspec.json.Decoder(_Head)


def shown(kind: Kind, row: Row) -> bytes:
    """
    Return a row's JSON as this version shows it, still without its type.

    A built-in row is stored as it is shown. A custom one may have been written
    under another schema; each version reads it once and remembers.
    """
    if not (kind.custom or kind.converts):
        return row.value
    cache = row.cache
    if cache is None:
        cache = row.cache = {}
    value: bytes | None = cache.get(kind)
    if value is None:
        value = encode_stored(kind.shape.read(orjson.loads(row.value)))
        # One string in memory, not two, for the usual case that reading changes nothing.
        cache[kind] = value = row.value if value == row.value else value
    return value


def remember(kind: Kind, row: Row) -> None:
    """Note that a row was just written by this very version, so that reading it changes nothing."""
    if kind.custom and not kind.converts:
        row.cache = {kind: row.value}


def whole(kind: Kind, value: bytes) -> bytes:
    """Return an object's complete JSON, its type included."""
    return kind.prefix + value[1:]


def partial(value: bytes) -> bytes:
    """Return an object's metadata as PartialObjectMetadata."""
    return _PARTIAL + bytes(_HEAD.decode(value).metadata) + b"}"


def decoded(kind: Kind, row: Row) -> Made:
    """Return a fresh dict of a row as this version shows it, its type included."""
    return typed(kind, orjson.loads(shown(kind, row)))


def typed(kind: Kind, obj: Made) -> Made:
    """Return the object with its type in front."""
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}


def object_answer(request: Request, kind: Kind, value: bytes, now: datetime, status: int = 200) -> Answer:
    """Return one object, given as its JSON without type, in the representation that was asked for."""
    accept = request.headers.get("accept", "")
    wanted = PLAIN if not accept or accept == "application/json" else negotiate(accept)
    if wanted is PLAIN:
        return Answer(status, kind.prefix + value[1:])
    match wanted.form:
        case "Table":
            rows = table(kind, [typed(kind, orjson.loads(value))], now, include=included(request))
            rows["metadata"] = {"resourceVersion": orjson.loads(value)["metadata"].get("resourceVersion", "")}
            return encode(rows, wanted, status)
        case "PartialObjectMetadata":
            return encode_bytes(partial(value), wanted, status)
        case "PartialObjectMetadataList":
            if kind.custom:
                raise Unexplained("content is not a list")
            raise NotAcceptable(
                f"you requested {wanted.form}, but the requested object is not a list ({_go_type(kind, kind.kind)})"
            )
        case _:
            return encode_bytes(whole(kind, value), wanted, status)


def list_answer(
    request: Request, kind: Kind, values: Sequence[bytes], metadata: Mapping[str, Any], now: datetime
) -> Answer:
    """Return a list of objects, given as their JSON without type, in the representation that was asked for."""
    accept = request.headers.get("accept", "")
    wanted = PLAIN if not accept or accept == "application/json" else negotiate(accept)
    match wanted.form:
        case "Table":
            objects = [typed(kind, orjson.loads(value)) for value in values]
            rows = table(kind, objects, now, include=included(request))
            rows["metadata"] = dict(metadata)
            return encode(rows, wanted)
        case "PartialObjectMetadataList":
            head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":'
            return encode_bytes(
                b"".join(
                    (head, orjson.dumps(metadata), b',"items":[', b",".join(map(partial, values)), b"]}")
                ),
                wanted,
            )
        case "PartialObjectMetadata":
            named = "*unstructured.UnstructuredList" if kind.custom else _go_type(kind, kind.list_kind)
            raise NotAcceptable(f"you requested {wanted.form}, but the requested object is a list ({named})")
        case _:
            return encode_bytes(list_body(kind, values, metadata), wanted)


def _go_type(kind: Kind, named: str) -> str:
    return f"*{kind.group.partition('.')[0] or 'core'}.{named}"


def list_body(kind: Kind, values: Sequence[bytes], metadata: Mapping[str, Any]) -> bytes:
    """Return the JSON of a list; items of built-in kinds carry no type, those of custom ones do."""
    if kind.custom:
        prefix = kind.prefix
        items = b",".join([prefix + value[1:] for value in values])
        metadata = {"continue": "", **metadata}
    else:
        items = b",".join(values)
    head = f'{{"kind":"{kind.list_kind}","apiVersion":"{kind.api_version}","metadata":'.encode()
    return b"".join((head, orjson.dumps(metadata), b',"items":[', items, b"]}"))


def _dump(value: object) -> bytes:
    from lamina.server.yaml import dump_yaml

    return dump_yaml(value)


def encode(value: object, wanted: Wanted, status: int = 200) -> Answer:
    if wanted.media == "yaml":
        return Answer(status, _dump(value), "application/yaml")
    return Answer(status, orjson.dumps(value), wanted.content_type)


def encode_bytes(value: bytes, wanted: Wanted, status: int = 200) -> Answer:
    if wanted.media == "yaml":
        return Answer(status, _dump(orjson.loads(value)), "application/yaml")
    return Answer(status, value, wanted.content_type)


def in_form(request: Request, answer: Answer) -> Answer:
    """Return a Status in YAML where the client would rather have that; it is JSON otherwise."""
    accept = request.headers.get("accept", "")
    if accept in PLAIN_ACCEPTS or answer.content_type != JSON or not isinstance(answer.body, bytes):
        return answer
    try:
        wanted = negotiate(accept)
    except NotAcceptable:
        return answer
    if wanted.media == "yaml":
        answer.body, answer.content_type = _dump(orjson.loads(answer.body)), "application/yaml"
    return answer


def included(request: Request) -> str:
    """Return how much of each object a Table's rows carry."""
    include = request.parameter("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return include
