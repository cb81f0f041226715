"""
Resource paths of the Kubernetes API.

    /api/v1/namespaces/NS/PLURAL/NAME/SUBRESOURCE
    /apis/GROUP/VERSION/PLURAL/NAME/SUBRESOURCE

`namespaces` is both a resource and a path prefix: `/api/v1/namespaces/x/status` is a
subresource, and `/api/v1/namespaces/x/pods` is a list.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote


class Path(NamedTuple):
    """The parts of a resource path; `name` and `subresource` are empty where the path ends before them."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str
    watch: bool = False
    """Whether this is the deprecated form with `/watch/` after the version."""


_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_LONGEST_CACHED = 256


def parse_resource_path(path: str) -> Path | None:
    """Return the parts of a resource path, None for any other path."""
    return _cached(path) if len(path) <= _LONGEST_CACHED else _parse(path)


def _parse(path: str) -> Path | None:
    parts = (unquote(path) if "%" in path else path).split("/")
    if len(parts) < 4:
        return None
    if parts[-1] == "":
        parts.pop()
    match parts[1]:
        case "api":
            group, version, rest = "", parts[2], parts[3:]
        case "apis" if len(parts) > 4:
            group, version, rest = parts[2], parts[3], parts[4:]
        case _:
            return None
    if not rest or "" in rest:
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (group == "" and rest[2] in _NAMESPACE_SUBRESOURCES and len(rest) == 3)
    ):
        namespace, rest = rest[1], rest[2:]
    plural, name, *below = [*rest, ""] if len(rest) == 1 else rest
    return Path(group, version, namespace, plural, name, "/".join(below), watch)


_cached = lru_cache(maxsize=4096)(_parse)
