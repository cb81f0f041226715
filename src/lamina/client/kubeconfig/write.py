"""
Write a kubeconfig repeatedly into a file that users may edit in between.

The server writes the entries of its own clusters. Entries of other clusters, the
namespaces of contexts and the choice between the server's contexts are kept. A
current context of another cluster is not: the server's kubeconfig selects the server.
"""

from __future__ import annotations

import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.client.kubeconfig.read import Access

_HEAD = {"apiVersion": "v1", "kind": "Config"}
_CHECKSUM = "# written by lamina, sha256: "
_CURRENT = "current-context:"
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}


def kubeconfig_text(access: Access, name: str) -> str:
    """Return a kubeconfig with one context."""
    context = {"cluster": name, "user": name, "namespace": access.namespace}
    return _text(
        {
            **_HEAD,
            "clusters": [{"name": name, "cluster": _cluster(access)}],
            "users": [{"name": name, "user": _user(access)}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
        }
    )


class _Existing(Struct, frozen=True):
    """The parts of an existing file that are kept: current context, namespaces of our contexts, foreign entries."""

    current: str = ""
    namespaces: Mapping[str, str] = {}
    entries: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    rest: Mapping[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.rest or any(self.entries.values()) or set(self.namespaces.values()) - {"default"})


class _Foreign(dict[str, Any]):
    """An entry that Lamina did not write; written back unchanged."""


def write_kubeconfig(
    file: Path, access: Access, *, name: str = "lamina", others: Mapping[str, Access] | None = None
) -> None:
    """
    Write a kubeconfig with a context for each access, readable for its owner only.

    The file is replaced atomically, so one that exists is complete. `name` is the
    current context. Where `others` is given, the current context among them, the
    namespaces and the foreign entries of an existing file are kept. A file that
    cannot be read is renamed to `NAME.old`.
    """
    # A symbolic link is followed: its target is replaced.
    file = file.resolve()
    accesses = {name: access, **(others or {})}
    existing = _existing(file, name, accesses) if others is not None else _Existing()
    foreign = {section: [_Foreign(one) for one in existing.entries.get(section, ())] for section in _SECTIONS}
    contexts = [
        {
            "name": one,
            "context": {
                "cluster": one,
                "user": one,
                "namespace": existing.namespaces.get(one) or access.namespace,
            },
        }
        for one, access in accesses.items()
    ]
    ours = {
        *accesses,
        *(one["name"] for one in foreign["contexts"] if str(one["context"].get("cluster")) in accesses),
    }
    document = {
        **_HEAD,
        "clusters": [
            *({"name": one, "cluster": _cluster(access)} for one, access in accesses.items()),
            *foreign["clusters"],
        ],
        "users": [
            *({"name": one, "user": _user(access)} for one, access in accesses.items()),
            *foreign["users"],
        ],
        "contexts": [*contexts, *foreign["contexts"]],
        "current-context": existing.current if existing.current in ours else name,
        **{key: _Foreign(value) for key, value in existing.rest.items()},
    }
    text = _text(document)
    _replace(file, text + _checksum(text) if existing.is_empty else text)


def _existing(file: Path, name: str, accesses: Mapping[str, Access]) -> _Existing:
    """Return the parts of an existing file that are kept."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return _Existing()
    except (OSError, UnicodeDecodeError):
        return _rename_invalid(file)
    if _is_unedited(text):
        return _Existing(_current(text))
    # Imported here because it loads slowly.
    import yaml

    try:
        document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return _rename_invalid(file)
    if document is None:
        return _Existing()
    return (
        _read_existing(document, name, accesses) if isinstance(document, Mapping) else _rename_invalid(file)
    )


def _rename_invalid(file: Path) -> _Existing:
    """Rename a file that is no kubeconfig."""
    file.replace(file.with_name(f"{file.name}.old"))
    return _Existing()


def _checksum(text: str) -> str:
    """Return the last line of a file, with which `_is_unedited` recognizes a file that was not edited."""
    return f"{_CHECKSUM}{sha256(text.encode()).hexdigest()}\n"


def _is_unedited(text: str) -> bool:
    """Return whether a file is as written, except for its current context."""
    written, separator, _ = text.rpartition(_CHECKSUM)
    return bool(separator) and text == written + _checksum(written)


def _read_existing(document: Mapping[str, Any], name: str, accesses: Mapping[str, Access]) -> _Existing:
    found = {section: _named(document.get(section), inner) for section, inner in _SECTIONS.items()}
    primary = found["clusters"].get(name, {}).get("cluster") or {}
    servers = {accesses[name].server, str(primary.get("server") or accesses[name].server)}
    # Other clusters whose URL and name belong to this server were deleted on it.
    deleted = {
        one
        for one, entry in found["clusters"].items()
        if entry["cluster"].get("server") in {f"{server}/clusters/{one}" for server in servers}
    }
    ours = {*accesses, *deleted}
    entries = {
        section: [entry for one, entry in found[section].items() if one not in ours]
        for section in ("clusters", "users")
    }
    stale = ours - accesses.keys()
    entries["contexts"] = [
        entry
        for one, entry in found["contexts"].items()
        if one not in ours and str(entry["context"].get("cluster")) not in stale
    ]
    namespaces = {
        one: str(entry["context"].get("namespace") or "")
        for one, entry in found["contexts"].items()
        if one in accesses
    }
    known = {*_HEAD, *_SECTIONS, "current-context"}
    rest = {key: value for key, value in document.items() if key not in known and isinstance(value, dict)}
    return _Existing(str(document.get("current-context") or ""), namespaces, entries, rest)


def _named(entries: object, inner: str) -> dict[str, Mapping[str, Any]]:
    """Return the valid entries of a section, by name."""
    listed = entries if isinstance(entries, list) else []
    return {
        one["name"]: one
        for one in listed
        if isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get(inner), dict)
    }


def _user(access: Access) -> dict[str, Any]:
    user = {
        "client-certificate-data": _encoded(access.certificate),
        "client-key-data": _encoded(access.key),
        "client-certificate": str(access.certificate_file or ""),
        "client-key": str(access.key_file or ""),
        "token": access.token,
        "tokenFile": str(access.token_file) if access.token_file else "",
        "username": access.username,
        "password": access.password,
        "as": access.as_user,
        "as-uid": access.as_uid,
        "as-groups": list(access.as_groups),
        "as-user-extra": {json.dumps(key): list(values) for key, values in access.as_extra.items()},
    }
    return _without_empty(user)


def _cluster(access: Access) -> dict[str, Any]:
    cluster = {
        "server": access.server,
        "certificate-authority-data": _encoded(access.authority),
        "insecure-skip-tls-verify": access.insecure,
        "tls-server-name": access.tls_name,
        "proxy-url": access.proxy,
    }
    return _without_empty(cluster)


def _current(text: str) -> str:
    """Return the current context of a kubeconfig that Lamina wrote."""
    found = [line.removeprefix(_CURRENT) for line in text.splitlines() if line.startswith(_CURRENT)]
    return found[0].strip().strip("\"'") if found else ""


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(handle, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _text(value: Any, indent: str = "") -> str:
    """Return YAML; the YAML library loads too slowly for the start of a server."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, _Foreign):
            lines.append(f"{indent}{key}: {json.dumps(inner, default=str)}\n")
        elif isinstance(inner, dict):
            lines.append(f"{indent}{key}:\n{_text(inner, indent + '  ')}")
        elif isinstance(inner, list) and all(isinstance(item, dict) for item in inner):
            items = [_item(item, f"{indent}  ") for item in inner]
            lines.append(f"{indent}{key}:\n" + "".join(f"{indent}- {item}" for item in items))
        else:
            lines.append(f"{indent}{key}: {json.dumps(inner)}\n")
    return "".join(lines)


def _item(item: dict[str, Any], indent: str) -> str:
    if isinstance(item, _Foreign):
        return f"{json.dumps(item, default=str)}\n"
    return _text(item, indent).lstrip()


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if value}


def _encoded(content: bytes) -> str:
    return b64encode(content).decode()
