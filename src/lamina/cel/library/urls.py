"""Kubernetes' URLs: `url('https://example.com:80/path?k=v').getHost()`, read as Go reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import unquote_to_bytes

from lamina.cel.declare import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.addresses import is_ip
from lamina.cel.library.signature import function, gathered, method
from lamina.cel.values import CelObject, TypeValue
from lamina.objects.printing import quoted

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_ESCAPED_ASCII: Final = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_NOT_IN_HOST: Final = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_WRITTEN_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*")
_PATH_BYTES: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")


class _Bad(ValueError):
    """A text that is no URL, and why."""


@dataclass(frozen=True, slots=True)
class Url(CelObject):
    """The parts of a URL that can be asked for; `text` is the whole."""

    cel_type: ClassVar[TypeValue] = TypeValue("kubernetes.URL")

    text: str
    scheme: str
    host: str
    path: str
    query: str


def _parsed(text: str, whole: str, *, in_request: bool) -> Url:
    if _CONTROL.search(text):
        raise _Bad("net/url: invalid control character in URL")
    if not text and in_request:
        raise _Bad("empty url")
    if text == "*":
        return Url(whole, "", "", "*", "")
    if text.startswith(":"):
        raise _Bad("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme, rest = (found[1].lower(), text[found.end() :]) if found else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(whole, scheme, "", "", query)
        if in_request:
            raise _Bad("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Bad("first path segment in URL cannot contain colon")
    host = ""
    if rest.startswith("//") and (scheme or (not in_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest, host = slash + path, _host(authority)
    _check_escapes(rest)
    return Url(whole, scheme, host, rest, query)


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    opened = host.rfind("[")
    if opened > 0:
        raise _Bad("invalid IP-literal")
    if opened == 0:
        closed = host.rfind("]")
        if closed < 0:
            raise _Bad("missing ']' in host")
        _check_port(host[closed + 1 :])
        name, _, zone = host[1:closed].partition("%25")
        _check_escapes(zone)
        if ":" not in name or not is_ip(name):
            raise _Bad(f"invalid host: ParseAddr({quoted(name)}): unable to parse IP")
    else:
        if ":" in host:
            _check_port(host[host.rfind(":") :])
        _check_escapes(host)
        if escaped := _ESCAPED_ASCII.search(host):
            raise _Bad(f"invalid URL escape {quoted(escaped.group())}")
        if strange := _NOT_IN_HOST.search(host):
            raise _Bad(f"invalid character {quoted(strange.group())} in host name")
    if at:
        if not _USER.fullmatch(user):
            raise _Bad("net/url: invalid userinfo")
        _check_escapes(user)
    return _unescaped(host)


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise _Bad(f"invalid port {quoted(port)} after host")


def _check_escapes(text: str) -> None:
    if bad := _BAD_ESCAPE.search(text):
        raise _Bad(f"invalid URL escape {quoted(bad.group())}")


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text


def problem_with(text: str) -> str | None:
    """Return what keeps a text from being an absolute URL or path, or None."""
    try:
        _parsed(text, text, in_request=True)
    except _Bad as problem:
        return f"parse {quoted(text)}: {problem}"
    return None


def parse(text: str) -> Url:
    said = "URL parse error during conversion from string: "
    problem = problem_with(text)
    if problem is not None:
        raise EvaluationError(f"{said}{problem}")
    rest, _, fragment = text.partition("#")
    try:
        url = _parsed(rest, text, in_request=False)
        _check_escapes(fragment)
    except _Bad as bad:
        raise EvaluationError(f"{said}parse {quoted(rest)}: {bad}") from None
    return url


def is_url(text: str) -> bool:
    return problem_with(text) is None


def hostname(url: Url) -> str:
    host = url.host
    if host.startswith("[") and "]" in host:
        return host[1 : host.rfind("]")]
    name, colon, _ = host.rpartition(":")
    return name if colon else host


def port(url: Url) -> str:
    rest = url.host.rpartition("]")[2] if url.host.startswith("[") else url.host
    return rest.rpartition(":")[2] if ":" in rest else ""


def escaped_path(url: Url) -> str:
    if url.path == "*" or _WRITTEN_PATH.fullmatch(url.path):
        return url.path
    raw = unquote_to_bytes(url.path)
    return "".join(chr(byte) if byte in _PATH_BYTES else f"%{byte:02X}" for byte in raw)


def query(url: Url) -> dict[str, list[str]]:
    """Return the values of each key; what is not encoded right is left out."""
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        if _BAD_ESCAPE.search(key) or _BAD_ESCAPE.search(value):
            continue
        found.setdefault(_unescaped(key.replace("+", " ")), []).append(_unescaped(value.replace("+", " ")))
    return found


_U: Final = "kubernetes.URL"

URLS: Final = Library(
    name="kubernetes.urls",
    functions=gathered(
        [
            function("url", "string_to_url", f"string -> {_U}", parse),
            function("isURL", "is_url_string", "string -> bool", is_url),
            method("getScheme", "url_get_scheme", f"{_U} -> string", lambda url: url.scheme),
            method("getHost", "url_get_host", f"{_U} -> string", lambda url: url.host),
            method("getHostname", "url_get_hostname", f"{_U} -> string", hostname),
            method("getPort", "url_get_port", f"{_U} -> string", port),
            method("getEscapedPath", "url_get_escaped_path", f"{_U} -> string", escaped_path),
            method("getQuery", "url_get_query", f"{_U} -> map(string, list(string))", query),
        ]
    ),
)
