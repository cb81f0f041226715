"""ConfigMaps, Secrets and Namespaces."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

import orjson

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.decode_errors import json_syntax_error
from lamina.server.field_errors import each, forbidden, immutable, invalid, required, too_long
from lamina.server.kinds.builtin.validate.parts import items, part, text
from lamina.server.kinds.metadata import check_finalizers

DATA_LIMIT = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
_NEEDED = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _size(values: Iterable[str]) -> int:
    return sum(len(one) if one.isascii() else len(one.encode("utf-8", "surrogatepass")) for one in values)


def _decoded_size(values: Iterable[str]) -> int:
    """Return the decoded size of base64 texts."""
    return sum(len(one) * 3 // 4 - one.count("=", -2) for one in values)


def _keys(data: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for key in data:
        if problem := names.config_key(key):
            causes += each(f"{path}[{key}]", key, problem)
    return causes


def config_map(obj: Obj) -> list[Cause]:
    data, binary = part(obj, "data"), part(obj, "binaryData")
    causes = _keys(data, "data")
    if binary:
        detail = "duplicate of key present in binaryData"
        causes += (invalid(f"data[{key}]", key, detail) for key in data if key in binary)
        causes += _keys(binary, "binaryData")
    if _size(data.values()) + _decoded_size(binary.values()) > DATA_LIMIT:
        causes.append(too_long("[]", DATA_LIMIT))
    return causes


def config_map_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _kept(new, old, "data", "binaryData") + config_map(new)


def _kept(new: Obj, old: Obj, *fields: str) -> list[Cause]:
    if not old.get("immutable"):
        return []
    causes = [] if new.get("immutable") else [forbidden("immutable", _FIXED)]
    causes += (forbidden(field, _FIXED) for field in fields if part(new, field) != part(old, field))
    return causes


def secret(obj: Obj) -> list[Cause]:
    data, kind = part(obj, "data"), text(obj, "type")
    causes = _keys(data, "data")
    if _decoded_size(data.values()) > DATA_LIMIT:
        causes.append(too_long("data", DATA_LIMIT))
    if kind == "kubernetes.io/service-account-token":
        if not part(part(obj, "metadata"), "annotations").get(_ACCOUNT):
            causes.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            causes += required("data[username]"), required("data[password]")
    elif kind in _DOCKER:
        causes += _docker(data, _DOCKER[kind])
    else:
        empty_is_missing = kind == "kubernetes.io/ssh-auth"
        for key in _NEEDED.get(kind, ()):
            if key not in data or (empty_is_missing and not data[key]):
                causes.append(required(f"data[{key}]"))
    return causes


def _docker(data: Obj, key: str) -> list[Cause]:
    if key not in data:
        return [required(f"data[{key}]")]
    problem = ""
    content = b""
    try:
        content = b64decode(data[key])
        if not content:
            problem = "unexpected end of JSON input"
        else:
            found: Any = orjson.loads(content)
            if found is not None and not isinstance(found, dict):
                problem = (
                    f"json: cannot unmarshal {_kind(found)} into Go value of type map[string]interface {{}}"
                )
    except (ValueError, binascii.Error):
        problem = json_syntax_error(content)
    return [invalid(f"data[{key}]", "<secret contents redacted>", problem)] if problem else []


def _kind(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case list():
            return "array"
        case _:
            return "number"


def secret_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = immutable("type", text(new, "type"), text(old, "type"))
    return causes + _kept(new, old, "data") + secret(new)


def namespace(obj: Obj) -> list[Cause]:
    found = items(part(obj, "spec"), "finalizers")
    return [
        cause._replace(field="spec.finalizers")
        for cause in check_finalizers(found, "spec.finalizers", strict=True)
    ]


def namespace_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    match subresource:
        case "status":
            deleting = part(new, "metadata").get("deletionTimestamp") is not None
            phase, state = text(part(new, "status"), "phase"), "is not" if deleting else "is"
            expected = "Terminating" if deleting else "Active"
            if phase == expected:
                return []
            detail = f"may only be '{expected}' if `deletionTimestamp` {state} empty"
            return [invalid("status.Phase", phase, detail)]
        case "finalize":
            causes: list[Cause] = []
            for index, one in enumerate(items(part(new, "spec"), "finalizers")):
                item_path = f"spec.finalizers[{index}]"
                causes += (
                    c._replace(field=item_path) for c in check_finalizers([one], item_path, strict=True)
                )
            return causes
        case _:
            return namespace(new)
