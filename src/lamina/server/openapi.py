"""
OpenAPI v3: an index, and a document for each group version.

Clients cache a document by its address, which holds its digest. The digest is
made of what the document is made of (the tables, the code, and for custom kinds
their schemas), so the index is answered without making a single document; a
body is made when somebody asks for it, and remembered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path as File
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from lamina.objects.types import Made, Obj
from lamina.server.builtin.definitions import closure
from lamina.server.builtin.tables import DATA
from lamina.server.kind import Kind
from lamina.server.openapi_paths import Operation, Parameter, Path, identifier, listing, paths_of, tag_of
from lamina.server.openapi_schemas import META, V3, custom_schemas

INFO: Final = {"title": "Kubernetes", "version": "1.35"}
BEARER: Final = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}
REASONS: Final = {200: "OK", 201: "Created", 202: "Accepted"}

_CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_MAKERS: Final = (
    "openapi.py",
    "openapi_paths.py",
    "openapi_schemas.py",
    "openapi_v2.py",
    "openapi_protobuf.py",
)
_INFORMATION: Final = "io.k8s.apimachinery.pkg.version.Info"


class Document:
    """Something published: its digest is known at once, its body is made on first use."""

    __slots__ = ("__weakref__", "_body", "_make", "digest", "kinds")

    def __init__(self, kinds: tuple[Kind, ...], digest: str, make: Callable[[], bytes]) -> None:
        self.kinds = kinds
        self.digest = digest
        self._make = make
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        if self._body is None:
            self._body = self._make()
        return self._body

    @property
    def etag(self) -> str:
        return f'"{self.digest}"'


_KEPT: Final[WeakValueDictionary[tuple[str, tuple[Kind, ...]], Document]] = WeakValueDictionary()
"""What is published of which kinds, for as long as somebody serves them: control planes that do share it."""


def document_of(name: str, kinds: tuple[Kind, ...], make: Callable[[], bytes]) -> Document:
    """Return what is published of these kinds under a name."""
    known = _KEPT.get((name, kinds))
    if known is None:
        known = _KEPT[name, kinds] = Document(kinds, digest_of(name, kinds), make)
    return known


class OpenApi:
    """The v3 documents of one control plane. What was made for a kind is kept as long as the kind is served."""

    def __init__(self) -> None:
        self._kinds: Sequence[Kind] | None = None
        self._documents: dict[str, Document] = {}
        self._index = b""

    def index(self, kinds: Sequence[Kind]) -> bytes:
        """Return what /openapi/v3 answers."""
        self._look(kinds)
        return self._index

    def document(self, kinds: Sequence[Kind], name: str) -> Document | None:
        """Return what is published as /openapi/v3/NAME, such as `api/v1` or `apis/apps/v1`."""
        self._look(kinds)
        return self._documents.get(name)

    def _look(self, kinds: Sequence[Kind]) -> None:
        if kinds is self._kinds:
            return
        fresh = {
            name: document_of(name, served, make)
            for name, (served, make) in sorted(_published(kinds).items())
        }
        self._documents = fresh
        self._index = orjson.dumps(
            {"paths": {name: {"serverRelativeURL": address(name, one)} for name, one in fresh.items()}}
        )
        self._kinds = kinds


def address(name: str, document: Document) -> str:
    """Return where a document is read: its name, and its digest so that it may be cached for ever."""
    return f"/openapi/v3/{name}?hash={document.digest}"


def caching(name: str, document: Document, asked: str, now: datetime) -> tuple[int, dict[str, str]]:
    """
    Return the status and headers for a document of which the caller `asked` a digest, or none.

    With the right one it will never change; with another the answer is where
    the right one is.
    """
    headers = {"Etag": document.etag, "Vary": "Accept"}
    if not asked:
        return 200, headers
    if asked != document.digest:
        return 301, {**headers, "Location": address(name, document)}
    expires = (now + timedelta(days=365)).astimezone(UTC)
    lasting = {"Cache-Control": "public, immutable", "Expires": f"{expires:%a, %d %b %Y %H:%M:%S} GMT"}
    return 200, headers | lasting


@cache
def made_of() -> bytes:
    """Return the digest of the tables and of the code that makes documents of them."""
    digest = hashlib.sha256()
    for file in (*sorted(DATA.glob("*.z")), *(File(__file__).with_name(name) for name in _MAKERS)):
        digest.update(file.read_bytes())
    return digest.digest()


def digest_of(name: str, kinds: Iterable[Kind]) -> str:
    """Return the digest of what is published of these kinds under a name."""
    digest = hashlib.sha256(made_of())
    digest.update(name.encode())
    for kind in kinds:
        digest.update(orjson.dumps(_facts(kind), option=orjson.OPT_SORT_KEYS))
    return digest.hexdigest().upper()


def _facts(kind: Kind) -> list[Any]:
    """Return everything about a kind that shows in a document."""
    return [
        [kind.group, kind.version, kind.kind, kind.list_kind, kind.plural, kind.namespaced, kind.custom],
        [kind.verbs, kind.definition, kind.document, sorted(kind.shape.field_labels)],
        [[sub.name, sub.group, sub.version, sub.kind, sub.verbs] for sub in kind.subresources],
    ]


def _published(kinds: Sequence[Kind]) -> dict[str, tuple[tuple[Kind, ...], Callable[[], bytes]]]:
    """Return how each document is made, by name, and of which kinds."""
    versions: dict[str, list[Kind]] = {}
    groups: dict[str, None] = {}
    for kind in kinds:
        versions.setdefault(f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}", []).append(
            kind
        )
        if kind.group and not kind.custom:
            groups[kind.group] = None
    found: dict[str, tuple[tuple[Kind, ...], Callable[[], bytes]]] = {}
    for name, path in {"api": core_path(), "apis": groups_path(), "version": version_path()}.items():
        found[name] = (), partial(_built, [path])
    for group in groups:
        found[f"apis/{group}"] = (), partial(_built, [group_path(group)])
    for name, served in versions.items():
        together = tuple(served)
        found[name] = together, partial(_of_kinds, together)
    return found


def _of_kinds(kinds: tuple[Kind, ...]) -> bytes:
    paths = [path for kind in kinds for path in paths_of(kind)]
    if kinds[0].custom:
        own = {name: schema for kind in kinds for name, schema in custom_schemas(kind).items()}
        return _built(paths, own, _CUSTOM_INFO)
    return _built([resources_path(kinds[0].group, kinds[0].version), *paths])


def core_path() -> Path:
    return listing("/api/", "core", "getCoreAPIVersions", "get available API versions", f"{META}.APIVersions")


def groups_path() -> Path:
    return listing("/apis/", "apis", "getAPIVersions", "get available API versions", f"{META}.APIGroupList")


def version_path() -> Path:
    about = "get the version information for this server"
    return listing("/version/", "version", "getCodeVersion", about, _INFORMATION, ("application/json",))


def group_path(group: str) -> Path:
    """Return where a group is described."""
    name = f"get{identifier(group.removesuffix('.k8s.io'))}APIGroup"
    return listing(f"/apis/{group}/", tag_of(group), name, "get information of a group", f"{META}.APIGroup")


def resources_path(group: str, version: str) -> Path:
    """Return where the resources of a group version are listed."""
    name = f"get{identifier(group.removesuffix('.k8s.io') or 'core')}{identifier(version)}APIResources"
    path = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    return listing(path, tag_of(group, version), name, "get available resources", f"{META}.APIResourceList")


def _built(
    paths: Iterable[Path], own: Mapping[str, Obj] | None = None, info: Mapping[str, str] = INFO
) -> bytes:
    """Return the document of some paths, with every schema they mention."""
    own = own or {}
    paths = list(paths)
    mentioned = schemas_of(paths) - own.keys()
    if own:
        mentioned |= {f"{META}.ObjectMeta", f"{META}.ListMeta"}
    components: Made = {"schemas": dict(sorted({**closure(mentioned), **own}.items()))}
    if not own:
        components["securitySchemes"] = BEARER
    return orjson.dumps(
        {
            "openapi": "3.0.0",
            "info": info,
            "paths": {path.path: _path(path) for path in sorted(paths, key=lambda path: path.path)},
            "components": components,
        }
    )


def schemas_of(paths: Iterable[Path]) -> set[str]:
    """Return the names of the schemas that operations read and answer with."""
    return {
        name
        for path in paths
        for operation in path.operations
        for name in (operation.reads, *operation.answers.values())
        if name
    }


def _path(path: Path) -> Made:
    shared = path.shared
    made: Made = {one.method: _operation(one, path.tag, shared) for one in path.operations}
    if shared:
        made["parameters"] = [_parameter(one) for one in shared]
    return made


def _operation(operation: Operation, tag: str, shared: Sequence[Parameter]) -> Made:
    made: Made = {"tags": [tag], "description": operation.description, "operationId": operation.name}
    own = sorted(set(operation.parameters) - set(shared), key=lambda parameter: parameter.name)
    if own:
        made["parameters"] = [_parameter(one) for one in own]
    if operation.reads:
        made["requestBody"] = {"content": _content(operation.consumes, operation.reads)}
        if operation.requires:
            made["requestBody"]["required"] = True
    made["responses"] = {
        str(code): {"description": REASONS[code], "content": _content(operation.produces, answer)}
        for code, answer in operation.answers.items()
    }
    made["responses"]["401"] = {"description": "Unauthorized"}
    return made | about(operation)


def about(operation: Operation) -> Made:
    """Return by what clients find an operation: the action, and the kind it is about."""
    if operation.subject is None:
        return {}
    group, version, kind = operation.subject
    return {
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }


def _content(media_types: Iterable[str], schema: str) -> Made:
    shown = {"schema": {"$ref": V3 + schema} if schema else {"type": "string"}}
    return dict.fromkeys(sorted(media_types), shown)


def _parameter(parameter: Parameter) -> Made:
    made: Made = {"name": parameter.name, "in": parameter.where, "description": parameter.description}
    if parameter.where == "path":
        made["required"] = True
    return {**made, "schema": {"type": parameter.type, "uniqueItems": True}}
