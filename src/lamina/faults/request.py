"""The attributes of a request that faults select by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lamina.objects.api_paths import parse_resource_path

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")

_ON_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_KIND = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class RequestAttributes(NamedTuple):
    """
    One request: verb, resource (empty for a non-resource path), subresource, path, user.

    `resumes` says whether it needs history: it continues from a resource version or a
    continue token. `opens` says whether it is a watch that first sends existing
    objects and a bookmark after them.
    """

    verb: str
    resource: str
    below: str
    path: str
    user: str
    resumes: bool = False
    opens: bool = False


def attributes_of(method: str, path: str, query: Mapping[str, str], user: str = "") -> RequestAttributes:
    """Return the attributes of a request; `query` has the first value of each parameter."""
    parts = parse_resource_path(path)
    if parts is None:
        return RequestAttributes("get", "", "", path, user)
    watching = method == "GET" and (parts.watch or (not parts.name and _is_set(query, "watch")))
    if watching:
        verb = "watch"
    elif method == "POST":
        verb = "create"
    else:
        verb = (_ON_OBJECT if parts.name else _ON_KIND).get(method, "get")
    opens = watching and _sends_initial_events(query)
    return RequestAttributes(verb, parts.plural, parts.subresource, path, user, _resumes(verb, query), opens)


def _resumes(verb: str, query: Mapping[str, str]) -> bool:
    version = query.get("resourceVersion", "") not in ("", "0")
    if verb == "watch":
        return version and not _is_set(query, "sendInitialEvents")
    return verb == "list" and (
        bool(query.get("continue")) or (version and query.get("resourceVersionMatch") == "Exact")
    )


def _sends_initial_events(query: Mapping[str, str]) -> bool:
    wanted = (
        _is_set(query, "sendInitialEvents")
        if query.get("sendInitialEvents")
        else not _resumes("watch", query)
    )
    return wanted and _is_set(query, "allowWatchBookmarks")


def _is_set(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false").lower() not in ("0", "false")
