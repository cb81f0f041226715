"""
Everything that is no resource: discovery, OpenAPI, health, version, metrics.

What is derived from all kinds is made when somebody asks and kept until the
kinds change.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import parse_qs


from lamina import __version__
from lamina.errors import MethodNotAllowed
from lamina.server import words
from lamina.server.discovery import Discovery
from lamina.server.metrics import Metrics
from lamina.server.negotiate import clauses
from lamina.server.openapi import OpenApi
from lamina.server.registry import Registry
from lamina.server.request import Answer, Request, json_answer

KUBERNETES = "1.35.4"
_TEXT = "text/plain; charset=utf-8"

Checks = Mapping[str, Callable[[], bool]]
"""Names of health checks, and what each of them asks."""
Backup = Callable[[], AsyncIterator[bytes]]
"""A copy of the log, as a stream of bytes."""


class Pages:
    """The pages of one control plane."""

    def __init__(
        self,
        registry: Registry,
        discovery: Discovery,
        openapi: OpenApi,
        metrics: Metrics,
        checks: Checks,
        backup: Backup,
    ) -> None:
        self._registry = registry
        self._discovery = discovery
        self._openapi = openapi
        self._metrics = metrics
        self._checks = checks
        self._backup = backup

    async def serve(self, request: Request) -> Answer:
        """Answer a request for a path that is no resource."""
        path = request.path.rstrip("/") or "/"
        top = path.split("/", 2)[1]
        if path == "/lamina/backup" and request.method == "POST":
            return Answer(200, self._backup(), "application/vnd.sqlite3")
        if request.method not in ("GET", "HEAD"):
            raise words.not_allowed() if top in ("api", "apis") else MethodNotAllowed("method not allowed")
        match top:
            case "api" | "apis":
                return self._discover(request, path)
            case "openapi":
                return self._describe(request, path)
            case "healthz" | "livez" | "readyz":
                return self._health(request, path)
            case "version":
                return json_answer(version())
            case "metrics":
                return Answer(200, self._metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
            case "":
                return json_answer({"paths": self._paths()})
            case _:
                return Answer(404, b"404 page not found\n", _TEXT)

    def _discover(self, request: Request, path: str) -> Answer:
        accept = request.headers.get("accept", "")
        if path in ("/api", "/apis") and "apidiscovery.k8s.io" in accept and (form := _aggregated(accept)):
            body, etag = self._discovery.aggregated(core=path == "/api")
            headers = [("etag", etag), ("vary", "Accept"), ("cache-control", "public")]
            if request.headers.get("if-none-match", "").strip() == etag:
                return Answer(304, b"", form, headers)
            return Answer(200, body, form, headers)
        document = self._discovery.document(path)
        if document is None:
            if path.count("/") == 2 and path.startswith("/apis/"):
                return Answer(404, b"404 page not found\n", _TEXT)
            raise words.unknown_path()
        return Answer(200, document)

    def _describe(self, request: Request, path: str) -> Answer:
        parameters = parse_qs(request.query)
        return self._openapi.serve(path, (parameters.get("hash") or [""])[0], request.headers)

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
