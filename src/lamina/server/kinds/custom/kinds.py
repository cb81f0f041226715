"""Builds the kinds of a CRD."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from lamina.merge.schema import Schema, Schemas, compile_schema
from lamina.objects.kinds import version_rank
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.definitions import definition
from lamina.server.kinds.columns import PathColumns
from lamina.server.kinds.custom.document import normalised
from lamina.server.kinds.custom.go_values import same
from lamina.server.kinds.custom.names import is_established, is_terminating
from lamina.server.kinds.custom.scale import ScalePaths
from lamina.server.kinds.custom.shape import CustomShape, Form, field_label
from lamina.server.kinds.kind import Kind, Subresource

VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
VERBS_WHILE_TERMINATING: Final = ("delete", "deletecollection", "get", "list", "watch")
"""The verbs of a kind whose CRD is terminating; updates are still served, to remove finalizers."""

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def kinds_of(crd: Obj) -> tuple[Kind, ...]:
    """
    Return the served versions of a CRD, the preferred one first; none before it is established.

    Equal content returns the same values, even if other parts of the CRD changed.
    """
    if not is_established(crd):
        return ()
    content = {
        "spec": crd["spec"],
        "names": crd["status"]["acceptedNames"],
        "ending": is_terminating(crd),
    }
    return _kinds(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=1024)
def _kinds(content: bytes) -> tuple[Kind, ...]:
    crd = orjson.loads(content)
    spec, names = crd["spec"], crd["names"]
    group = spec["group"]
    forms = _forms(spec["versions"])
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    served = sorted(
        (version for version in spec["versions"] if version.get("served")),
        key=lambda version: version_rank(version["name"]),
    )
    digest = hashlib.sha256(f"{group}/{stored}/{spec['names']['kind']}".encode()).digest()
    return tuple(
        Kind(
            group=group,
            version=version["name"],
            kind=names["kind"],
            list_kind=names["listKind"],
            plural=names["plural"],
            singular=names["singular"],
            namespaced=spec["scope"] == "Namespaced",
            verbs=VERBS_WHILE_TERMINATING if crd["ending"] else VERBS,
            bucket=f"{spec['names']['plural']}.{group}",
            schema=_merge_schema(forms[version["name"]].document),
            shape=_shape(spec, version, names["kind"], forms, stored),
            custom=True,
            converts=forms[version["name"]] is not forms[stored],
            preferred=index == 0,
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(version, group, names["kind"]),
            document=_document(version),
            # Only set if the stored version is served.
            deprecation=_deprecation(spec, version),
            storage_hash=_hash(digest) if any(one["name"] == stored for one in served) else "",
        )
        for index, version in enumerate(served)
    )


def _hash(digest: bytes) -> str:
    return base64.b64encode(digest[:8]).decode()


def _document(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _forms(versions: Sequence[Mapping[str, Any]]) -> dict[str, Form]:
    """Return the form of each version's schema; versions with equal schemas share one."""
    forms: dict[str, Form] = {}
    for version in versions:
        document = normalised(_document(version) or {})
        known = next((form for form in forms.values() if same(form.document, document)), None)
        forms[version["name"]] = known or Form(document)
    return forms


def _shape(
    spec: Mapping[str, Any], version: Mapping[str, Any], kind: str, forms: Mapping[str, Form], stored: str
) -> CustomShape:
    below = version.get("subresources") or {}
    scale = below.get("scale")
    return CustomShape(
        kind=kind,
        version=version["name"],
        api_version=f"{spec['group']}/{version['name']}",
        form=forms[version["name"]],
        storage=forms[stored],
        has_status=below.get("status") is not None,
        scale=None
        if scale is None
        else ScalePaths(
            spec=scale["specReplicasPath"],
            status=scale["statusReplicasPath"],
            selector=scale.get("labelSelectorPath") or "",
        ),
        table=PathColumns(version.get("additionalPrinterColumns") or ()),
        field_labels=dict(field_label(one["jsonPath"]) for one in version.get("selectableFields") or ()),
    )


def _deprecation(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        warning: str = version["deprecationWarning"]
        return warning
    group, kind = spec["group"], spec["names"]["kind"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    newer = [
        one["name"]
        for one in spec["versions"]
        if one.get("served")
        and not one.get("deprecated")
        and version_rank(one["name"]) < version_rank(version["name"])
    ]
    return f"{text}; use {group}/{min(newer, key=version_rank)} {kind}" if newer else text


def _subresources(version: Mapping[str, Any], group: str, kind: str) -> tuple[Subresource, ...]:
    below = version.get("subresources") or {}
    verbs = ("get", "patch", "update")
    made = []
    if below.get("status") is not None:
        made.append(Subresource(name="status", group=group, version=version["name"], kind=kind, verbs=verbs))
    if below.get("scale") is not None:
        made.append(Subresource(name="scale", group="autoscaling", version="v1", kind="Scale", verbs=verbs))
    return tuple(made)


@cache
def _object_meta() -> Schema:
    return Schemas(definition).named(_OBJECT_META)


def _merge_schema(document: Mapping[str, Any]) -> Schema:
    """Return how objects of a schema are merged; metadata, also of embedded resources, is merged as in all kinds."""
    schema = compile_schema(document)
    schema.properties["metadata"] = _object_meta()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if node.embedded:
            node.properties["metadata"] = _object_meta()
        below = (*node.properties.values(), node.values, node.items)
        waiting += [part for part in below if part is not None and part is not _object_meta()]
    return schema
