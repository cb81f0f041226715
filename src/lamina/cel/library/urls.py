"""Kubernetes' URL library: `url('https://example.com:80/path?k=v').getHost()`, parsed as in Go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import unquote_to_bytes

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.values import CelObject, TypeValue
from lamina.objects import urls
from lamina.objects.go_quote import quoted
from lamina.objects.urls import BadUrl, unescaped

_WRITTEN_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*")
_PATH_BYTES: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")


@dataclass(frozen=True, slots=True)
class Url(CelObject):
    """A URL, its text and its parts."""

    cel_type: ClassVar[TypeValue] = TypeValue("kubernetes.URL")

    text: str
    parts: urls.Url


def uri_error(text: str) -> str | None:
    """Return the error of a text that is no absolute URL or path; None for a valid one."""
    try:
        urls.parse_in_request(text)
    except BadUrl as problem:
        return f"parse {quoted(text)}: {problem}"
    return None


def parse(text: str) -> Url:
    problem = uri_error(text)
    if problem is None:
        try:
            return Url(text, urls.parse(text))
        except BadUrl as bad:
            problem = str(bad)
    raise EvaluationError(f"URL parse error during conversion from string: {problem}")


def is_url(text: str) -> bool:
    return uri_error(text) is None


def hostname(url: Url) -> str:
    host = url.parts.host
    if host.startswith("[") and "]" in host:
        return host[1 : host.rfind("]")]
    name, colon, _ = host.rpartition(":")
    return name if colon else host


def port(url: Url) -> str:
    host = url.parts.host
    rest = host.rpartition("]")[2] if host.startswith("[") else host
    return rest.rpartition(":")[2] if ":" in rest else ""


def escaped_path(url: Url) -> str:
    path = url.parts.path
    if path == "*" or _WRITTEN_PATH.fullmatch(path):
        return path
    raw = unquote_to_bytes(path)
    return "".join(chr(byte) if byte in _PATH_BYTES else f"%{byte:02X}" for byte in raw)


def query(url: Url) -> dict[str, list[str]]:
    """Return the values of each key, without invalid escapes."""
    found: dict[str, list[str]] = {}
    for pair in url.parts.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        if urls.is_badly_escaped(key) or urls.is_badly_escaped(value):
            continue
        found.setdefault(unescaped(key.replace("+", " ")), []).append(unescaped(value.replace("+", " ")))
    return found


_U: Final = "kubernetes.URL"

URLS: Final = Library(
    name="kubernetes.urls",
    functions=to_functions(
        [
            function("url", "string_to_url", f"string -> {_U}", parse),
            function("isURL", "is_url_string", "string -> bool", is_url),
            method("getScheme", "url_get_scheme", f"{_U} -> string", lambda url: url.parts.scheme),
            method("getHost", "url_get_host", f"{_U} -> string", lambda url: url.parts.host),
            method("getHostname", "url_get_hostname", f"{_U} -> string", hostname),
            method("getPort", "url_get_port", f"{_U} -> string", port),
            method("getEscapedPath", "url_get_escaped_path", f"{_U} -> string", escaped_path),
            method("getQuery", "url_get_query", f"{_U} -> map(string, list(string))", query),
        ]
    ),
)
