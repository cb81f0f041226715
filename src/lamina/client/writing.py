"""
Writing a kubeconfig, again and again, into a file that people change meanwhile.

What leads to a server's clusters is the server's to write. Which of them is the
current context, the namespaces that contexts were set to, and ways to other
clusters are whoever's they were, and stay. A current context that leads elsewhere
does not: whoever asks for the server's kubeconfig wants to reach the server.
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

from lamina.client.kubeconfig import Access

_HEAD = {"apiVersion": "v1", "kind": "Config"}
_SEAL = "# as it was written: "
_CURRENT = "current-context:"
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}


class _Kept(Struct, frozen=True):
    """What was in a file that is not ours to write: the current context, namespaces of ours, and everything else."""

    current: str = ""
    namespaces: Mapping[str, str] = {}
    entries: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    rest: Mapping[str, Any] = {}

    @property
    def is_nothing(self) -> bool:
        return not (self.rest or any(self.entries.values()) or set(self.namespaces.values()) - {"default"})


class _Theirs(dict[str, Any]):
    """An entry that somebody else wrote, to be written as it was."""


def write_kubeconfig(
    file: Path, access: Access, *, name: str = "lamina", others: Mapping[str, Access] | None = None
) -> None:
    """
    Write a kubeconfig with a context for each access, for its owner's eyes only.

    The file appears whole or not at all: waiting for it is waiting for a
    kubeconfig that works. Of the contexts, `name` is the current one. Where there
    may be others, what somebody else wrote to the file that is there already stays:
    which of them is the current one, in which namespace, and whatever leads elsewhere.
    One that cannot be read is set aside, with `.old` after its name.
    """
    # Where it is a link, what it leads to is what is meant.
    file = file.resolve()
    every = {name: access, **(others or {})}
    kept = _kept(file, name, every) if others is not None else _Kept()
    theirs = {section: [_Theirs(one) for one in kept.entries.get(section, ())] for section in _SECTIONS}
    contexts = [
        {
            "name": one,
            "context": {
                "cluster": one,
                "user": one,
                "namespace": kept.namespaces.get(one) or access.namespace,
            },
        }
        for one, access in every.items()
    ]
    here = {
        *every,
        *(one["name"] for one in theirs["contexts"] if str(one["context"].get("cluster")) in every),
    }
    document = {
        **_HEAD,
        "clusters": [
            *({"name": one, "cluster": _cluster(access)} for one, access in every.items()),
            *theirs["clusters"],
        ],
        "users": [
            *({"name": one, "user": _user(access)} for one, access in every.items()),
            *theirs["users"],
        ],
        "contexts": [*contexts, *theirs["contexts"]],
        "current-context": kept.current if kept.current in here else name,
        **{key: _Theirs(value) for key, value in kept.rest.items()},
    }
    text = _text(document)
    _replace(file, text + _seal(text) if kept.is_nothing else text)


def _kept(file: Path, name: str, every: Mapping[str, Access]) -> _Kept:
    """Return what is in a file that is there, and is not ours to write."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return _Kept()
    except (OSError, UnicodeDecodeError):
        return _set_aside(file)
    if _is_all_ours(text):
        return _Kept(_current(text))
    # Only now: it takes long to load.
    import yaml

    try:
        document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return _set_aside(file)
    if document is None:
        return _Kept()
    return _theirs(document, name, every) if isinstance(document, Mapping) else _set_aside(file)


def _set_aside(file: Path) -> _Kept:
    """Keep a file that is no kubeconfig, beside the one that is to be there."""
    file.replace(file.with_name(f"{file.name}.old"))
    return _Kept()


def _seal(text: str) -> str:
    """Return the line by which a file is known again that nobody else has written to."""
    return f"{_SEAL}{sha256(text.encode()).hexdigest()}\n"


def _is_all_ours(text: str) -> bool:
    """Say whether a file is as we wrote it, with nothing of anybody else's in it but the current context."""
    written, mark, _ = text.rpartition(_SEAL)
    return bool(mark) and text == written + _seal(written)


def _theirs(document: Mapping[str, Any], name: str, every: Mapping[str, Access]) -> _Kept:
    found = {section: _named(document.get(section), inner) for section, inner in _SECTIONS.items()}
    first = found["clusters"].get(name, {}).get("cluster") or {}
    places = {every[name].server, str(first.get("server") or every[name].server)}
    # Whatever else is called after a cluster of this server is one that there was.
    beside = {
        one
        for one, entry in found["clusters"].items()
        if entry["cluster"].get("server") in {f"{place}/clusters/{one}" for place in places}
    }
    ours = {*every, *beside}
    entries = {
        section: [entry for one, entry in found[section].items() if one not in ours]
        for section in ("clusters", "users")
    }
    gone = ours - every.keys()
    entries["contexts"] = [
        entry
        for one, entry in found["contexts"].items()
        if one not in ours and str(entry["context"].get("cluster")) not in gone
    ]
    namespaces = {
        one: str(entry["context"].get("namespace") or "")
        for one, entry in found["contexts"].items()
        if one in every
    }
    known = {*_HEAD, *_SECTIONS, "current-context"}
    rest = {key: value for key, value in document.items() if key not in known and isinstance(value, dict)}
    return _Kept(str(document.get("current-context") or ""), namespaces, entries, rest)


def _named(entries: object, inner: str) -> dict[str, Mapping[str, Any]]:
    """Return the entries of a section that make sense, by their names."""
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
        "token": access.token,
        "tokenFile": str(access.token_file) if access.token_file else "",
        "username": access.username,
        "password": access.password,
        "as": access.as_user,
        "as-uid": access.as_uid,
        "as-groups": list(access.as_groups),
        "as-user-extra": {json.dumps(key): list(values) for key, values in access.as_extra.items()},
    }
    return _said(user)


def _cluster(access: Access) -> dict[str, Any]:
    cluster = {
        "server": access.server,
        "certificate-authority-data": _encoded(access.authority),
        "insecure-skip-tls-verify": access.insecure,
        "tls-server-name": access.tls_name,
    }
    return _said(cluster)


def _current(text: str) -> str:
    """Return the current context of a kubeconfig that we wrote."""
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
    """Return plain YAML: a server writes its kubeconfig when it is in a hurry, and YAML's writer takes long to load."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, _Theirs):
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
    if isinstance(item, _Theirs):
        return f"{json.dumps(item, default=str)}\n"
    return _text(item, indent).lstrip()


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if value}


def _encoded(content: bytes) -> str:
    return b64encode(content).decode()
