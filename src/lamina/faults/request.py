"""What a request asks for, as far as faults tell requests apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lamina.objects.routes import take_apart

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")

_ON_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_KIND = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class Asked(NamedTuple):
    """
    One request: its verb, the plural it is about (none for a page), what is below the object, who asks.

    `resumes` says whether it goes on where an earlier answer ended: at a version
    or with a token that only a server that remembers can understand. `opens` says
    whether it is a watch that tells first what exists, and marks the end of that.
    """

    verb: str
    resource: str
    below: str
    path: str
    user: str
    resumes: bool = False
    opens: bool = False


def asked(method: str, path: str, query: Mapping[str, str], user: str = "") -> Asked:
    """Return what a request asks for; `query` has the first value of each parameter."""
    parts = take_apart(path)
    if parts is None:
        return Asked("get", "", "", path, user)
    watching = method == "GET" and (parts.watch or (not parts.name and _is_set(query, "watch")))
    if watching:
        verb = "watch"
    elif method == "POST":
        verb = "create"
    else:
        verb = (_ON_OBJECT if parts.name else _ON_KIND).get(method, "get")
    opens = watching and _opens(query)
    return Asked(verb, parts.plural, parts.subresource, path, user, _resumes(verb, query), opens)


def _resumes(verb: str, query: Mapping[str, str]) -> bool:
    version = query.get("resourceVersion", "") not in ("", "0")
    if verb == "watch":
        return version and not _is_set(query, "sendInitialEvents")
    return verb == "list" and (
        bool(query.get("continue")) or (version and query.get("resourceVersionMatch") == "Exact")
    )


def _opens(query: Mapping[str, str]) -> bool:
    asked = (
        _is_set(query, "sendInitialEvents")
        if query.get("sendInitialEvents")
        else not _resumes("watch", query)
    )
    return asked and _is_set(query, "allowWatchBookmarks")


def _is_set(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false").lower() not in ("0", "false")
