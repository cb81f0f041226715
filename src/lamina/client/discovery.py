"""
Which kinds a server serves, as it says itself.

One request to each of two documents where the server offers them aggregated;
one for each group and version where it does not.
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
"""Gets a path, given what to accept."""


class Discovered(NamedTuple):
    """What is served, and the groups and versions whose answer cannot be relied on at the moment."""

    kinds: Kinds
    uncertain: frozenset[str]


async def discover(fetch: Fetch) -> Discovered:
    """Return everything a server serves, preferred versions first."""
    core, groups = await asyncio.gather(fetch("/api", _ACCEPT), fetch("/apis", _ACCEPT))
    read = _read(core, groups)
    return read if isinstance(read, Discovered) else await _one_by_one(fetch, *read)


@lru_cache(maxsize=32)
def _read(core: bytes, groups: bytes) -> Discovered | tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    Return what aggregated documents say, or the documents if they are not; the same bytes give the same values.

    Servers of the same kinds are many where there are many at all, and each is asked again and again.
    """
    documents = _document(core), _document(groups)
    if any(document.get("kind") != "APIGroupDiscoveryList" for document in documents):
        return documents
    found: list[Kind] = []
    uncertain: set[str] = set()
    for document in documents:
        for group in document.get("items") or ():
            found.extend(_aggregated(group, uncertain))
    return Discovered(Kinds(found), frozenset(uncertain))


def merged(old: Kinds, new: Discovered) -> Kinds:
    """Return what is served now, keeping what was known of a group while nobody answers for it."""
    if not new.uncertain:
        return new.kinds
    kept = [kind for kind in old.versions() if kind.api_version in new.uncertain]
    return Kinds([*new.kinds.versions(), *kept])


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        read = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"the server's discovery document is no JSON: {error}") from error
    if not isinstance(read, dict):
        raise Unreachable("the server's discovery document is no object")
    return read


def _aggregated(group: Mapping[str, Any], uncertain: set[str]) -> Iterator[Kind]:
    name = (group.get("metadata") or {}).get("name") or ""
    for version in group.get("versions") or ():
        api_version = f"{name}/{version['version']}" if name else version["version"]
        if version.get("freshness") == "Stale":
            uncertain.add(api_version)
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


async def _one_by_one(fetch: Fetch, core: Mapping[str, Any], groups: Mapping[str, Any]) -> Discovered:
    wanted = [(version, f"/api/{version}") for version in core.get("versions") or ()]
    for group in groups.get("groups") or ():
        versions = [version["groupVersion"] for version in group.get("versions") or ()]
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        if preferred in versions:
            versions = [preferred, *(version for version in versions if version != preferred)]
        wanted += [(version, f"/apis/{version}") for version in versions]
    answers = await asyncio.gather(
        *(fetch(path, "application/json") for _, path in wanted), return_exceptions=True
    )
    found: list[Kind] = []
    uncertain: set[str] = set()
    for (api_version, _), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, ApiError | Unreachable):
            uncertain.add(api_version)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.extend(_listed(api_version, _document(answer).get("resources") or ()))
    return Discovered(Kinds(found), frozenset(uncertain))


def _listed(api_version: str, resources: Sequence[Mapping[str, Any]]) -> Iterator[Kind]:
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
