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
from lamina.server.builtin.validate.parts import items, part, text
from lamina.server.fields import each, forbidden, immutable, invalid, required, too_long
from lamina.server.metadata import check_finalizers
from lamina.server.misread import complaint

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
    """Return how many bytes texts in base64 stand for."""
    return sum(len(one) * 3 // 4 - one.count("=", -2) for one in values)


def _keys(data: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    for key in data:
        if wrong := names.config_key(key):
            said += each(f"{path}[{key}]", key, wrong)
    return said


def config_map(obj: Obj) -> list[Cause]:
    data, binary = part(obj, "data"), part(obj, "binaryData")
    said = _keys(data, "data")
    if binary:
        told = "duplicate of key present in binaryData"
        said += (invalid(f"data[{key}]", key, told) for key in data if key in binary)
        said += _keys(binary, "binaryData")
    if _size(data.values()) + _decoded_size(binary.values()) > DATA_LIMIT:
        said.append(too_long("[]", DATA_LIMIT))
    return said


def config_map_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _kept(new, old, "data", "binaryData") + config_map(new)


def _kept(new: Obj, old: Obj, *fields: str) -> list[Cause]:
    if not old.get("immutable"):
        return []
    said = [] if new.get("immutable") else [forbidden("immutable", _FIXED)]
    said += (forbidden(field, _FIXED) for field in fields if part(new, field) != part(old, field))
    return said


def secret(obj: Obj) -> list[Cause]:
    data, kind = part(obj, "data"), text(obj, "type")
    said = _keys(data, "data")
    if _decoded_size(data.values()) > DATA_LIMIT:
        said.append(too_long("data", DATA_LIMIT))
    if kind == "kubernetes.io/service-account-token":
        if not part(part(obj, "metadata"), "annotations").get(_ACCOUNT):
            said.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            said += required("data[username]"), required("data[password]")
    elif kind in _DOCKER:
        said += _docker(data, _DOCKER[kind])
    else:
        empty_is_missing = kind == "kubernetes.io/ssh-auth"
        for key in _NEEDED.get(kind, ()):
            if key not in data or (empty_is_missing and not data[key]):
                said.append(required(f"data[{key}]"))
    return said


def _docker(data: Obj, key: str) -> list[Cause]:
    if key not in data:
        return [required(f"data[{key}]")]
    wrong = ""
    content = b""
    try:
        content = b64decode(data[key])
        if not content:
            wrong = "unexpected end of JSON input"
        else:
            found: Any = orjson.loads(content)
            if found is not None and not isinstance(found, dict):
                wrong = (
                    f"json: cannot unmarshal {_kind(found)} into Go value of type map[string]interface {{}}"
                )
    except (ValueError, binascii.Error):
        wrong = complaint(content)
    return [invalid(f"data[{key}]", "<secret contents redacted>", wrong)] if wrong else []


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
    said = immutable("type", text(new, "type"), text(old, "type"))
    return said + _kept(new, old, "data") + secret(new)


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
            told = f"may only be '{expected}' if `deletionTimestamp` {state} empty"
            return [invalid("status.Phase", phase, told)]
        case "finalize":
            said: list[Cause] = []
            for index, one in enumerate(items(part(new, "spec"), "finalizers")):
                here = f"spec.finalizers[{index}]"
                said += (c._replace(field=here) for c in check_finalizers([one], here, strict=True))
            return said
        case _:
            return namespace(new)
