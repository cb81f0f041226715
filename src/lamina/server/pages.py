"""
Everything that is no resource: discovery, OpenAPI, health, version, metrics.

What is derived from all kinds is made when somebody asks and kept until the
kinds change.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from lamina import __version__
from lamina.errors import MethodNotAllowed
from lamina.objects.types import Obj
from lamina.server import words
from lamina.server.administration import Administration
from lamina.server.builtin.catalogue import is_builtin
from lamina.server.discovery import (
    Rendered,
    api_group,
    api_group_discovery_list,
    api_group_list,
    api_resource_list,
    api_versions,
    render,
)
from lamina.server.kind import Kind
from lamina.server.metrics import Metrics
from lamina.server.negotiate import clauses, negotiate
from lamina.server.openapi import OpenApi, caching
from lamina.server.openapi_v2 import Swagger
from lamina.server.registry import Registry
from lamina.server.rendering import encode_bytes
from lamina.server.request import JSON, Answer, Request, json_answer

KUBERNETES = "1.35.4"
_TEXT = "text/plain; charset=utf-8"
_SWAGGER_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_SWAGGER_FORMS = {
    **dict.fromkeys(("*/*", "application/*", "application/json"), JSON),
    # Two spellings: the first is no media type at all, and what clients ask for.
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": _SWAGGER_PROTOBUF,
    _SWAGGER_PROTOBUF: _SWAGGER_PROTOBUF,
}

Checks = Mapping[str, Callable[[], bool]]
"""Names of health checks, and what each of them asks."""
Backup = Callable[[], AsyncIterator[bytes]]
"""A copy of the log, as a stream of bytes."""


class Pages:
    """The pages of one control plane."""

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
        self._documents: dict[str, Rendered | None] = {}
        self._metrics = metrics
        self._checks = checks
        self._backup = backup
        self.administration: Administration

    async def serve(self, request: Request) -> Answer:
        """Answer a request for a path that is no resource."""
        path = request.path.rstrip("/") or "/"
        top = path.split("/", 2)[1]
        if path == "/lamina/backup" and request.method == "POST" and self._backup is not None:
            return Answer(200, self._backup(), "application/vnd.sqlite3")
        if top == "lamina" and (answer := await self.administration.serve(request)) is not None:
            return answer
        if request.method != "GET":
            # What is served as resources are is read by GET alone.
            if top in ("api", "version") or (top == "apis" and path.count("/") > 2):
                raise words.not_allowed()
            if request.method != "HEAD" and top not in ("healthz", "livez", "readyz"):
                raise words.not_allowed() if top == "apis" else MethodNotAllowed("method not allowed")
        match top:
            case "api" | "apis":
                return self._discover(request, path)
            case "openapi":
                return self._describe(request, path)
            case "healthz" | "livez" | "readyz":
                return self._health(request, path)
            case "version":
                if path != "/version":
                    raise words.unknown_path()
                return json_answer(version())
            case "metrics":
                return Answer(200, self._metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
            case "" if path == "/":
                return json_answer({"paths": self._paths()})
            case _:
                return Answer(404, b"404 page not found\n", _TEXT)

    def _discover(self, request: Request, path: str) -> Answer:
        accept = request.headers.get("accept", "")
        if path in ("/api", "/apis") and "apidiscovery.k8s.io" in accept and (form := _aggregated(accept)):
            made = self._document(f"{path} aggregated")
            assert made is not None
            headers = [("etag", made.etag), ("vary", "Accept"), ("cache-control", "public")]
            if request.headers.get("if-none-match", "").strip() == made.etag:
                return Answer(304, b"", form, headers)
            return Answer(200, made.body, form, headers)
        wanted = negotiate(accept, ())
        document = self._document(path)
        if document is None:
            named = path.split("/")
            if named[1] == "apis" and not is_builtin(named[2]):
                raise words.no_page()
            raise words.unknown_path()
        return encode_bytes(document.body, wanted)

    def _document(self, name: str) -> Rendered | None:
        """Return a page of discovery, made once for as long as the kinds stay the same."""
        kinds = self._registry.kinds()
        if self._edition != self._registry.edition:
            self._edition = self._registry.edition
            self._documents = {}
        if name not in self._documents:
            made = _rendered(name, kinds)
            if made is None:
                # Not kept: there is no end of paths that do not exist.
                return None
            self._documents[name] = made
        return self._documents[name]

    def _describe(self, request: Request, path: str) -> Answer:
        kinds = self._registry.kinds()
        if path == "/openapi/v2":
            return self._swagger(request, kinds)
        if path == "/openapi/v3":
            return Answer(200, self._openapi.index(kinds))
        name = path.removeprefix("/openapi/v3/")
        document = self._openapi.document(kinds, name)
        if document is None or name == path:
            return Answer(404, b"404 page not found\n", _TEXT)
        # How long an answer may be kept is counted on the client's clock, which is nobody's to wind.
        status, headers = caching(name, document, request.parameter("hash"), datetime.now(UTC))
        listed = [(header.lower(), value) for header, value in headers.items()]
        if status != 200:
            return Answer(status, b"", JSON, listed)
        if request.headers.get("if-none-match", "").strip() == document.etag:
            return Answer(304, b"", JSON, listed)
        return Answer(200, document.body, JSON, listed)

    def _swagger(self, request: Request, kinds: Sequence[Kind]) -> Answer:
        form = _swagger_form(request.headers.get("accept", "") or "*/*")
        if not form:
            # As on a real server, which says it with the code alone.
            return Answer(406, b"", _TEXT, [("vary", "Accept")])
        in_protobuf = form == _SWAGGER_PROTOBUF
        document = self._openapi_v2.protobuf(kinds) if in_protobuf else self._openapi_v2.document(kinds)
        headers = [("etag", document.etag), ("vary", "Accept")]
        if request.headers.get("if-none-match", "").strip() == document.etag:
            return Answer(304, b"", form, headers)
        return Answer(200, document.body, form, headers)

    def _health(self, request: Request, path: str) -> Answer:
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
            return Answer(500, ("\n".join(lines) + "\n").encode(), _TEXT)
        if "verbose" in request.parameters:
            lines.append(f"{page} check passed")
            return Answer(200, ("\n".join(lines) + "\n").encode(), _TEXT)
        return Answer(200, b"ok", _TEXT)

    def _one_check(self, name: str) -> Answer:
        check = self._checks.get(name)
        if check is None:
            return Answer(404, b"404 page not found\n", _TEXT)
        if check():
            return Answer(200, b"ok", _TEXT)
        return Answer(500, f"internal server error: {name} failed\n".encode(), _TEXT)

    def _paths(self) -> list[str]:
        groups = sorted({(kind.group, kind.version) for kind in self._registry.kinds() if kind.group})
        listed = ["/api", "/api/v1", "/apis"]
        for group in sorted({group for group, _ in groups}):
            listed.append(f"/apis/{group}")
            listed += [f"/apis/{group}/{version}" for named, version in groups if named == group]
        listed += ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return listed


@lru_cache(maxsize=128)
def _rendered(name: str, kinds: tuple[Kind, ...]) -> Rendered | None:
    """Return a page of discovery; control planes that serve the same kinds have the same pages."""
    made = _discovered(name, kinds)
    return render(made) if made is not None else None


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
    """Return the content type of /openapi/v2 for a client that accepts this, or none."""
    return next((_SWAGGER_FORMS[media] for media, _ in clauses(accept) if media in _SWAGGER_FORMS), "")


def _aggregated(accept: str) -> str:
    """Return the content type of aggregated discovery, if the client asks for a form of it that is served first."""
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
    """Return what this server says it is: the Kubernetes it behaves like, and in the build mark, who it is."""
    major, minor, _ = KUBERNETES.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{KUBERNETES}+lamina.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
