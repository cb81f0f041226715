"""
Scalars with a canonical form: times and bytes.

Each function takes the text of a request and returns its canonical form, or raises
ValueError with the message of Go's decoder.
"""

from __future__ import annotations

import binascii
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS: Final = (
    ("2006", r"([0-9]{4})", "", 0, 9999), ("-", "-", "", 0, 0), ("01", r"([0-9]{2})", "month", 1, 12),
    ("-", "-", "", 0, 0), ("02", r"([0-9]{2})", "", 0, 99), ("T", "T", "", 0, 0),
    ("15", r"([0-9]{1,2})", "hour", 0, 23), (":", ":", "", 0, 0), ("04", r"([0-9]{2})", "minute", 0, 59),
    (":", ":", "", 0, 0), ("05", r"([0-9]{2})", "second", 0, 59),
)  # fmt: skip
"""The elements of a time in Go's order: layout, pattern, and bounds."""
_ZONE: Final = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})")
_USUAL: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1024)
def canonical_time(text: str) -> str | None:
    """Return a time in UTC, truncated to seconds; None for the zero time, which counts as absent."""
    if len(text) == 20 and _is_canonical(text):
        return text
    when = _moment(text, _SECONDS)
    return None if when == _NEVER else when.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


@lru_cache(maxsize=1024)
def canonical_micro_time(text: str) -> str | None:
    """Return a time in UTC with six fractional digits; any other number of digits is refused."""
    if len(text) == 27 and _is_canonical(text):
        return text
    when = _moment(text, _MICROSECONDS)
    return None if when == _NEVER else when.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _is_canonical(text: str) -> bool:
    """Return whether a time is in canonical form already, as most are."""
    if _USUAL.fullmatch(text) is None:
        return False
    try:
        return datetime.fromisoformat(text) != _NEVER
    except ValueError:
        return False


def _moment(text: str, layout: str) -> datetime:
    rest = text
    numbers: list[int] = []
    for name, pattern, bounded, least, most in _ELEMENTS:
        match = re.match(pattern, rest)
        if match is None:
            raise _parse_error(text, layout, rest, name)
        rest = rest[match.end() :]
        if match.lastindex:
            numbers.append(int(match[1]))
            if bounded and not least <= numbers[-1] <= most:
                raise ValueError(f'parsing time "{text}": {bounded} out of range')
    part = re.match(r"[.,]([0-9]+)" if layout is _SECONDS else r"[.,]([0-9]{6})", rest)
    if part is None and layout is _MICROSECONDS:
        raise _parse_error(text, layout, rest, ".000000")
    if part is not None:
        rest = rest[part.end() :]
        numbers.append(int(part[1][:6].ljust(6, "0")))
    zone = _ZONE.match(rest)
    if zone is None:
        raise _parse_error(text, layout, rest, "Z07:00")
    offset = timedelta()
    if zone[1]:
        hours, minutes = int(zone[2]), int(zone[3])
        if hours > 24 or minutes > 60:
            wrong = "hour" if hours > 24 else "minute"
            raise ValueError(f'parsing time "{text}": time zone offset {wrong} out of range')
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[1] == "-" else 1)
    if rest := rest[zone.end() :]:
        raise ValueError(f'parsing time "{text}": extra text: "{rest}"')
    year, month, day, hour, minute, second, micro, *_ = *numbers, 0
    try:
        return datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        raise ValueError(f'parsing time "{text}": day out of range') from None


def _parse_error(text: str, layout: str, rest: str, element: str) -> ValueError:
    return ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}"')


_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDING: Final = ord("=")


def canonical_bytes(text: str) -> str:
    """Return base64 text in Go's canonical encoding."""
    try:
        plain = len(text) % 4 == 0 and text.isascii()
        data = binascii.a2b_base64(text, strict_mode=True) if plain else _decode_lenient(text)
    except binascii.Error:
        data = _decode_lenient(text)
    written = binascii.b2a_base64(data, newline=False)
    return text if len(written) == len(text) and written == text.encode() else written.decode()


def _decode_lenient(text: str) -> bytes:
    """Decode base64 with line breaks; the error names the position of the first invalid byte."""
    data = text.encode()
    found = bytearray()
    for position, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte == _PADDING and len(found) % 4 in (2, 3):
            _check_ending(data, position, missing=4 - len(found) % 4)
            break
        if byte not in _ALPHABET:
            raise ValueError(f"illegal base64 data at input byte {position}")
        found.append(byte)
    else:
        if len(found) % 4:
            raise ValueError(f"illegal base64 data at input byte {len(data) - len(found) % 4}")
    return binascii.a2b_base64(bytes(found) + b"=" * (-len(found) % 4))


def _check_ending(data: bytes, position: int, missing: int) -> None:
    """Check the bytes after the first padding character, at `position`."""
    rest = [at for at in range(position + 1, len(data)) if data[at] not in b"\r\n"]
    if missing == 2:
        if not rest:
            raise ValueError(f"illegal base64 data at input byte {len(data)}")
        second = rest.pop(0)
        if data[second] != _PADDING:
            raise ValueError(f"illegal base64 data at input byte {second - 1}")
    if rest:
        raise ValueError(f"illegal base64 data at input byte {rest[0]}")
