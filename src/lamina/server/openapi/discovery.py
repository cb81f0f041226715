"""
Discovery documents, plain and aggregated.

Each function returns a document for the served kinds. Built-in groups come in the order of
kube-apiserver, custom ones follow by name. Versions of a group are sorted by stability:
GA, beta, alpha, and the higher number first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from lamina.objects.kinds import version_rank
from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.catalogue import group_rank
from lamina.server.kinds.kind import Kind, Subresource


class Rendered(NamedTuple):
    """An encoded document and its ETag."""

    body: bytes
    etag: str


def render(document: Obj) -> Rendered:
    """Return an encoded document with its ETag, quotes included."""
    body = orjson.dumps(document)
    return Rendered(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def api_versions(address: str) -> Made:
    """Return the document of /api; `address` is the host and port of the server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group_list(kinds: Iterable[Kind]) -> Made:
    """Return the document of /apis."""
    groups = [_group(name, versions) for name, versions in _groups(kinds) if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: Iterable[Kind], group: str) -> Made | None:
    """Return the document of /apis/GROUP, None if the group is not served."""
    for name, versions in _groups(kinds):
        if name == group:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
    return None


def api_resource_list(kinds: Iterable[Kind], group: str, version: str) -> Made | None:
    """Return the document of /apis/GROUP/VERSION, None if the version is not served."""
    served = _in_order(kind for kind in kinds if kind.group == group and kind.version == version)
    if not served:
        return None
    return {
        "kind": "APIResourceList",
        # The core/v1 document has no apiVersion.
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": served[0].api_version,
        "resources": [entry for kind in served for entry in _resources(kind)],
    }


def api_group_discovery_list(kinds: Iterable[Kind], *, core: bool) -> Made:
    """Return aggregated discovery: of /api if `core`, otherwise of /apis."""
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
    """Return the groups in order, each with its kinds by version, the preferred version first."""
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
    """Return the entries of a kind in plain discovery: the resource, then its subresources."""
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
    body: Made = {} if _is_same_group(kind, sub) else {"group": sub.group, "version": sub.version}
    return {
        "name": f"{kind.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        **body,
        "kind": sub.kind,
        "verbs": sub.verbs,
    }


def _discovered(kind: Kind) -> Made:
    """Return the entry of a kind in aggregated discovery, with its subresources."""
    # Built-in kinds have empty group and version, which clients take from the list; custom
    # resources have them filled in.
    is_same = (kind.group, kind.version) if kind.custom else ("", "")
    whole: Made = {
        "resource": kind.plural,
        "responseKind": _response(*is_same, kind.kind),
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
                    *(is_same if _is_same_group(kind, sub) else (sub.group, sub.version)), sub.kind
                ),
                "verbs": sub.verbs,
            }
            for sub in kind.subresources
        ]
    return whole


def _names(kind: Kind) -> dict[str, Sequence[str]]:
    shown = {"shortNames": kind.short_names, "categories": kind.categories}
    return {key: names for key, names in shown.items() if names}


def _is_same_group(kind: Kind, sub: Subresource) -> bool:
    return (sub.group, sub.version) == (kind.group, kind.version)


def _response(group: str, version: str, kind: str) -> dict[str, Any]:
    return {"group": group, "version": version, "kind": kind}
