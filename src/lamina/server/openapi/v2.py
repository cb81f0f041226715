"""
OpenAPI v2: one Swagger document for all served kinds.

The part of built-in kinds is built once. The part of a CRD is built when the CRD changes, and
the parts are combined on request, as JSON or as protobuf, the only format that kubectl
requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

import orjson

from lamina.objects.types import Made
from lamina.server.kinds.builtin.definitions import closure
from lamina.server.kinds.kind import Kind
from lamina.server.openapi.paths import Operation, Parameter, Path, paths_of
from lamina.server.openapi.schemas import META, V2, as_v2, custom_schemas_v2
from lamina.server.openapi.v3 import (
    BEARER,
    INFO,
    REASONS,
    Document,
    about,
    core_path,
    document_of,
    group_path,
    groups_path,
    resources_path,
    schemas_of,
    version_path,
)

_UNSHARED: Final = frozenset(("dryRun", "fieldValidation", "name"))
"""Parameters that are never shared: older kubectl look for the first two in each operation."""


class _Part:
    """The part of some kinds. Paths and definitions are encoded as JSON."""

    def __init__(self, paths: Iterable[Path], definitions: Made) -> None:
        self.parameters: Made = {}
        self.definitions = {name: _packed(schema) for name, schema in definitions.items()}
        self.paths = {path.path: _packed(self._path(path)) for path in paths}

    @cached_property
    def in_protobuf(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """The same paths and definitions as protobuf."""
        from lamina.server.openapi.protobuf import definition_bytes, path_bytes

        return (
            {name: path_bytes(name, _unpacked(item)) for name, item in self.paths.items()},
            {name: definition_bytes(name, _unpacked(schema)) for name, schema in self.definitions.items()},
        )

    def _path(self, path: Path) -> Made:
        shared = path.shared
        made: Made = {one.method: self._operation(one, path.tag, shared) for one in path.operations}
        if shared:
            made["parameters"] = [self._parameter(one) for one in shared]
        return made

    def _operation(self, operation: Operation, tag: str, shared: Sequence[Parameter]) -> Made:
        made: Made = {
            "description": operation.description,
            "consumes": operation.consumes,
            "produces": operation.produces,
            "schemes": ["https"],
            "tags": [tag],
            "operationId": operation.name,
        }
        parameters = [self._body(operation)] if operation.reads else []
        own = sorted(set(operation.parameters) - set(shared), key=lambda parameter: parameter.name)
        parameters += [self._parameter(one) for one in own]
        if parameters:
            made["parameters"] = parameters
        made["responses"] = {
            str(code): {"description": REASONS[code], "schema": _schema(answer)}
            for code, answer in operation.answers.items()
        }
        made["responses"]["401"] = {"description": "Unauthorized"}
        return made | about(operation)

    def _body(self, operation: Operation) -> Made:
        body: Made = {"name": "body", "in": "body"}
        if operation.requires:
            body["required"] = True
        body["schema"] = _schema(operation.reads)
        return self._share(body) if operation.reads.startswith(META) else body

    def _parameter(self, parameter: Parameter) -> Made:
        made: Made = {
            "uniqueItems": True,
            "type": parameter.type,
            "description": parameter.description,
            "name": parameter.name,
            "in": parameter.where,
        }
        if parameter.where == "path":
            made["required"] = True
        return made if parameter.name in _UNSHARED else self._share(made)

    def _share(self, parameter: Made) -> Made:
        """Return a reference to a parameter that many operations have, and add it to the document."""
        mark = hashlib.sha256(orjson.dumps(parameter)).hexdigest()[:8]
        name = f"{parameter['name']}-{mark}"
        self.parameters[name] = parameter
        return {"$ref": f"#/parameters/{name}"}


class Swagger:
    """The v2 document of one cluster, in two formats."""

    def __init__(self) -> None:
        self._custom: dict[Kind, _Part] = {}
        self._kinds: Sequence[Kind] | None = None
        self._forms: tuple[Document, Document] | None = None

    def document(self, kinds: Sequence[Kind]) -> Document:
        """Return the document of /openapi/v2 as JSON."""
        return self._refresh(kinds)[0]

    def protobuf(self, kinds: Sequence[Kind]) -> Document:
        """Return the document of /openapi/v2 as protobuf."""
        return self._refresh(kinds)[1]

    def _refresh(self, kinds: Sequence[Kind]) -> tuple[Document, Document]:
        if self._forms is None or kinds is not self._kinds:
            everything = tuple(kinds)
            self._forms = (
                document_of("v2", everything, lambda: self._encode(everything)),
                document_of("v2 in protobuf", everything, lambda: self._encode_protobuf(everything)),
            )
            self._kinds = kinds
        return self._forms

    def _encode(self, kinds: tuple[Kind, ...]) -> bytes:
        parts = self._parts(kinds)
        paths = _merged(part.paths for part in parts)
        return orjson.dumps(_combined(parts, paths, _merged(part.definitions for part in parts)))

    def _encode_protobuf(self, kinds: tuple[Kind, ...]) -> bytes:
        from lamina.server.openapi.protobuf import document_bytes

        parts = self._parts(kinds)
        paths = _merged(part.in_protobuf[0] for part in parts)
        return document_bytes(_combined(parts, paths, _merged(part.in_protobuf[1] for part in parts)))

    def _parts(self, kinds: tuple[Kind, ...]) -> list[_Part]:
        self._custom = {
            kind: self._custom.get(kind) or _Part(paths_of(kind), {**custom_schemas_v2(kind)})
            for kind in kinds
            if kind.custom
        }
        # Built-in parts come last, so that a CRD replaces nothing.
        return [*self._custom.values(), _built_in(tuple(kind for kind in kinds if not kind.custom))]


def _combined(parts: Sequence[_Part], paths: Made, definitions: Made) -> Made:
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": paths,
        "definitions": definitions,
        "parameters": _merged(part.parameters for part in parts),
        "securityDefinitions": BEARER,
        "security": [{"BearerToken": []}],
    }


@lru_cache(maxsize=2)
def _built_in(kinds: tuple[Kind, ...]) -> _Part:
    paths = [core_path(), groups_path(), version_path()]
    paths += [group_path(group) for group in dict.fromkeys(kind.group for kind in kinds) if group]
    paths += [resources_path(*home) for home in dict.fromkeys((kind.group, kind.version) for kind in kinds)]
    paths += [path for kind in kinds for path in paths_of(kind)]
    # Custom kinds refer to these even if no built-in kind does.
    mentioned = schemas_of(paths) | {f"{META}.ObjectMeta", f"{META}.ListMeta"}
    return _Part(paths, {name: as_v2(schema) for name, schema in closure(mentioned).items()})


def _merged(parts: Iterable[Mapping[str, Any]]) -> Made:
    """Return all entries by name; of duplicates the last."""
    found = {name: entry for part in parts for name, entry in part.items()}
    return {name: found[name] for name in sorted(found)}


def _packed(document: Made) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(document))


def _unpacked(document: orjson.Fragment) -> Any:
    return orjson.loads(orjson.dumps(document))


def _schema(name: str) -> Made:
    return {"$ref": V2 + name} if name else {"type": "string"}
