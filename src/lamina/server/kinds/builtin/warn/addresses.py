"""Warnings about IP addresses and CIDR blocks in non-canonical form."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator


def address_warnings(path: str, value: str) -> Iterator[str]:
    """Warn about leading zeros, mapped addresses, and IPv6 addresses that are not in the shortest form."""
    plain = _without_zeros(value)
    try:
        address = ipaddress.ip_address(plain)
    except ValueError:
        return
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if mapped is not None or plain != value:
        yield (
            f'{path}: non-standard IP address "{value}" will be considered invalid in a future '
            f'Kubernetes release: use "{mapped or address}"'
        )
    elif address.version == 6 and str(address) != value:
        yield f'{path}: IPv6 address "{value}" should be in RFC 5952 canonical format ("{address}")'


def block_warnings(path: str, value: str) -> Iterator[str]:
    """Warn about an ambiguous or non-canonical CIDR block."""
    plain, _, bits = value.partition("/")
    plain = _without_zeros(plain)
    try:
        block = ipaddress.ip_interface(f"{plain}/{bits}")
    except ValueError:
        return
    address, network = block.ip, block.network
    ambiguous = address != network.network_address
    if ambiguous:
        single = f"{address}/{address.max_prefixlen}"
        yield (
            f'{path}: CIDR value "{value}" is ambiguous in this context '
            f'(should be "{network}" or "{single}"?)'
        )
    odd = f"{plain}/{bits}" != value
    if odd:
        yield (
            f'{path}: non-standard CIDR value "{value}" will be considered invalid in a future '
            f'Kubernetes release: use "{network}"'
        )
    if not ambiguous and not odd and address.version == 6 and str(network) != value:
        yield f'{path}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{network}")'


def _without_zeros(value: str) -> str:
    """Return a dotted address without leading zeros, which parsers interpret differently."""
    if ":" in value:
        return value
    return ".".join(part.lstrip("0") or "0" for part in value.split(".")) if value else value
