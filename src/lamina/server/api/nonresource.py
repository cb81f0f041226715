"""
Non-resource paths: discovery, OpenAPI, health, version, metrics.

Documents derived from all kinds are built on demand and cached until the kinds change.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from lamina import __version__
from lamina.errors import MethodNotAllowed
from lamina.objects.types import Obj
from lamina.server import status_errors
from lamina.server.api.admin import AdminApi
from lamina.server.codec.negotiate import clauses, negotiate
from lamina.server.codec.response import encode_bytes
from lamina.server.http.request import JSON, Request, Response, json_response
from lamina.server.kinds.builtin.catalogue import is_builtin
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.registry import Registry
from lamina.server.metrics import Metrics
from lamina.server.openapi.discovery import (
    Rendered,
    api_group,
    api_group_discovery_list,
    api_group_list,
    api_resource_list,
    api_versions,
    render,
)
from lamina.server.openapi.v2 import Swagger
from lamina.server.openapi.v3 import OpenApi, caching

KUBERNETES_VERSION = "1.35.4"
_TEXT = "text/plain; charset=utf-8"
_SWAGGER_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_SWAGGER_FORMS = {
    **dict.fromkeys(("*/*", "application/*", "application/json"), JSON),
    # Two spellings: clients ask for the first, which is not a valid media type.
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": _SWAGGER_PROTOBUF,
    _SWAGGER_PROTOBUF: _SWAGGER_PROTOBUF,
}

Checks = Mapping[str, Callable[[], bool]]
"""Health checks by name."""
Backup = Callable[[], AsyncIterator[bytes]]
"""Streams a backup of the log."""


class NonResourceApi:
    """Serves the non-resource paths of one cluster."""

    def __init__(
        self,
        registry: Registry,
        metrics: Metrics,
        checks: Checks,
        backup: Backup | None,
    ) -> None:
        self._registry = registry
        self._openapi = OpenApi()
        self._openapi_v2 = Swagger()
        self._edition = -1
        self._discovery: dict[str, Rendered | None] = {}
        self._metrics = metrics
        self._checks = checks
        self._backup = backup
        self.admin: AdminApi

    async def serve(self, request: Request) -> Response:
        """Serve a path that is not a resource."""
        path = request.path.rstrip("/") or "/"
        top = path.split("/", 2)[1]
        if path == "/lamina/backup" and request.method == "POST" and self._backup is not None:
            return Response(200, self._backup(), "application/vnd.sqlite3")
        if top == "lamina" and (response := await self.admin.serve(request)) is not None:
            return response
        if request.method != "GET":
            # kube-apiserver serves these with its resource routes, which report other methods differently.
            if top in ("api", "version") or (top == "apis" and path.count("/") > 2):
                raise status_errors.not_allowed()
            if request.method != "HEAD" and top not in ("healthz", "livez", "readyz"):
                raise status_errors.not_allowed() if top == "apis" else MethodNotAllowed("method not allowed")
        match top:
            case "api" | "apis":
                return self._discover(request, path)
            case "openapi":
                return self._openapi_response(request, path)
            case "healthz" | "livez" | "readyz":
                return self._health(request, path)
            case "version":
                if path != "/version":
                    raise status_errors.unknown_path()
                return json_response(version())
            case "metrics":
                return Response(200, self._metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
            case "" if path == "/":
                return json_response({"paths": self._paths()})
            case _:
                return Response(404, b"404 page not found\n", _TEXT)

    def _discover(self, request: Request, path: str) -> Response:
        accept = request.headers.get("accept", "")
        if path in ("/api", "/apis") and "apidiscovery.k8s.io" in accept and (form := _aggregated(accept)):
            rendered = self._document(f"{path} aggregated")
            assert rendered is not None
            headers = [("etag", rendered.etag), ("vary", "Accept"), ("cache-control", "public")]
            if request.headers.get("if-none-match", "").strip() == rendered.etag:
                return Response(304, b"", form, headers)
            return Response(200, rendered.body, form, headers)
        representation = negotiate(accept, ())
        document = self._document(path)
        if document is None:
            named = path.split("/")
            if named[1] == "apis" and not is_builtin(named[2]):
                raise status_errors.page_not_found()
            raise status_errors.unknown_path()
        return encode_bytes(document.body, representation)

    def _document(self, name: str) -> Rendered | None:
        """Return a discovery document, cached until the kinds change."""
        kinds = self._registry.kinds()
        if self._edition != self._registry.edition:
            self._edition = self._registry.edition
            self._discovery = {}
        if name not in self._discovery:
            rendered = _rendered(name, kinds)
            if rendered is None:
                # Not cached: the number of unknown paths is unbounded.
                return None
            self._discovery[name] = rendered
        return self._discovery[name]

    def _openapi_response(self, request: Request, path: str) -> Response:
        kinds = self._registry.kinds()
        if path == "/openapi/v2":
            return self._swagger(request, kinds)
        if path == "/openapi/v3":
            return Response(200, self._openapi.index(kinds))
        name = path.removeprefix("/openapi/v3/")
        document = self._openapi.document(kinds, name)
        if document is None or name == path:
            return Response(404, b"404 page not found\n", _TEXT)
        # Clients evaluate cache headers by the wall clock, so the server's own clock is not used.
        status, headers = caching(name, document, request.parameter("hash"), datetime.now(UTC))
        header_list = [(header.lower(), value) for header, value in headers.items()]
        if status != 200:
            return Response(status, b"", JSON, header_list)
        if request.headers.get("if-none-match", "").strip() == document.etag:
            return Response(304, b"", JSON, header_list)
        return Response(200, document.body, JSON, header_list)

    def _swagger(self, request: Request, kinds: Sequence[Kind]) -> Response:
        form = _swagger_form(request.headers.get("accept", "") or "*/*")
        if not form:
            # kube-apiserver sends no body.
            return Response(406, b"", _TEXT, [("vary", "Accept")])
        in_protobuf = form == _SWAGGER_PROTOBUF
        document = self._openapi_v2.protobuf(kinds) if in_protobuf else self._openapi_v2.document(kinds)
        headers = [("etag", document.etag), ("vary", "Accept")]
        if request.headers.get("if-none-match", "").strip() == document.etag:
            return Response(304, b"", form, headers)
        return Response(200, document.body, form, headers)

    def _health(self, request: Request, path: str) -> Response:
        _, page, *rest = path.split("/")
        excluded = set(request.parameters.get("exclude", ()))
        if rest:
            return self._one_check(rest[0])
        lines, failed = [], False
        for name, check in self._checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif check():
                lines.append(f"[+]{name} ok")
            else:
                failed = True
                lines.append(f"[-]{name} failed: reason withheld")
        for name in sorted(excluded - set(self._checks)):
            lines.append(f'warn: some health checks cannot be excluded: no matches for "{name}"')
        if failed:
            lines.append(f"{page} check failed")
            return Response(500, ("\n".join(lines) + "\n").encode(), _TEXT)
        if "verbose" in request.parameters:
            lines.append(f"{page} check passed")
            return Response(200, ("\n".join(lines) + "\n").encode(), _TEXT)
        return Response(200, b"ok", _TEXT)

    def _one_check(self, name: str) -> Response:
        check = self._checks.get(name)
        if check is None:
            return Response(404, b"404 page not found\n", _TEXT)
        if check():
            return Response(200, b"ok", _TEXT)
        return Response(500, f"internal server error: {name} failed\n".encode(), _TEXT)

    def _paths(self) -> list[str]:
        groups = sorted({(kind.group, kind.version) for kind in self._registry.kinds() if kind.group})
        paths = ["/api", "/api/v1", "/apis"]
        for group in sorted({group for group, _ in groups}):
            paths.append(f"/apis/{group}")
            paths += [f"/apis/{group}/{version}" for named, version in groups if named == group]
        paths += ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return paths


@lru_cache(maxsize=128)
def _rendered(name: str, kinds: tuple[Kind, ...]) -> Rendered | None:
    """Return a discovery document; clusters that serve the same kinds share it."""
    rendered = _discovered(name, kinds)
    return render(rendered) if rendered is not None else None


def _discovered(name: str, kinds: Sequence[Kind]) -> Obj | None:
    match name.split("/")[1:]:
        case ["api"]:
            return api_versions("")
        case ["apis"]:
            return api_group_list(kinds)
        case ["api aggregated"]:
            return api_group_discovery_list(kinds, core=True)
        case ["apis aggregated"]:
            return api_group_discovery_list(kinds, core=False)
        case ["api", version]:
            return api_resource_list(kinds, "", version)
        case ["apis", group]:
            return api_group(kinds, group)
        case ["apis", group, version]:
            return api_resource_list(kinds, group, version)
    return None


def _swagger_form(accept: str) -> str:
    """Return the content type of /openapi/v2 for an Accept header, empty if there is none."""
    return next((_SWAGGER_FORMS[media] for media, _ in clauses(accept) if media in _SWAGGER_FORMS), "")


def _aggregated(accept: str) -> str:
    """Return the content type of aggregated discovery if the client prefers it, otherwise an empty string."""
    for media, parameters in clauses(accept):
        if media not in ("application/json", "*/*", "application/*"):
            continue
        if parameters.get("as") == "APIGroupDiscoveryList" and parameters.get("g") == "apidiscovery.k8s.io":
            if parameters.get("v") in ("v2", "v2beta1"):
                return f"application/json;g=apidiscovery.k8s.io;v={parameters['v']};as=APIGroupDiscoveryList"
            continue
        return ""
    return ""


def version() -> dict[str, str]:
    """Return the version: that of the emulated Kubernetes, with Lamina's own as build metadata."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{KUBERNETES_VERSION}+lamina.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
