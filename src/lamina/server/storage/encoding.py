"""The canonical encoding of stored objects: equal objects have equal bytes."""

from __future__ import annotations

import orjson

from lamina.objects.types import Obj

_FRAME = frozenset(("apiVersion", "kind", "metadata"))


def encode_stored(obj: Obj) -> bytes:
    """Return an object's JSON without apiVersion and kind: metadata first, all keys sorted."""
    metadata = orjson.dumps(obj["metadata"], option=orjson.OPT_SORT_KEYS)
    rest = {name: value for name, value in obj.items() if name not in _FRAME}
    if not rest:
        return b'{"metadata":' + metadata + b"}"
    return b'{"metadata":' + metadata + b"," + orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)[1:]
