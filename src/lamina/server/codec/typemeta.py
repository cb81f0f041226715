"""The apiVersion and kind of a body, and whether the endpoint accepts them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import orjson

from lamina.errors import BadRequest
from lamina.merge.scale_ownership import SCALE
from lamina.objects.types import Obj
from lamina.server.decode_errors import DecodeError, unhandled, unrecognized
from lamina.server.field_errors import invalid, invalid_named
from lamina.server.kinds.builtin.catalogue import CATALOGUE
from lamina.server.kinds.builtin.decode_scalars import json_type
from lamina.server.kinds.kind import Kind

_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'


def check_type(kind: Kind, parsed: Obj, data: bytes) -> None:
    """Refuse a body of another type; for built-in kinds it is optional. `data` is the undecoded body."""
    api_version, named = parsed.get("apiVersion"), parsed.get("kind")
    if api_version == kind.api_version and named == kind.kind:
        return
    for field, value in (("apiVersion", api_version), ("kind", named)):
        if value is not None and not isinstance(value, str):
            message = (
                f"json: cannot unmarshal {json_type(value)} into Go struct field .{field} of type string"
            )
            raise unrecognized(kind.kind, data, f"couldn't get version/kind; json parse error: {message}")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        raise unrecognized(kind.kind, data, f"unexpected GroupVersion string: {api_version}")
    if kind.custom:
        _check_custom(kind, parsed, data)
    elif (named and named != kind.kind) or (api_version and api_version != kind.api_version):
        group, _, version = str(api_version or kind.api_version).rpartition("/")
        named = named or kind.kind
        if named == kind.kind and (group, version) in _OLD_VERSIONS and group == kind.group:
            raise _other_version(str(api_version), kind.api_version)
        package = kind.group.partition(".")[0] or "core"
        message = _conversion_error(f"{package}.{kind.kind}", group, version, named)
        raise unhandled(named, version, kind.kind, message)


_OLD_VERSIONS: Final = frozenset({("apps", "v1beta1"), ("apps", "v1beta2")})
"""Versions that are no longer served but still registered, because objects may be stored in them."""


def check_scale(parsed: Obj) -> None:
    """Refuse a body that is no Scale."""
    api_version, named = parsed.get("apiVersion") or SCALE, parsed.get("kind") or "Scale"
    if (api_version, named) != (SCALE, "Scale"):
        group, _, version = str(api_version).rpartition("/")
        raise unhandled(
            named, version, "Scale", _conversion_error("autoscaling.Scale", group, version, named)
        )


def _conversion_error(wanted: str, group: str, version: str, named: str) -> str:
    if (group, version, named) in _known():
        return f"converting ({version}.{named}) to ({wanted}): unknown conversion"
    return unregistered(f"{group}/{version}" if group else version, named)


def _other_version(given: str, expected: str) -> BadRequest:
    return BadRequest(
        f"the API version in the data ({given}) does not match the expected API version ({expected})"
    )


def unregistered(api_version: str, named: str) -> str:
    """Return the message for a kind that is not registered."""
    return f'no kind "{named}" is registered for version "{api_version}" {_SCHEME}'


@cache
def _known() -> frozenset[tuple[str, str, str]]:
    """Return the built-in kinds and their list kinds."""
    return frozenset(
        (one.group, one.version, named) for one in CATALOGUE for named in (one.kind, one.list_kind)
    )


def _check_custom(kind: Kind, parsed: Obj, data: bytes) -> None:
    api_version, named = parsed.get("apiVersion") or "", parsed.get("kind") or ""
    if not named:
        text = data.decode("utf-8", "replace")
        raise unrecognized(kind.kind, data, f"Object 'Kind' is missing in '{text}'")
    if api_version != kind.api_version:
        raise _other_version(api_version, kind.api_version)
    metadata = parsed.get("metadata")
    check_unchanged(kind, api_version, named, metadata.get("name", "") if isinstance(metadata, dict) else "")


def check_unchanged(kind: Kind, api_version: str, named: str, name: str) -> None:
    """Refuse a custom object whose apiVersion or kind was changed."""
    group = api_version.rpartition("/")[0]
    causes = []
    if named != kind.kind:
        causes.append(invalid("kind", named, f"must be {kind.kind}"))
    if api_version != kind.api_version:
        causes.append(invalid("apiVersion", api_version, f"must be {kind.api_version}"))
    if causes:
        raise invalid_named(named, group, name, causes)


def not_an_object(value: Any) -> DecodeError:
    """Return the error for a JSON value that is no object."""
    return DecodeError(
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type(value)} into Go value of type "
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    )


def declared_name(data: bytes) -> str:
    """Return the name in a JSON body, as far as it can be read."""
    try:
        metadata = orjson.loads(data)["metadata"]
        return str(metadata.get("name") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
