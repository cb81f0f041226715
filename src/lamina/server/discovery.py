"""
What is served, said to clients: the lists of discovery, plain and aggregated.

Each function takes the served kinds and returns a document. Groups come in the
order of Kubernetes' own server, those of custom resources after them by name.
Within a group the versions stand by maturity, whatever is stored: GA before
beta before alpha, and the higher number first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from lamina.objects.types import Made, Obj
from lamina.server.builtin.catalogue import group_rank
from lamina.server.kind import Kind, Subresource

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The Content-Type of aggregated discovery, exactly."""

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_MATURITY = {"": 0, "beta": 1, "alpha": 2}


class Rendered(NamedTuple):
    """A document as it is sent, and the mark that changes when it does."""

    body: bytes
    etag: str


def render(document: Obj) -> Rendered:
    """Return a document with its ETag, quotes included."""
    body = orjson.dumps(document)
    return Rendered(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return what versions of a group are sorted by; a name that is no version comes after those that are."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (len(_MATURITY), 0, 0, version)
    number, maturity, step = match.groups()
    return (_MATURITY[maturity or ""], -int(number), -int(step or 0), "")


def api_versions(address: str) -> Made:
    """Return what /api answers; `address` is the host and port that clients reach the server at."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group_list(kinds: Iterable[Kind]) -> Made:
    """Return what /apis answers."""
    groups = [_group(name, versions) for name, versions in _groups(kinds) if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: Iterable[Kind], group: str) -> Made | None:
    """Return what /apis/GROUP answers, or None where nothing of that group is served."""
    for name, versions in _groups(kinds):
        if name == group:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
    return None


def api_resource_list(kinds: Iterable[Kind], group: str, version: str) -> Made | None:
    """Return what /apis/GROUP/VERSION answers, or None where nothing of that version is served."""
    served = _in_order(kind for kind in kinds if kind.group == group and kind.version == version)
    if not served:
        return None
    return {
        "kind": "APIResourceList",
        # The oldest of these documents is the one that never got an apiVersion.
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": served[0].api_version,
        "resources": [entry for kind in served for entry in _resources(kind)],
    }


def api_group_discovery_list(kinds: Iterable[Kind], *, core: bool) -> Made:
    """Return aggregated discovery: what /api answers if `core`, and /apis otherwise."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_discovered(kind) for kind in served],
                        "freshness": "Current",
                    }
                    for version, served in versions.items()
                ],
            }
            for name, versions in _groups(kinds)
            if (not name) == core
        ],
    }


def _groups(kinds: Iterable[Kind]) -> list[tuple[str, dict[str, list[Kind]]]]:
    """Return the groups in order, and of each its kinds by version, the preferred version first."""
    found: dict[str, dict[str, list[Kind]]] = {}
    for kind in kinds:
        found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return [
        (
            group,
            {version: _in_order(found[group][version]) for version in sorted(found[group], key=version_rank)},
        )
        for group in sorted(found, key=lambda group: (group_rank(group), group))
    ]


def _in_order(kinds: Iterable[Kind]) -> list[Kind]:
    return sorted(kinds, key=lambda kind: kind.plural)


def _group(name: str, versions: Iterable[str]) -> Made:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(kind: Kind) -> list[Made]:
    """Return the entries of a kind in plain discovery: itself, then its subresources."""
    whole: Made = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
        **_names(kind),
    }
    if kind.storage_hash:
        whole["storageVersionHash"] = kind.storage_hash
    return [whole, *(_subresource(kind, sub) for sub in kind.subresources)]


def _subresource(kind: Kind, sub: Subresource) -> Made:
    body: Made = {} if _at_home(kind, sub) else {"group": sub.group, "version": sub.version}
    return {
        "name": f"{kind.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        **body,
        "kind": sub.kind,
        "verbs": sub.verbs,
    }


def _discovered(kind: Kind) -> Made:
    """Return the entry of a kind in aggregated discovery, with its subresources inside."""
    # Kubernetes leaves group and version empty for its own kinds, and clients
    # take those of the list; for custom resources it fills them in.
    home = (kind.group, kind.version) if kind.custom else ("", "")
    whole: Made = {
        "resource": kind.plural,
        "responseKind": _response(*home, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
        **_names(kind),
    }
    if kind.subresources:
        whole["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response(
                    *(home if _at_home(kind, sub) else (sub.group, sub.version)), sub.kind
                ),
                "verbs": sub.verbs,
            }
            for sub in kind.subresources
        ]
    return whole


def _names(kind: Kind) -> dict[str, Sequence[str]]:
    shown = {"shortNames": kind.short_names, "categories": kind.categories}
    return {key: names for key, names in shown.items() if names}


def _at_home(kind: Kind, sub: Subresource) -> bool:
    return (sub.group, sub.version) == (kind.group, kind.version)


def _response(group: str, version: str, kind: str) -> dict[str, Any]:
    return {"group": group, "version": version, "kind": kind}
