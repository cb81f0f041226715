"""
Bodies in: JSON, YAML or protobuf bytes to a dict, with what was said twice.

orjson is fast and keeps the last of two equal keys without a word. A body that
it prints back unchanged cannot have had any, and most clients send compact
JSON; the others are read once more by a parser that can tell.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from lamina.errors import UnsupportedMediaType
from lamina.objects.types import Made
from lamina.server import words
from lamina.server.declared import not_an_object
from lamina.server.kind import Findings
from lamina.server.misread import Misread, complaint

_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_YAML = ("application/yaml", "text/yaml", "application/x-yaml")
PROTOBUF = "application/vnd.kubernetes.protobuf"


def media_type(content_type: str) -> str:
    """Return a Content-Type without its parameters; absent means JSON."""
    if not content_type:
        return "application/json"
    return content_type.partition(";")[0].strip().lower()


def unsupported(accepted: str = _ACCEPTED) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    )


def unrouted() -> UnsupportedMediaType:
    """Return what is said where no endpoint takes the format, before anybody looks at the body."""
    error = UnsupportedMediaType("415: Unsupported Media Type")
    error.shows_details = True
    return error


def parse(data: bytes, content_type: str, findings: Findings, expected: tuple[str, str] = ("", "")) -> Made:
    """
    Return the object in a body of one of the three formats; raises Misread or UnsupportedMediaType.

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


def load(data: bytes) -> Any:
    """Return the value of a JSON text; raises Misread with what Go has against it."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if why := complaint(data):
            raise Misread(why) from None
        return _tolerated(data)


def parse_json(data: bytes, findings: Findings) -> Made:
    """Return the object in a JSON body; null is an object with nothing in it."""
    try:
        value = load(data)
    except Misread as problem:
        raise Misread(f"couldn't get version/kind; json parse error: {problem.why}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise not_an_object(value)
    if not is_printed_back(value, data):
        find_duplicates(data, findings)
    return value


def is_printed_back(value: Any, data: bytes) -> bool:
    """Say whether a value is printed as the very text it was read from: then nothing in it was said twice."""
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
    """Return the value of a YAML text. JSON is YAML, and most of what is sent as YAML is JSON: that is tried first."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        # Few bodies are YAML, and its parser takes longer to load than the rest of the way in.
        from lamina.server.yaml import YamlError, load_yaml, repeated_keys

        try:
            value = load_yaml(data)
        except YamlError as error:
            raise Misread(str(error)) from None
        findings.repeated(repeated_keys(data))
    else:
        twice = Findings()
        if not is_printed_back(value, data):
            find_duplicates(data, twice)
        if twice.sentences:
            from lamina.server.yaml import repeated_keys

            findings.repeated(repeated_keys(data))
    return value


def _tolerated(data: bytes) -> Any:
    """Return the value of a JSON text that Go reads and orjson does not: half of a pair of surrogates, for one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise words.too_deep() from None
    return _mended(value)


def _mended(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float() if math.isinf(value):
            raise Misread("json: cannot unmarshal number into Go value of type float64")
        case list():
            return [_mended(one) for one in value]
        case dict():
            return {_mended(key): _mended(one) for key, one in value.items()}
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written: every key, also one that stands twice, in order."""


def find_duplicates(data: bytes, findings: Findings) -> None:
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
