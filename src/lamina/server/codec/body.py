"""
Decode JSON, YAML and protobuf bodies, and find duplicate fields.

orjson silently keeps the last of duplicate keys. A body that it encodes to the same
bytes has no duplicates, and most clients send compact JSON; other bodies are parsed
again by a parser that reports them.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from lamina.errors import UnsupportedMediaType
from lamina.objects.types import Made
from lamina.server import status_errors
from lamina.server.codec.typemeta import not_an_object
from lamina.server.decode_errors import DecodeError, json_syntax_error
from lamina.server.kinds.kind import Findings

_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_YAML = ("application/yaml", "text/yaml", "application/x-yaml")
PROTOBUF = "application/vnd.kubernetes.protobuf"


def media_type(content_type: str) -> str:
    """Return a Content-Type without its parameters; the default is JSON."""
    if not content_type:
        return "application/json"
    return content_type.partition(";")[0].strip().lower()


def unsupported(accepted: str = _ACCEPTED) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    )


def unsupported_by_route() -> UnsupportedMediaType:
    """Return the error of a route that does not accept the content type; it is returned before decoding."""
    error = UnsupportedMediaType("415: Unsupported Media Type")
    error.shows_details = True
    return error


def parse(data: bytes, content_type: str, findings: Findings, expected: tuple[str, str] = ("", "")) -> Made:
    """
    Return the object in a body; raises DecodeError or UnsupportedMediaType.

    `expected` is the apiVersion and kind of the endpoint, for bodies without their own.
    """
    media = media_type(content_type)
    if media == "application/json":
        return parse_json(data, findings)
    if media in _YAML:
        return parse_yaml(data, findings)
    if media == PROTOBUF:
        from lamina.server.codec.protobuf import decode

        return decode(data, expected)[2]
    raise unsupported()


def load(data: bytes) -> Any:
    """Return the value of JSON; raises DecodeError with Go's message."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if message := json_syntax_error(data):
            raise DecodeError(message) from None
        return _lenient_json(data)


def parse_json(data: bytes, findings: Findings) -> Made:
    """Return the object in a JSON body; null is an empty object."""
    try:
        value = load(data)
    except DecodeError as problem:
        raise DecodeError(f"couldn't get version/kind; json parse error: {problem.why}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise not_an_object(value)
    if not round_trips(value, data):
        find_duplicates(data, findings)
    return value


def round_trips(value: Any, data: bytes) -> bool:
    """Return whether a value is encoded to the bytes it was decoded from: then it has no duplicate keys."""
    try:
        return orjson.dumps(value) == data
    except (TypeError, orjson.JSONEncodeError):
        return False


def parse_yaml(data: bytes, findings: Findings) -> Made:
    """Return the object in a YAML body."""
    value = load_yaml_body(data, findings)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise not_an_object(value)
    return value


def load_yaml_body(data: bytes, findings: Findings) -> Any:
    """Return the value of YAML. It is tried as JSON first, which is valid YAML and often sent as YAML."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        # Imported here because it loads slowly and few bodies are YAML.
        from lamina.server.codec.yaml import YamlError, load_yaml, repeated_keys

        try:
            value = load_yaml(data)
        except YamlError as error:
            raise DecodeError(str(error)) from None
        findings.repeated(repeated_keys(data))
    else:
        duplicates = Findings()
        if not round_trips(value, data):
            find_duplicates(data, duplicates)
        if duplicates.sentences:
            from lamina.server.codec.yaml import repeated_keys

            findings.repeated(repeated_keys(data))
    return value


def _lenient_json(data: bytes) -> Any:
    """Return the value of JSON that Go accepts and orjson does not, such as an unpaired surrogate."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise status_errors.too_deep() from None
    return _replace_surrogates(value)


def _replace_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float() if math.isinf(value):
            raise DecodeError("json: cannot unmarshal number into Go value of type float64")
        case list():
            return [_replace_surrogates(one) for one in value]
        case dict():
            return {_replace_surrogates(key): _replace_surrogates(one) for key, one in value.items()}
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as a list of all its keys in order, duplicates included."""


def find_duplicates(data: bytes, findings: Findings) -> None:
    """Report every duplicate key by its path."""
    for path, count in _key_counts(data):
        if count == 2:
            findings.duplicate(path)


def sort_findings(data: bytes, sentences: list[str]) -> list[str]:
    """Return the messages in the order in which Go's decoder reports them: a duplicate at its second occurrence."""
    place = {
        f'{"unknown" if count == 1 else "duplicate"} field "{path}"': index
        for index, (path, count) in enumerate(_key_counts(data))
        if count <= 2
    }
    return sorted(sentences, key=lambda sentence: place.get(sentence, len(place)))


def _key_counts(data: bytes) -> list[tuple[str, int]]:
    """Return the path of every key in order, and how often it has occurred so far."""
    try:
        root = json.loads(data, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    counts: list[tuple[str, int]] = []
    _walk(root, "", counts)
    return counts


def _walk(value: Any, path: str, found: list[tuple[str, int]]) -> None:
    if isinstance(value, _Pairs):
        counts: dict[str, int] = {}
        for key, inner in value:
            counts[key] = counts.get(key, 0) + 1
            here = f"{path}.{key}" if path else key
            found.append((here, counts[key]))
            _walk(inner, here, found)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _walk(inner, f"{path}[{index}]", found)
