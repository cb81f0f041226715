"""
Encode stored rows as responses.

If the requested version is the stored one, the stored JSON is sent as it is, with
apiVersion and kind in front, and nothing is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import orjson

from lamina.errors import BadRequest, NotAcceptable, Unclassified
from lamina.objects.types import Made
from lamina.server.codec.negotiate import PLAIN, PLAIN_ACCEPTS, Representation, negotiate
from lamina.server.codec.tables import table
from lamina.server.http.request import JSON, Request, Response
from lamina.server.kinds.kind import Kind
from lamina.server.storage.encoding import encode_stored
from lamina.server.storage.store import Row

_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw


_METADATA = msgspec.json.Decoder(_MetadataOnly)


def versioned_json(kind: Kind, row: Row) -> bytes:
    """
    Return a row's JSON in a version of its kind, without apiVersion and kind.

    Rows of built-in kinds are stored in this form. A row of a custom kind may have been
    written under another schema; each version converts it once and caches the result.
    """
    if not (kind.custom or kind.converts):
        return row.value
    cache = row.cache
    if cache is None:
        cache = row.cache = {}
    value: bytes | None = cache.get(kind)
    if value is None:
        value = encode_stored(kind.shape.read(orjson.loads(row.value)))
        # One bytes object instead of two, if the conversion changes nothing.
        cache[kind] = value = row.value if value == row.value else value
    return value


def mark_current(kind: Kind, row: Row) -> None:
    """Note that a row was written in this version, so that no conversion is needed."""
    if kind.custom and not kind.converts:
        row.cache = {kind: row.value}


def with_type(kind: Kind, value: bytes) -> bytes:
    """Return an object's complete JSON, with apiVersion and kind."""
    return kind.prefix + value[1:]


def partial(value: bytes) -> bytes:
    """Return an object's metadata as PartialObjectMetadata."""
    return _PARTIAL + bytes(_METADATA.decode(value).metadata) + b"}"


def decode_row(kind: Kind, row: Row) -> Made:
    """Return a row as a new dict in a version of its kind, with apiVersion and kind."""
    return typed(kind, orjson.loads(versioned_json(kind, row)))


def typed(kind: Kind, obj: Made) -> Made:
    """Return the object with kind and apiVersion first."""
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}


def object_response(request: Request, kind: Kind, value: bytes, now: datetime, status: int = 200) -> Response:
    """Return an object, given as JSON without apiVersion and kind, in the requested representation."""
    accept = request.headers.get("accept", "")
    wanted = PLAIN if not accept or accept == "application/json" else negotiate(accept)
    if wanted is PLAIN:
        return Response(status, kind.prefix + value[1:])
    match wanted.form:
        case "Table":
            rows = table(kind, [typed(kind, orjson.loads(value))], now, include=include_object(request))
            rows["metadata"] = {"resourceVersion": orjson.loads(value)["metadata"].get("resourceVersion", "")}
            return encode(rows, wanted, status)
        case "PartialObjectMetadata":
            return encode_bytes(partial(value), wanted, status)
        case "PartialObjectMetadataList":
            if kind.custom:
                raise Unclassified("content is not a list")
            raise NotAcceptable(
                f"you requested {wanted.form}, but the requested object is not a list ({_go_type(kind, kind.kind)})"
            )
        case _:
            return encode_bytes(with_type(kind, value), wanted, status)


def list_response(
    request: Request, kind: Kind, values: Sequence[bytes], metadata: Mapping[str, Any], now: datetime
) -> Response:
    """Return a list of objects, given as JSON without apiVersion and kind, in the requested representation."""
    accept = request.headers.get("accept", "")
    wanted = PLAIN if not accept or accept == "application/json" else negotiate(accept)
    match wanted.form:
        case "Table":
            objects = [typed(kind, orjson.loads(value)) for value in values]
            rows = table(kind, objects, now, include=include_object(request))
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
    """Return the JSON of a list; items of built-in kinds have no apiVersion and kind, those of custom ones do."""
    if kind.custom:
        prefix = kind.prefix
        items = b",".join([prefix + value[1:] for value in values])
        metadata = {"continue": "", **metadata}
    else:
        items = b",".join(values)
    head = f'{{"kind":"{kind.list_kind}","apiVersion":"{kind.api_version}","metadata":'.encode()
    return b"".join((head, orjson.dumps(metadata), b',"items":[', items, b"]}"))


def _dump(value: object) -> bytes:
    from lamina.server.codec.yaml import dump_yaml

    return dump_yaml(value)


def encode(value: object, wanted: Representation, status: int = 200) -> Response:
    if wanted.media == "yaml":
        return Response(status, _dump(value), "application/yaml")
    return Response(status, orjson.dumps(value), wanted.content_type)


def encode_bytes(value: bytes, wanted: Representation, status: int = 200) -> Response:
    if wanted.media == "yaml":
        return Response(status, _dump(orjson.loads(value)), "application/yaml")
    return Response(status, value, wanted.content_type)


def negotiated_status(request: Request, response: Response) -> Response:
    """Return a Status as YAML if the client prefers it, otherwise as JSON."""
    accept = request.headers.get("accept", "")
    if accept in PLAIN_ACCEPTS or response.content_type != JSON or not isinstance(response.body, bytes):
        return response
    try:
        wanted = negotiate(accept)
    except NotAcceptable:
        return response
    if wanted.media == "yaml":
        response.body, response.content_type = _dump(orjson.loads(response.body)), "application/yaml"
    return response


def include_object(request: Request) -> str:
    """Return the `includeObject` parameter of a Table request."""
    include = request.parameter("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return include
