"""
Validation of names, label keys and values, ports and addresses.

Every function returns the errors of a value, none when it is valid, with the
texts of apimachinery's validation. Lengths are counted in bytes, as there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

NameRule = Callable[[str], tuple[str, ...]]
"""Returns the errors of a name; empty when it is valid."""

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{SUBDOMAIN}"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_UNDERSCORED = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"

_label = re.compile(LABEL).fullmatch
_subdomain = re.compile(SUBDOMAIN).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_wildcard = re.compile(_WILDCARD).fullmatch
_key = re.compile(_KEY).fullmatch
_value = re.compile(_VALUE).fullmatch
_config_key = re.compile(_CONFIG_KEY).fullmatch
_percent = re.compile(_PERCENT).fullmatch
_header = re.compile(_HEADER).fullmatch
_underscored = re.compile(_UNDERSCORED_SUBDOMAIN).fullmatch

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def max_length_error(limit: int) -> str:
    """Return the error of a name of more than `limit` characters."""
    return f"must be no more than {limit} characters"


def inclusive_range_error(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """Return the error of a text that does not match a pattern, with examples."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({'e.g. ' if examples else ''}{shown}regex used for validation is '{pattern}')"


def _longer(text: str, limit: int) -> bool:
    # Only a text that is long in characters or has others than ASCII needs counting in bytes.
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > limit)


@lru_cache(maxsize=4096)
def subdomain(name: str) -> tuple[str, ...]:
    """A DNS-1123 subdomain: the names of most objects."""
    errors = []
    if _longer(name, 253):
        errors.append(max_length_error(253))
    if not _subdomain(name):
        errors.append(regex_error(_SUBDOMAIN_RULE, SUBDOMAIN, "example.com"))
    return tuple(errors)


def subdomain_with_underscore(name: str) -> tuple[str, ...]:
    """A DNS-1123 subdomain that may have underscores: DNS search domains."""
    errors = []
    if _longer(name, 253):
        errors.append(max_length_error(253))
    if not _underscored(name):
        rule = _SUBDOMAIN_RULE.replace("characters, '-'", "characters, '_', '-'")
        errors.append(regex_error(rule, _UNDERSCORED_SUBDOMAIN, "example.com"))
    return tuple(errors)


@lru_cache(maxsize=4096)
def label(name: str) -> tuple[str, ...]:
    """A DNS-1123 label: namespaces, containers, volumes."""
    errors = []
    if _longer(name, 63):
        errors.append(max_length_error(63))
    if not _label(name):
        if _subdomain(name):
            errors.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            errors.append(regex_error(rule, LABEL, "my-name", "123-abc"))
    return tuple(errors)


def label_1035(name: str) -> tuple[str, ...]:
    """A DNS-1035 label, which starts with a letter: services."""
    errors = []
    if _longer(name, 63):
        errors.append(max_length_error(63))
    if not _label_1035(name):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(regex_error(rule, _LABEL_1035, "my-name", "abc-123"))
    return tuple(errors)


def wildcard_subdomain(name: str) -> tuple[str, ...]:
    """A subdomain behind `*.`: hosts of an Ingress."""
    errors = []
    if _longer(name, 253):
        errors.append(max_length_error(253))
    if not _wildcard(name):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
            "which must consist of lower case alphanumeric characters, '-' or '.' "
            "and end with an alphanumeric character"
        )
        errors.append(regex_error(rule, _WILDCARD, "*.example.com"))
    return tuple(errors)


def path_segment(name: str) -> tuple[str, ...]:
    """A segment of a URL path: names of RBAC objects and a few others."""
    if name in {".", ".."}:
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in "/%" if part in name)


@lru_cache(maxsize=8192)
def qualified(name: str) -> tuple[str, ...]:
    """A qualified name, as label keys are: a name with an optional DNS subdomain as its prefix."""
    parts = name.split("/")
    if len(parts) > 2:
        rule = regex_error(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {rule} {prefix}",)
    errors: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            errors.append("prefix part must be non-empty")
        else:
            errors += (f"prefix part {error}" for error in _in_bytes(subdomain(parts[0])))
    last = parts[-1]
    if not last:
        errors.append("name part must be non-empty")
    elif _longer(last, 63):
        errors.append("name part must be no more than 63 bytes")
    if not _key(last):
        errors.append(f"name part {regex_error(_KEY_RULE, _KEY, 'MyName', 'my.name', '123-abc')}")
    return tuple(errors)


@lru_cache(maxsize=8192)
def label_value(value: str) -> tuple[str, ...]:
    """A label's value, which may be empty."""
    errors = []
    if _longer(value, 63):
        errors.append("must be no more than 63 bytes")
    if not _value(value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_error(rule, _VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


def config_key(key: str) -> tuple[str, ...]:
    """A key of a ConfigMap or Secret, which must be a valid file name."""
    errors = []
    if _longer(key, 253):
        errors.append(max_length_error(253))
    if not _config_key(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_error(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if key in {".", ".."}:
        errors.append(f"must not be '{key}'")
    elif key.startswith(".."):
        errors.append("must not start with '..'")
    return tuple(errors)


def environment_name(name: str) -> tuple[str, ...]:
    """The name of an environment variable, by the relaxed rules since Kubernetes 1.34."""
    errors = []
    if not name:
        errors.append("environment variable name must be non-empty")
    if not all(" " <= character <= "~" and character != "=" for character in name):
        errors.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return tuple(errors)


def port_number(port: int) -> tuple[str, ...]:
    return () if 1 <= port <= 65535 else (inclusive_range_error(1, 65535),)


@lru_cache(maxsize=1024)
def port_name(name: str) -> tuple[str, ...]:
    """An IANA service name: at most 15 of a-z, 0-9 and single hyphens, with a letter among them."""
    errors = []
    if _longer(name, 15):
        errors.append(max_length_error(15))
    if not re.fullmatch("[-a-z0-9]+", name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def percent(text: str) -> tuple[str, ...]:
    if _percent(text):
        return ()
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return (regex_error(rule, _PERCENT, "1%", "93%"),)


def header(name: str) -> tuple[str, ...]:
    if _header(name):
        return ()
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return (regex_error(rule, _HEADER, "X-Header-Name"),)


def in_prefix(rule: NameRule, prefix: str) -> tuple[str, ...]:
    """
    Return a rule's errors for a generateName.

    A trailing hyphen is allowed, since the suffix follows it: the rule is
    given a letter in its place.
    """
    if rule is path_segment:
        return tuple(f"may not contain '{part}'" for part in "/%" if part in prefix)
    if len(prefix) > 1 and prefix.endswith("-"):
        prefix = prefix[:-2] + "a"
    return rule(prefix)


def _in_bytes(errors: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        "must be no more than 253 bytes" if error == max_length_error(253) else error for error in errors
    )
