"""
Network, mail and hardware addresses, for the server's format checks.

Whether leading zeros are accepted depends on the format: some have always been lenient.
"""

from __future__ import annotations

import re
from typing import Final

import re2

_HEX: Final = "[0-9A-Fa-f]"
_MAC: Final = re.compile(
    "|".join(f"{_HEX * 2}(?:{mark}{_HEX * 2}){{{count - 1}}}" for mark in (":", "-") for count in (6, 8, 20))
    + "|"
    + "|".join(rf"{_HEX * 4}(?:\.{_HEX * 4}){{{count // 2 - 1}}}" for count in (6, 8, 20))
    + "|"
    + "|".join(f"{_HEX}{{{count * 2}}}" for count in (6, 8, 20))
)
_DECIMAL: Final = re.compile("[0-9]{1,8}")
_GROUP: Final = re.compile(f"0*{_HEX}{{0,4}}")

_ATEXT: Final = r"[^\x00-\x20\x7f()<>\[\]:;@\\,\".]"
_ATOM: Final = rf"{_ATEXT}+(?:\.{_ATEXT}+)*"
_QUOTED: Final = r'"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])+"'
_SPACE: Final = r"[ \t]*"
_PLAIN_COMMENT: Final = r"\((?:[^()\\]|\\.)*\)"
_COMMENT: Final = rf"\((?:[^()\\]|\\.|{_PLAIN_COMMENT})*\)"
_GAP: Final = rf"{_SPACE}(?:{_COMMENT}{_SPACE})*"
_SPEC: Final = rf"{_SPACE}(?:{_ATOM}|{_QUOTED})@{_SPACE}(?:{_ATOM}|\[([^\x00-\x20\x7f\[\]\\]*)\])"
_WORD: Final = rf'(?:(?:{_ATEXT}|\.)+|"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*")'
_PHRASE: Final = rf"{_WORD}(?:{_GAP}{_WORD})*"
_MAILBOX: Final = rf"(?:{_SPEC}{_GAP}|{_SPACE}(?:{_PHRASE}{_GAP})?<{_SPEC}>{_GAP})"
_MAIL: Final = re2.compile(rf"(?s){_MAILBOX}|{_SPACE}{_PHRASE}{_GAP}:{_MAILBOX};{_GAP}")


def is_mac(text: str) -> bool:
    """Return whether a text is a hardware address of 6, 8 or 20 bytes."""
    return _MAC.fullmatch(text) is not None


def is_mail(text: str) -> bool:
    """Return whether a text is one mail address, with or without a name."""
    found = _MAIL.fullmatch(text)
    if found is None:
        return False
    literals = [literal for literal in found.groups() if literal is not None]
    return all(is_ip(literal) for literal in literals)


def is_ip(text: str) -> bool:
    """Return whether a text is an IP address without leading zeros."""
    return _version(text, lenient=False) is not None


def is_ipv6(text: str) -> bool:
    return ":" in text and _version(text, lenient=False) == 6


def is_ipv4(text: str) -> bool:
    """Return whether a text is a dotted address; leading zeros and IPv6 mapping are accepted."""
    return "." in text and _version(text, lenient=True) is not None


def is_cidr(text: str) -> bool:
    """Return whether a text is an address with a prefix length; leading zeros are accepted."""
    address, slash, length = text.partition("/")
    if not slash or not _DECIMAL.fullmatch(length):
        return False
    if _is_dotted(address, lenient=True):
        return int(length) <= 32
    return _is_coloned(address, lenient=True) and int(length) <= 128


def _version(text: str, *, lenient: bool) -> int | None:
    for char in text:
        if char == ".":
            return 4 if _is_dotted(text, lenient=lenient) else None
        if char == ":":
            return 6 if _is_coloned(text, lenient=lenient) else None
    return None


def _is_dotted(text: str, *, lenient: bool) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(
        _DECIMAL.fullmatch(part) is not None
        and int(part) <= 255
        and (lenient or part == "0" or not part.startswith("0"))
        for part in parts
    )


def _is_coloned(text: str, *, lenient: bool) -> bool:
    head, double, tail = text.partition("::")
    if double and "::" in tail:
        return False
    groups = [part.split(":") if part else [] for part in ((head, tail) if double else (text,))]
    count = 0
    for side in groups:
        for position, group in enumerate(side):
            is_last = side is groups[-1] and position == len(side) - 1
            if is_last and "." in group:
                if not _is_dotted(group, lenient=lenient):
                    return False
                count += 2
                continue
            if not group or not _GROUP.fullmatch(group) or (len(group) > 4 and not lenient):
                return False
            count += 1
    return count < 8 if double else count == 8
