"""
OpenAPI v3: an index, and one document per group version.

Clients cache a document by its URL, which contains its digest. The digest is computed from
the inputs (tables, code, schemas of custom kinds), so the index is built without building
a document; documents are built on request and cached.
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
from lamina.server.kinds.builtin.definitions import closure
from lamina.server.kinds.builtin.tables import DATA
from lamina.server.kinds.kind import Kind
from lamina.server.openapi.paths import Operation, Parameter, Path, identifier, listing, paths_of, tag_of
from lamina.server.openapi.schemas import META, V3, custom_schemas

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
    "v3.py",
    "paths.py",
    "schemas.py",
    "v2.py",
    "protobuf.py",
)
_INFORMATION: Final = "io.k8s.apimachinery.pkg.version.Info"


class Document:
    """A published document: its digest is computed at once, its body on first use."""

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


_DOCUMENTS: Final[WeakValueDictionary[tuple[str, tuple[Kind, ...]], Document]] = WeakValueDictionary()
"""Documents by name and kinds, as long as they are in use; clusters that serve the same kinds share them."""


def document_of(name: str, kinds: tuple[Kind, ...], make: Callable[[], bytes]) -> Document:
    """Return the document of these kinds with a name."""
    known = _DOCUMENTS.get((name, kinds))
    if known is None:
        known = _DOCUMENTS[name, kinds] = Document(kinds, digest_of(name, kinds), make)
    return known


class OpenApi:
    """The v3 documents of one cluster. What was built for a kind is kept as long as the kind is served."""

    def __init__(self) -> None:
        self._kinds: Sequence[Kind] | None = None
        self._documents: dict[str, Document] = {}
        self._index = b""

    def index(self, kinds: Sequence[Kind]) -> bytes:
        """Return the document of /openapi/v3."""
        self._refresh(kinds)
        return self._index

    def document(self, kinds: Sequence[Kind], name: str) -> Document | None:
        """Return the document of /openapi/v3/NAME, such as `api/v1` or `apis/apps/v1`."""
        self._refresh(kinds)
        return self._documents.get(name)

    def _refresh(self, kinds: Sequence[Kind]) -> None:
        if kinds is self._kinds:
            return
        documents = {
            name: document_of(name, served, make)
            for name, (served, make) in sorted(_published(kinds).items())
        }
        self._documents = documents
        self._index = orjson.dumps(
            {"paths": {name: {"serverRelativeURL": address(name, one)} for name, one in documents.items()}}
        )
        self._kinds = kinds


def address(name: str, document: Document) -> str:
    """Return the URL of a document, with its digest so that it can be cached forever."""
    return f"/openapi/v3/{name}?hash={document.digest}"


def caching(
    name: str, document: Document, requested_digest: str, now: datetime
) -> tuple[int, dict[str, str]]:
    """
    Return status and headers of a document, given the digest in the request, if any.

    With the current digest the response never changes; with another one it is a redirect
    to the current.
    """
    headers = {"Etag": document.etag, "Vary": "Accept"}
    if not requested_digest:
        return 200, headers
    if requested_digest != document.digest:
        return 301, {**headers, "Location": address(name, document)}
    expires = (now + timedelta(days=365)).astimezone(UTC)
    lifetime = {"Cache-Control": "public, immutable", "Expires": f"{expires:%a, %d %b %Y %H:%M:%S} GMT"}
    return 200, headers | lifetime


@cache
def input_digest() -> bytes:
    """Return the digest of the tables and the code that documents are built from."""
    digest = hashlib.sha256()
    for file in (*sorted(DATA.glob("*.z")), *(File(__file__).with_name(name) for name in _MAKERS)):
        digest.update(file.read_bytes())
    return digest.digest()


def digest_of(name: str, kinds: Iterable[Kind]) -> str:
    """Return the digest of a document of these kinds."""
    digest = hashlib.sha256(input_digest())
    digest.update(name.encode())
    for kind in kinds:
        digest.update(orjson.dumps(_inputs(kind), option=orjson.OPT_SORT_KEYS))
    return digest.hexdigest().upper()


def _inputs(kind: Kind) -> list[Any]:
    """Return all inputs of a kind's documents."""
    return [
        [kind.group, kind.version, kind.kind, kind.list_kind, kind.plural, kind.namespaced, kind.custom],
        [kind.verbs, kind.definition, kind.document, sorted(kind.shape.field_labels)],
        [[sub.name, sub.group, sub.version, sub.kind, sub.verbs] for sub in kind.subresources],
    ]


def _published(kinds: Sequence[Kind]) -> dict[str, tuple[tuple[Kind, ...], Callable[[], bytes]]]:
    """Return the builder and the kinds of each document, by name."""
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
    """Return the path of an API group."""
    name = f"get{identifier(group.removesuffix('.k8s.io'))}APIGroup"
    return listing(f"/apis/{group}/", tag_of(group), name, "get information of a group", f"{META}.APIGroup")


def resources_path(group: str, version: str) -> Path:
    """Return the path that lists the resources of a group version."""
    name = f"get{identifier(group.removesuffix('.k8s.io') or 'core')}{identifier(version)}APIResources"
    path = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    return listing(path, tag_of(group, version), name, "get available resources", f"{META}.APIResourceList")


def _built(
    paths: Iterable[Path], own: Mapping[str, Obj] | None = None, info: Mapping[str, str] = INFO
) -> bytes:
    """Return the document with these paths and all schemas that they refer to."""
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
    """Return the names of the schemas of requests and responses."""
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
    """Return the extensions by which clients find an operation: the action and its kind."""
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
