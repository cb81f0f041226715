"""
String formats of schemas.

Other formats are ignored, including those of numbers. Dashes in a name are ignored:
`date-time` and `datetime` are the same format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import re2

from lamina.objects.durations import nanoseconds
from lamina.objects.urls import BadUrl, parse_in_request
from lamina.server.kinds.custom.addresses import is_cidr, is_ipv4, is_ipv6, is_mac, is_mail
from lamina.server.kinds.custom.go_values import INT64_MAX

Check = Callable[[str], bool]

_NAME: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_AMOUNT: Final = re.compile("([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)")
_UNITS: Final = (
    (("ns",), "nano"), (("us", "µs"), "micro"), (("ms",), "milli"), (("s",), "sec"), (("m",), "min"),
    (("h", "hr"), "hour"), (("d",), "day"), (("w", "wk"), "week"),
)  # fmt: skip
_CARD: Final = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOR_PART: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _matches(pattern: str) -> Check:
    found = re2.compile(pattern).fullmatch
    return lambda text: found(text) is not None


def is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1]:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return leap or (month, day) != (2, 29)


def is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not is_date(parts[0]):
        return False
    found = _TIME.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def is_duration(text: str) -> bool:
    """Return whether a text is a Go duration, or contains one in words: `2 days`."""
    with suppress(ValueError):
        nanoseconds(text)
        return True
    known = False
    for amount, unit in _AMOUNT.findall(text):
        if int(amount) > INT64_MAX:
            return False
        unit = unit.lower()
        known = known or any(unit in short or unit.startswith(long) for short, long in _UNITS)
    return known


def is_hostname(text: str) -> bool:
    """Return whether a text is a host name: one label, or several of which the last is alphabetic."""
    labels = text.split(".")
    if len(text.encode("utf-8", "surrogatepass")) > 255:
        return False
    if any(len(label.encode("utf-8", "surrogatepass")) > 63 for label in labels):
        return False
    if len(labels) == 1:
        # The only dash of a single label is its second character; kube-apiserver requires that.
        return _is_label(text[:1] + text[2:] if text[1:2] == "-" else text, dashes=False)
    last = labels.pop()
    if len(last) < 2 or not all(_letter(char) for char in last):
        return False
    return all(_is_label(label, dashes=True) for label in labels)


def _letter(char: str) -> bool:
    return unicodedata.category(char).startswith("L")


def _is_label(label: str, *, dashes: bool) -> bool:
    def visible(char: str) -> bool:
        return (char.isascii() and char.isalnum()) or unicodedata.category(char)[0] in "LS"

    if not label or not visible(label[0]) or not visible(label[-1]):
        return False
    return all(visible(char) or (dashes and char == "-") for char in label)


def is_uri(text: str) -> bool:
    try:
        parse_in_request(text)
    except BadUrl:
        return False
    return True


def is_isbn10(text: str) -> bool:
    digits = re.sub("[ \t\n\f\r-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    return sum(at * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits, 1)) % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = re.sub("[ \t\n\f\r-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    total = sum((1, 3)[at % 2] * int(digit) for at, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    total = 0
    for at, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + at % 2)
        total += value % 10 + 1 if value >= 10 else value
    return total % 10 == 0


def _uuid(version: str) -> Check:
    variant = "[89ab][0-9a-f]{3}" if version in "45" and version else "[0-9a-f]{4}"
    third = f"{version}[0-9a-f]{{3}}" if version else "[0-9a-f]{4}"
    return _matches(f"(?i)[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{variant}-?[0-9a-f]{{12}}")


_short_name: Final = _matches(_NAME)
_long_name: Final = _matches(rf"{_NAME}(\.{_NAME})*")
_social_security: Final = _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}")

FORMATS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": is_mail,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": lambda text: len(text) == 11 and _social_security(text),
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _long_name(text),
}


def format_check(name: str) -> Check | None:
    """Return the check of a format, None for an ignored one."""
    return FORMATS.get(name.replace("-", ""))
