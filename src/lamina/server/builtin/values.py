"""
Scalars with a form of their own: quantities, times, bytes.

Each function takes what a writer sent and returns what the API shows, or raises
ValueError with the sentence Go's decoder has for it. Quantities keep the text
they came in where that already is canonical by Kubernetes' own, slightly odd,
measure: `1.500` stays, `0.5` becomes `500m`.
"""

from __future__ import annotations

import binascii
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

_FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
_SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_QUANTITY: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?(([eEinumkKMGTP]*)[-+]?[0-9]*)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)")
_LARGEST: Final = 2**63 - 1
_DIGITS: Final = 18
"""How many decimal digits surely fit into 64 bits; what has more is reckoned exactly, and rounded to nano."""


class Quantity(NamedTuple):
    """An amount, `unscaled` times ten to the `scale`; `form` is how it is written, `text` what may stay."""

    unscaled: int
    scale: int
    form: str
    text: str = ""

    @property
    def amount(self) -> Fraction:
        return self.unscaled * Fraction(10) ** self.scale

    def __str__(self) -> str:
        return self.text or _written(self)


@lru_cache(maxsize=4096)
def quantity(text: str) -> Quantity:
    """Return the amount a text stands for."""
    if text == "0":
        return Quantity(0, 0, "DecimalSI", text)
    match = _QUANTITY.fullmatch(text)
    if not text or match is None:
        raise ValueError(_FORMAT_WRONG)
    sign, whole, part, suffix, _ = match.groups()
    if match.end(2) == len(text) and not whole:
        return Quantity(0, 0, "DecimalSI")
    base, exponent, form = _suffix(suffix)
    whole, part = whole or "0", part or ""
    shifted = whole + part
    if base == 10:
        room = _DIGITS - len(shifted)
        fits = room >= 0 and exponent - len(part) >= -9
    else:
        fits = not part and 15 - len(whole) - int(exponent * 3 / 10) - 1 >= 0
    number = -int(shifted) if sign == "-" else int(shifted)
    if not fits:
        return _exact(number * (2**exponent if base == 2 else 1), exponent if base == 10 else 0, part, form)
    if base == 2:
        kept = exponent % 10 == 0 and int(whole) & 7 != 0
        return Quantity(number << exponent, 0, form, text if kept else "")
    scale = exponent - len(part)
    kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
    return Quantity(number, scale, form, text if kept else "")


def canonical_quantity(value: object) -> str:
    """Return the text of a quantity as the API writes it; numbers are quantities too."""
    if type(value) is str:
        return _canonical(value)
    if type(value) is int or type(value) is float:
        return _canonical(repr(value).replace("e+", "e"))
    raise ValueError(_FORMAT_WRONG)


@lru_cache(maxsize=4096)
def milli_quantity(text: str) -> str:
    """Return the text of a quantity rounded up to thousandths, as amounts of resources are."""
    found = quantity(text.strip())
    if found.scale >= -3:
        return str(found)
    return str(Quantity(_rounded_up(found.unscaled, -3 - found.scale), -3, found.form))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    return str(quantity(text.strip()))


def _suffix(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    if exponent := _EXPONENT.fullmatch(suffix):
        return 10, int(exponent[1]), "DecimalExponent"
    raise ValueError(_SUFFIX_WRONG)


def _exact(number: int, exponent: int, part: str, form: str) -> Quantity:
    scale = exponent - len(part)
    if number and scale < -9:
        # Whoever asks for something gets something: never rounded to nothing.
        number, scale = _rounded_up(number, -9 - scale), -9
    if form == "BinarySI":
        amount = number * Fraction(10) ** scale
        if abs(amount) > _LARGEST:
            number, scale = (_LARGEST if number > 0 else -_LARGEST), 0
        elif 0 < abs(amount) < 1:
            form = "DecimalSI"
    return Quantity(number, scale, form)


def _rounded_up(number: int, places: int) -> int:
    """Return a number without its last places, away from zero."""
    divisor: int = 10**places
    kept = -(-abs(number) // divisor)
    return -kept if number < 0 else kept


def _written(found: Quantity) -> str:
    number, scale, form, _ = found
    if not number:
        return "0"
    if form == "BinarySI":
        amount = found.amount
        if -1024 < amount < 1024 or amount.denominator != 1:
            form = "DecimalSI"
        else:
            whole, times = amount.numerator, 0
            while whole % 1024 == 0:
                whole, times = whole // 1024, times + 10
            return f"{whole}{_BINARY_SUFFIX.get(times, '')}"
    while number % 10 == 0:
        number, scale = number // 10, scale + 1
    number, scale = number * 10 ** (scale % 3), scale - scale % 3
    if form == "DecimalSI":
        return f"{number}{_DECIMAL_SUFFIX.get(scale, '')}"
    return f"{number}e{scale}" if scale else str(number)


_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS: Final = (
    ("2006", r"([0-9]{4})", "", 0, 9999), ("-", "-", "", 0, 0), ("01", r"([0-9]{2})", "month", 1, 12),
    ("-", "-", "", 0, 0), ("02", r"([0-9]{2})", "", 0, 99), ("T", "T", "", 0, 0),
    ("15", r"([0-9]{1,2})", "hour", 0, 23), (":", ":", "", 0, 0), ("04", r"([0-9]{2})", "minute", 0, 59),
    (":", ":", "", 0, 0), ("05", r"([0-9]{2})", "second", 0, 59),
)  # fmt: skip
"""What Go looks for in a time, in this order: layout, pattern, and what has to be within bounds."""
_ZONE: Final = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})")
_USUAL: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1024)
def canonical_time(text: str) -> str | None:
    """Return a time in UTC, cut to seconds; None for the zero of times, which counts as absent."""
    if len(text) == 20 and _settled(text):
        return text
    when = _moment(text, _SECONDS)
    return None if when == _NEVER else when.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


@lru_cache(maxsize=1024)
def canonical_micro_time(text: str) -> str | None:
    """Return a time in UTC with its six digits of a second; fewer or more are refused."""
    if len(text) == 27 and _settled(text):
        return text
    when = _moment(text, _MICROSECONDS)
    return None if when == _NEVER else when.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _settled(text: str) -> bool:
    """Return whether a text is a time as we would write it ourselves, as most are."""
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
        met = re.match(pattern, rest)
        if met is None:
            raise _misread(text, layout, rest, name)
        rest = rest[met.end() :]
        if met.lastindex:
            numbers.append(int(met[1]))
            if bounded and not least <= numbers[-1] <= most:
                raise ValueError(f'parsing time "{text}": {bounded} out of range')
    part = re.match(r"[.,]([0-9]+)" if layout is _SECONDS else r"[.,]([0-9]{6})", rest)
    if part is None and layout is _MICROSECONDS:
        raise _misread(text, layout, rest, ".000000")
    if part is not None:
        rest = rest[part.end() :]
        numbers.append(int(part[1][:6].ljust(6, "0")))
    zone = _ZONE.match(rest)
    if zone is None:
        raise _misread(text, layout, rest, "Z07:00")
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


def _misread(text: str, layout: str, rest: str, element: str) -> ValueError:
    return ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}"')


_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDING: Final = ord("=")


def canonical_bytes(text: str) -> str:
    """Return base64 text as Go writes it again after reading it."""
    try:
        plain = len(text) % 4 == 0 and text.isascii()
        data = binascii.a2b_base64(text, strict_mode=True) if plain else _leniently(text)
    except binascii.Error:
        data = _leniently(text)
    written = binascii.b2a_base64(data, newline=False)
    return text if len(written) == len(text) and written == text.encode() else written.decode()


def _leniently(text: str) -> bytes:
    """Read base64 with line breaks in it, or say at which byte it stops being base64."""
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
    """Check what follows the first padding character, at `position`."""
    rest = [at for at in range(position + 1, len(data)) if data[at] not in b"\r\n"]
    if missing == 2:
        if not rest:
            raise ValueError(f"illegal base64 data at input byte {len(data)}")
        second = rest.pop(0)
        if data[second] != _PADDING:
            raise ValueError(f"illegal base64 data at input byte {second - 1}")
    if rest:
        raise ValueError(f"illegal base64 data at input byte {rest[0]}")
