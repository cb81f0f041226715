"""
Bodies in: JSON, YAML or protobuf bytes to a dict, with what was said twice.

orjson is fast and keeps the last of two equal keys without a word. A body that
it prints back unchanged cannot have had any, and most clients send compact
JSON; the others are read once more by a parser that can tell.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from lamina.errors import BadRequest, UnsupportedMediaType
from lamina.objects.types import Made
from lamina.server.kind import Findings

_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_YAML = ("application/yaml", "text/yaml", "application/x-yaml")
PROTOBUF = "application/vnd.kubernetes.protobuf"


def media_type(content_type: str) -> str:
    """Return a Content-Type without its parameters; absent means JSON."""
    return content_type.partition(";")[0].strip().lower() or "application/json"


def unsupported(accepted: str = _ACCEPTED) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    )


def parse(data: bytes, content_type: str, findings: Findings, expected: tuple[str, str] = ("", "")) -> Made:
    """
    Return the object in a body of one of the three formats; raises BadRequest or UnsupportedMediaType.

    `expected` is the apiVersion and kind of the endpoint, for bodies that do not say theirs.
    """
    media = media_type(content_type)
    if media == "application/json":
        return parse_json(data, findings)
    if media in _YAML:
        return parse_yaml(data, findings)
    if media == PROTOBUF:
        from lamina.server.protobuf import decode

        return decode(data, expected)[2]
    raise unsupported()


def parse_json(data: bytes, findings: Findings) -> Made:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{_go_words(data, error)}") from None
    if not isinstance(value, dict):
        raise BadRequest(f"couldn't get version/kind; json parse error: {_not_an_object(value)}")
    try:
        compact = orjson.dumps(value) == data
    except (TypeError, orjson.JSONEncodeError):
        compact = False
    if not compact:
        _find_duplicates(data, findings)
    return value


def parse_yaml(data: bytes, findings: Findings) -> Made:
    """Return the object in a YAML body. JSON is YAML, and most of what is sent as YAML is JSON: that is tried first."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        # Few bodies are YAML, and its parser takes longer to load than the rest of the way in.
        from lamina.server.yaml import YamlError, load_yaml

        try:
            value = load_yaml(data, findings.duplicate)
        except YamlError as error:
            raise BadRequest(f"error converting YAML to JSON: {error}") from None
    else:
        _find_duplicates(data, findings)
    if not isinstance(value, dict):
        raise BadRequest(f"couldn't get version/kind; json parse error: {_not_an_object(value)}")
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written: every key, also one that stands twice, in order."""


def _find_duplicates(data: bytes, findings: Findings) -> None:
    """Report every key that stands twice in one object, by its path."""
    for path, count in _said(data):
        if count == 2:
            findings.duplicate(path)


def in_order(data: bytes, sentences: list[str]) -> list[str]:
    """Return sentences about fields in the order a decoder would meet them: a repetition when it is repeated."""
    place = {
        f'{"unknown" if count == 1 else "duplicate"} field "{path}"': index
        for index, (path, count) in enumerate(_said(data))
        if count <= 2
    }
    return sorted(sentences, key=lambda sentence: place.get(sentence, len(place)))


def _said(data: bytes) -> list[tuple[str, int]]:
    """Return the path of every key of a JSON text in its order, and how often it has been said by then."""
    try:
        root = json.loads(data, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    said: list[tuple[str, int]] = []
    _walk(root, "", said)
    return said


def _walk(value: Any, path: str, said: list[tuple[str, int]]) -> None:
    if isinstance(value, _Pairs):
        counts: dict[str, int] = {}
        for key, inner in value:
            counts[key] = counts.get(key, 0) + 1
            here = f"{path}.{key}" if path else key
            said.append((here, counts[key]))
            _walk(inner, here, said)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _walk(inner, f"{path}[{index}]", said)


def _not_an_object(value: Any) -> str:
    named = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}.get(
        type(value), "null"
    )
    return (
        f"json: cannot unmarshal {named} into Go value of type struct "
        '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    )


def _go_words(data: bytes, error: orjson.JSONDecodeError) -> str:
    """Say what is wrong with a JSON text in the words of Go's decoder, as far as they can be told."""
    if not data.strip():
        return "unexpected end of JSON input"
    position = error.pos
    text = data.decode("utf-8", "replace")
    if position >= len(text.rstrip()):
        return "unexpected end of JSON input"
    return f"invalid character {text[position]!r} looking for beginning of value"
