"""URLs with the grammar and the error texts of Go's net/url."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import replace

from lamina.objects.go_quote import quoted

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_ESCAPED_ASCII: Final = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_NOT_IN_HOST: Final = re.compile(r"[\x00-\x20#/?@\\^`{|}\x7f]")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


class BadUrl(ValueError):
    """A text is not a URL; the message is net/url's."""


class Url(Struct, frozen=True, kw_only=True):
    """The parts of a URL; `user` is None where there is none, and `path` as it was written."""

    scheme: str = ""
    host: str = ""
    user: str | None = None
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse(text: str) -> Url:
    """Return the parts of a URL; raises BadUrl."""
    rest, _, fragment = text.partition("#")
    try:
        url = _parsed(rest, in_request=False)
    except BadUrl as problem:
        raise BadUrl(f"parse {quoted(rest)}: {problem}") from None
    try:
        _check_escapes(fragment)
    except BadUrl as problem:
        raise BadUrl(f"parse {quoted(text)}: {problem}") from None
    return replace(url, fragment=fragment)


def parse_in_request(text: str) -> Url:
    """Return the parts of a request target, an absolute URL or an absolute path; raises BadUrl."""
    return _parsed(text, in_request=True)


def _parsed(text: str, *, in_request: bool) -> Url:
    if _CONTROL.search(text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and in_request:
        raise BadUrl("empty url")
    if text == "*":
        return Url(path="*")
    if text.startswith(":"):
        raise BadUrl("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found.group(1).lower() if found else ""
    rest = text[found.end() :] if found else text
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, query=query)
        if in_request:
            raise BadUrl("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise BadUrl("first path segment in URL cannot contain colon")
    host, user = "", None
    if rest.startswith("//") and (scheme or (not in_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host, user = _authority(authority)
    _check_escapes(rest)
    return Url(scheme=scheme, host=unescaped(host), user=user, path=rest, query=query)


def _authority(authority: str) -> tuple[str, str | None]:
    user, at, host = authority.rpartition("@")
    _check_host(host)
    if not at:
        return host, None
    if not _USER.fullmatch(user):
        raise BadUrl("net/url: invalid userinfo")
    _check_escapes(user)
    return host, user


def _check_host(host: str) -> None:
    opened = host.rfind("[")
    if opened > 0:
        raise BadUrl("invalid IP-literal")
    if opened == 0:
        closed = host.rfind("]")
        if closed < 0:
            raise BadUrl("missing ']' in host")
        _check_port(host[closed + 1 :])
        name, _, zone = host[1:closed].partition("%25")
        _check_escapes(zone)
        if not _is_ipv6(name) or _NOT_IN_HOST.search(zone):
            raise BadUrl(f"invalid host: ParseAddr({quoted(name)}): unable to parse IP")
        return
    if ":" in host:
        _check_port(host[host.rfind(":") :])
    _check_escapes(host)
    if escaped := _ESCAPED_ASCII.search(host):
        raise BadUrl(f"invalid URL escape {quoted(escaped.group())}")
    if strange := _NOT_IN_HOST.search(host):
        raise BadUrl(f"invalid character {quoted(strange.group())} in host name")


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise BadUrl(f"invalid port {quoted(port)} after host")


def _check_escapes(text: str) -> None:
    if bad := _BAD_ESCAPE.search(text):
        raise BadUrl(f"invalid URL escape {quoted(bad.group())}")


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def is_badly_escaped(text: str) -> bool:
    """Say whether a percent sign begins no valid escape."""
    return _BAD_ESCAPE.search(text) is not None


def unescaped(text: str) -> str:
    """Return a text with its percent escapes decoded."""
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text
