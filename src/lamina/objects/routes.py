"""
Paths to targets.

    /api/v1/namespaces/NS/PLURAL/NAME/SUBRESOURCE
    /apis/GROUP/VERSION/PLURAL/NAME/SUBRESOURCE

The one trap: `namespaces` is a kind and the way into one, so
`/api/v1/namespaces/x/status` is a subresource and `/api/v1/namespaces/x/pods` a list.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote


class Path(NamedTuple):
    """A resource path taken apart; `name` and `subresource` are empty where the path ends before them."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str
    watch: bool = False
    """Whether this is the deprecated form with `/watch/` after the version."""


_OF_NAMESPACES = ("status", "finalize")
_BRIEF = 256
"""How long a path may be that is remembered: most are asked for again and again."""


def take_apart(path: str) -> Path | None:
    """Return the parts of a resource path, None for any other path."""
    return _known(path) if len(path) <= _BRIEF else _taken_apart(path)


def _taken_apart(path: str) -> Path | None:
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
        and not (group == "" and rest[2] in _OF_NAMESPACES and len(rest) == 3)
    ):
        namespace, rest = rest[1], rest[2:]
    plural, name, *below = [*rest, ""] if len(rest) == 1 else rest
    return Path(group, version, namespace, plural, name, "/".join(below), watch)


_known = lru_cache(maxsize=4096)(_taken_apart)
