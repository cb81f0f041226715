"""Kubernetes' named formats: `format.dns1123Label().validate(name)` is none, or the errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar, Final

from lamina.cel.declarations import Library
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.library.urls import uri_error
from lamina.cel.values import NONE, CelObject, Optional, TypeValue
from lamina.objects import names

_UUID: Final = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_BYTE: Final = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE: Final = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedFormat(CelObject):
    """A named format, compared by name. `pattern_size` is the pattern length for the cost."""

    cel_type: ClassVar[TypeValue] = TypeValue("kubernetes.NamedFormat")

    name: str
    pattern_size: int = field(compare=False)
    errors: Callable[[str], tuple[str, ...]] = field(compare=False)


def _in_prefix(rule: names.NameRule) -> names.NameRule:
    return lambda text: names.in_prefix(rule, text)


def _unless(test: Callable[[str], bool], error: str) -> names.NameRule:
    return lambda text: () if test(text) else (error,)


def is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) for part in found.groups())
    try:
        date(year or 400, month, day)
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    found = _TIME.fullmatch(time)
    return (
        is_date(day)
        and found is not None
        and int(found[1]) < 24
        and int(found[2]) < 60
        and int(found[3]) < 60
    )


def _uri(text: str) -> tuple[str, ...]:
    problem = uri_error(text)
    return () if problem is None else (problem,)


_ALL: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", 30, names.label),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", 60, names.subdomain),
    "dns1035Label": NamedFormat("DNS1035Label", 30, names.label_1035),
    "qualifiedName": NamedFormat("QualifiedName", 60, names.qualified),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", 30, _in_prefix(names.label)),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", 60, _in_prefix(names.subdomain)),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", 30, _in_prefix(names.label_1035)),
    "labelValue": NamedFormat("LabelValue", 40, names.label_value),
    "uri": NamedFormat("URI", 1103, _uri),
    "uuid": NamedFormat(
        "uuid", 70, _unless(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format")
    ),
    "byte": NamedFormat("byte", 84, _unless(lambda text: bool(_BYTE.fullmatch(text)), "invalid base64")),
    "date": NamedFormat("date", 71, _unless(is_date, "invalid date")),
    "datetime": NamedFormat("datetime", 71, _unless(is_date_time, "invalid datetime")),
}


def named(name: str) -> Optional:
    return Optional(True, _ALL[name]) if name in _ALL else NONE


def validate(rule: NamedFormat, text: str) -> Optional:
    errors = rule.errors(text)
    return Optional(True, list(errors)) if errors else NONE


_F: Final = "kubernetes.NamedFormat"


def _constant(rule: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: rule


FORMATS: Final = Library(
    name="format",
    functions=to_functions(
        [
            *(
                function(f"format.{name}", f"format.{name}", f"-> {_F}", _constant(rule))
                for name, rule in _ALL.items()
            ),
            function("format.named", "format-named", f"string -> optional({_F})", named),
            method("validate", "format-validate", f"{_F}, string -> optional(list(string))", validate),
        ]
    ),
)
