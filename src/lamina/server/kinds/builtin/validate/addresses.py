"""
IP addresses and CIDR ranges.

Old fields accept what Go once accepted: leading zeros, and IPv4-mapped IPv6 addresses.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence

from lamina.errors import Cause
from lamina.server.field_errors import invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DOTTED = re.compile(r"[0-9]+(\.[0-9]+){3}")


def address(text: str) -> Address | None:
    """Return the address in a text, None if it has none; a mapped IPv4 address is an IPv4 address."""
    if _DOTTED.fullmatch(text):
        numbers = [int(number) for number in text.split(".") if len(number) < 9]
        if len(numbers) != 4 or max(numbers) > 255:
            return None
        return ipaddress.IPv4Address(bytes(numbers))
    if ":" not in text or "%" in text:
        return None
    try:
        found = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found


def network(text: str) -> Network | None:
    """Return the range in a text such as `10.0.0.0/8`."""
    before, slash, after = text.partition("/")
    found = address(before)
    if found is None or not slash or not re.fullmatch("[0-9]{1,4}", after):
        return None
    length = int(after)
    if ":" in before and found.version == 4:
        length -= 96
    if not 0 <= length <= found.max_prefixlen:
        return None
    return ipaddress.ip_network((found, length), strict=False)


def check_address(path: str, text: str, known: Collection[str] = ()) -> list[Cause]:
    """Validate an address; `known` ones from the old object are accepted."""
    if text in known or address(text) is not None:
        return []
    return [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]


def check_network(path: str, text: str, known: Collection[str] = ()) -> list[Cause]:
    if text in known or network(text) is not None:
        return []
    return [invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]


def check_canonical(path: str, text: str) -> list[Cause]:
    """Validate an address of a newer field, which has to be in canonical form."""
    found = address(text)
    if found is None:
        return [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    causes = []
    if found.version == 4 and any(part != "0" and part.startswith("0") for part in text.split(".")):
        causes.append(invalid(path, text, "must not have leading 0s"))
    if found.version == 4 and ":" in text:
        causes.append(invalid(path, text, "must not be an IPv4-mapped IPv6 address"))
    if not causes and text != str(found):
        causes.append(invalid(path, text, f'must be in canonical form ("{found}")'))
    return causes


def check_endpoint(path: str, text: str) -> list[Cause]:
    """Refuse an address that is not reachable from other hosts."""
    found = address(text)
    if found is None:
        return [invalid(path, text, "must be a valid IP address")]
    causes = []
    if found.is_unspecified:
        causes.append(invalid(path, text, f"may not be unspecified ({text})"))
    if found.is_loopback:
        causes.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if found.is_link_local:
        causes.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    link_local = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))
    if found in link_local[found.version == 6]:
        range_told = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        causes.append(invalid(path, text, range_told))
    return causes


def is_dual_stack(texts: Sequence[str]) -> bool:
    """Return whether there is an address or range of each family."""
    found = [address(text.partition("/")[0]) for text in texts]
    return {one.version for one in found if one} == {4, 6}
