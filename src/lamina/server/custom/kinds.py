"""From a CRD to the kinds it brings."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from lamina.merge.schema import Schema, Schemas, compile_schema
from lamina.objects.types import Obj
from lamina.server.builtin.definitions import definition
from lamina.server.custom.document import normalised
from lamina.server.custom.golang import same
from lamina.server.custom.names import is_established, is_terminating
from lamina.server.custom.scale import ScalePaths
from lamina.server.custom.shape import CustomShape, Form, field_label
from lamina.server.kind import Kind, Subresource
from lamina.server.tables import PathColumns

VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
VERBS_WHILE_ENDING: Final = ("delete", "deletecollection", "get", "list", "watch")
"""What discovery says of a kind whose CRD is being deleted; updates go on, so that finalizers can be removed."""

_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES: Final = {None: 2, "beta": 1, "alpha": 0}
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def kinds_of(crd: Obj) -> tuple[Kind, ...]:
    """
    Return the served versions of a CRD, the preferred one first; none before it is established.

    The same content gives the same values, whatever else of the CRD has changed.
    """
    if not is_established(crd):
        return ()
    content = {
        "spec": crd["spec"],
        "names": crd["status"]["acceptedNames"],
        "ending": is_terminating(crd),
    }
    return _kinds(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def version_rank(version: str) -> tuple[Any, ...]:
    """Return what sorts versions by how much one would want them: stable ones first, newer ones first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, version)
    major, stage, minor = found.groups()
    return (0, -_STAGES[stage], -int(major), -int(minor or 0))


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
            verbs=VERBS_WHILE_ENDING if crd["ending"] else VERBS,
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
            # Told only where the stored version is served.
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
    """Return the schema of each version at work; versions with the same schema share one."""
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
        said: str = version["deprecationWarning"]
        return said
    group, kind = spec["group"], spec["names"]["kind"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    better = [
        one["name"]
        for one in spec["versions"]
        if one.get("served")
        and not one.get("deprecated")
        and version_rank(one["name"]) < version_rank(version["name"])
    ]
    return f"{text}; use {group}/{min(better, key=version_rank)} {kind}" if better else text


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
    """Return how objects of a schema merge; metadata of resources, embedded ones too, merges as it does everywhere."""
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
