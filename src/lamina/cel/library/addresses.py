"""Kubernetes' IP and CIDR libraries: `ip('10.0.0.1')`, `cidr('10.0.0.0/8').containsIP(…)`."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import ClassVar, Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.types import opaque
from lamina.cel.values import CelObject, TypeValue
from lamina.objects.go_quote import quoted

_BITS: Final = re.compile("0|[1-9][0-9]{0,2}")


@dataclass(frozen=True, slots=True)
class Ip(CelObject):
    """An IPv4 or IPv6 address."""

    cel_type: ClassVar[TypeValue] = TypeValue("net.IP")

    address: ipaddress.IPv4Address | ipaddress.IPv6Address

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr(CelObject):
    """An address and a prefix length."""

    cel_type: ClassVar[TypeValue] = TypeValue("net.CIDR")

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int

    def __len__(self) -> int:
        return (self.bits + 7) // 8

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def network(self, bits: int) -> int:
        return int(self.address) >> (self.address.max_prefixlen - bits)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address, or raise ValueError with the message of Go's netip."""
    first = next((char for char in text if char in ".:%"), "")
    problem = "unable to parse IP"
    if first == ".":
        problem = _dotted_problem(text) or problem
    elif first == "%":
        problem = "missing IPv6 address"
    if first in {".", ":"}:
        try:
            return ipaddress.IPv4Address(text) if first == "." else ipaddress.IPv6Address(text)
        except ValueError:
            pass
    raise ValueError(f"ParseAddr({quoted(text)}): {problem}")


def _dotted_problem(text: str) -> str | None:
    place = 0
    for field, part in enumerate(text.split(".")):
        digits = len(part) - len(part.lstrip("0123456789"))
        for length in range(1, digits + 1):
            if length > 1 and part.startswith("0"):
                return "IPv4 field has octet with leading zero"
            if int(part[:length]) > 255:
                return "IPv4 field has value >255"
        if digits < len(part):
            return f"unexpected character (at {quoted(text[place + digits :])})"
        if not part:
            return f"IPv4 field must have at least one digit (at {quoted(text[min(place, len(text) - 1) :])})"
        if field == 3 and place + len(part) < len(text):
            return "IPv4 address too long"
        place += len(part) + 1
    return "IPv4 address too short" if text.count(".") < 3 else None


def parse_ip(text: str) -> Ip:
    try:
        address = _address(text)
    except ValueError as problem:
        message = f"IP Address {quoted(text)} parse error during conversion from string: {problem}"
        raise EvaluationError(message) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f"IP address {quoted(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Ip(address)


def parse_cidr(text: str) -> Cidr:
    prefix = "network address parse error during conversion from string: "
    try:
        return _prefix(text)
    except ValueError as problem:
        # Kubernetes adds the prefix twice.
        raise EvaluationError(f"{prefix}{prefix}netip.ParsePrefix({quoted(text)}): {problem}") from None
    except EvaluationError as problem:
        raise EvaluationError(f"{prefix}{problem.message}") from None


def _prefix(text: str) -> Cidr:
    written, slash, length = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address = _address(written)
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(length):
        raise ValueError(f"bad bits after slash: {quoted(length)}")
    if int(length) > address.max_prefixlen:
        raise ValueError("prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Cidr(address, int(length))


def is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except EvaluationError:
        return False
    return True


def is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except EvaluationError:
        return False
    return True


def is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def family(value: Ip) -> int:
    return value.address.version


def is_global_unicast(value: Ip) -> bool:
    address = value.address
    broadcast = address.version == 4 and int(address) == 0xFFFFFFFF
    return not (
        broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def is_link_local_multicast(value: Ip) -> bool:
    number = int(value.address)
    if value.address.version == 4:
        return number >> 8 == 0xE00000
    return number >> 112 & 0xFF0F == 0xFF02


def contains_ip(network: Cidr, other: Ip | str) -> bool:
    address = (parse_ip(other) if isinstance(other, str) else other).address
    if address.version != network.address.version:
        return False
    return network.network(network.bits) == int(address) >> (address.max_prefixlen - network.bits)


def contains_cidr(network: Cidr, other: Cidr | str) -> bool:
    inner = parse_cidr(other) if isinstance(other, str) else other
    if inner.address.version != network.address.version or network.bits > inner.bits:
        return False
    return network.network(network.bits) == inner.network(network.bits)


def masked(network: Cidr) -> Cidr:
    kind, free = type(network.address), network.address.max_prefixlen - network.bits
    return Cidr(kind(int(network.address) >> free << free), network.bits)


_ACCESSORS: Final = [
    method("family", "ip_family", "net.IP -> int", family),
    method("isUnspecified", "ip_is_unspecified", "net.IP -> bool", lambda ip: ip.address.is_unspecified),
    method("isLoopback", "ip_is_loopback", "net.IP -> bool", lambda ip: ip.address.is_loopback),
    method("isLinkLocalMulticast", "ip_is_link_local_multicast", "net.IP -> bool", is_link_local_multicast),
    method(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        "net.IP -> bool",
        lambda ip: ip.address.is_link_local,
    ),
    method("isGlobalUnicast", "ip_is_global_unicast", "net.IP -> bool", is_global_unicast),
]

IP: Final = Library(
    name="kubernetes.net.ip",
    functions=to_functions(
        [
            function("ip", "string_to_ip", "string -> net.IP", parse_ip),
            function("isIP", "is_ip", "string -> bool", is_ip),
            function("ip.isCanonical", "ip_is_canonical", "string -> bool", is_canonical),
            function("string", "ip_to_string", "net.IP -> string", str),
            *_ACCESSORS,
        ]
    ),
    types=(opaque("net.IP"),),
)

CIDR: Final = Library(
    name="kubernetes.net.cidr",
    functions=to_functions(
        [
            function("cidr", "string_to_cidr", "string -> net.CIDR", parse_cidr),
            function("isCIDR", "is_cidr", "string -> bool", is_cidr),
            function("string", "cidr_to_string", "net.CIDR -> string", str),
            method("containsIP", "cidr_contains_ip_string", "net.CIDR, string -> bool", contains_ip),
            method("containsIP", "cidr_contains_ip_ip", "net.CIDR, net.IP -> bool", contains_ip),
            method("containsCIDR", "cidr_contains_cidr_string", "net.CIDR, string -> bool", contains_cidr),
            method("containsCIDR", "cidr_contains_cidr", "net.CIDR, net.CIDR -> bool", contains_cidr),
            method("ip", "cidr_ip", "net.CIDR -> net.IP", lambda network: Ip(network.address)),
            method("prefixLength", "cidr_prefix_length", "net.CIDR -> int", lambda network: network.bits),
            method("masked", "cidr_masked", "net.CIDR -> net.CIDR", masked),
        ]
    ),
    types=(opaque("net.CIDR"),),
)
