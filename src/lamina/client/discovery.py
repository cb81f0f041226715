"""
Discovery: which kinds a server serves.

Aggregated discovery takes two requests; without it, each group version takes one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import orjson

from lamina.errors import ApiError, Unreachable
from lamina.objects.kinds import Kind, Kinds

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT = f"{AGGREGATED},application/json"

Fetch: TypeAlias = Callable[[str, str], Coroutine[Any, Any, bytes]]
"""Gets a path with an Accept header."""


class Discovered(NamedTuple):
    """The served kinds, and the group versions whose discovery is stale or failed."""

    kinds: Kinds
    stale: frozenset[str]


async def discover(fetch: Fetch) -> Discovered:
    """Return all served kinds, preferred versions first."""
    core, groups = await asyncio.gather(fetch("/api", _ACCEPT), fetch("/apis", _ACCEPT))
    read = _read(core, groups)
    return read if isinstance(read, Discovered) else await _unaggregated(fetch, *read)


@lru_cache(maxsize=32)
def _read(core: bytes, groups: bytes) -> Discovered | tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    Decode aggregated documents; returns the documents themselves if they are not aggregated.

    Cached by content: many clusters serve the same kinds, and discovery repeats.
    """
    documents = _document(core), _document(groups)
    if any(document.get("kind") != "APIGroupDiscoveryList" for document in documents):
        return documents
    kinds: list[Kind] = []
    stale: set[str] = set()
    for document in documents:
        for group in document.get("items") or ():
            kinds.extend(_aggregated(group, stale))
    return Discovered(Kinds(kinds), frozenset(stale))


def merged(old: Kinds, new: Discovered) -> Kinds:
    """Return the served kinds; kinds of a group whose discovery failed are kept from before."""
    if not new.stale:
        return new.kinds
    kept = [kind for kind in old.versions() if kind.api_version in new.stale]
    return Kinds([*new.kinds.versions(), *kept])


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        read = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"the server's discovery document is invalid JSON: {error}") from error
    if not isinstance(read, dict):
        raise Unreachable("the server's discovery document is no object")
    return read


def _aggregated(group: Mapping[str, Any], stale: set[str]) -> Iterator[Kind]:
    name = (group.get("metadata") or {}).get("name") or ""
    for version in group.get("versions") or ():
        api_version = f"{name}/{version['version']}" if name else version["version"]
        if version.get("freshness") == "Stale":
            stale.add(api_version)
        for resource in version.get("resources") or ():
            kind = (resource.get("responseKind") or {}).get("kind")
            if kind:
                yield Kind(
                    api_version=api_version,
                    kind=kind,
                    plural=resource["resource"],
                    namespaced=resource.get("scope") == "Namespaced",
                    verbs=frozenset(resource.get("verbs") or ()),
                    subresources=frozenset(
                        below["subresource"] for below in resource.get("subresources") or ()
                    ),
                    short=tuple(resource.get("shortNames") or ()),
                )


async def _unaggregated(fetch: Fetch, core: Mapping[str, Any], groups: Mapping[str, Any]) -> Discovered:
    wanted = [(version, f"/api/{version}") for version in core.get("versions") or ()]
    for group in groups.get("groups") or ():
        versions = [version["groupVersion"] for version in group.get("versions") or ()]
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        if preferred in versions:
            versions = [preferred, *(version for version in versions if version != preferred)]
        wanted += [(version, f"/apis/{version}") for version in versions]
    responses = await asyncio.gather(
        *(fetch(path, "application/json") for _, path in wanted), return_exceptions=True
    )
    kinds: list[Kind] = []
    stale: set[str] = set()
    for (api_version, _), response in zip(wanted, responses, strict=True):
        if isinstance(response, ApiError | Unreachable):
            stale.add(api_version)
        elif isinstance(response, BaseException):
            raise response
        else:
            kinds.extend(_kinds(api_version, _document(response).get("resources") or ()))
    return Discovered(Kinds(kinds), frozenset(stale))


def _kinds(api_version: str, resources: Sequence[Mapping[str, Any]]) -> Iterator[Kind]:
    below: dict[str, set[str]] = {}
    for resource in resources:
        plural, slash, subresource = resource["name"].partition("/")
        if slash:
            below.setdefault(plural, set()).add(subresource)
    for resource in resources:
        if "/" not in resource["name"]:
            yield Kind(
                api_version=api_version,
                kind=resource["kind"],
                plural=resource["name"],
                namespaced=bool(resource.get("namespaced")),
                verbs=frozenset(resource.get("verbs") or ()),
                subresources=frozenset(below.get(resource["name"], ())),
                short=tuple(resource.get("shortNames") or ()),
            )
