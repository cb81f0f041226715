"""
What may be called what: names, label keys and values, ports, addresses.

Every function returns the complaints about a value, none when it is fine, in
the words Kubernetes uses for them. Lengths are counted in bytes, as there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

NameRule = Callable[[str], tuple[str, ...]]
"""The complaints about a name; empty when there are none."""

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{SUBDOMAIN}"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_ENVIRONMENT = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
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
_identifier = re.compile(_IDENTIFIER).fullmatch
_underscored = re.compile(_UNDERSCORED_SUBDOMAIN).fullmatch

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def too_long(limit: int) -> str:
    """Return the complaint about a name of more than `limit` characters."""
    return f"must be no more than {limit} characters"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def regex_complaint(rule: str, pattern: str, *examples: str) -> str:
    """Return a rule in words, with examples and the pattern it is checked by."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({'e.g. ' if examples else ''}{shown}regex used for validation is '{pattern}')"


def _longer(text: str, limit: int) -> bool:
    # Only a text that is long in characters or has others than ASCII needs counting in bytes.
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > limit)


@lru_cache(maxsize=4096)
def subdomain(name: str) -> tuple[str, ...]:
    """A DNS-1123 subdomain: what most objects are named."""
    said = []
    if _longer(name, 253):
        said.append(too_long(253))
    if not _subdomain(name):
        said.append(regex_complaint(_SUBDOMAIN_RULE, SUBDOMAIN, "example.com"))
    return tuple(said)


def subdomain_with_underscore(name: str) -> tuple[str, ...]:
    """A DNS-1123 subdomain that may hold underscores, as search domains do."""
    said = []
    if _longer(name, 253):
        said.append(too_long(253))
    if not _underscored(name):
        rule = _SUBDOMAIN_RULE.replace("characters, '-'", "characters, '_', '-'")
        said.append(regex_complaint(rule, _UNDERSCORED_SUBDOMAIN, "example.com"))
    return tuple(said)


@lru_cache(maxsize=4096)
def label(name: str) -> tuple[str, ...]:
    """A DNS-1123 label: namespaces, containers, volumes."""
    said = []
    if _longer(name, 63):
        said.append(too_long(63))
    if not _label(name):
        if _subdomain(name):
            said.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            said.append(regex_complaint(rule, LABEL, "my-name", "123-abc"))
    return tuple(said)


def label_1035(name: str) -> tuple[str, ...]:
    """A DNS-1035 label, which starts with a letter: services."""
    said = []
    if _longer(name, 63):
        said.append(too_long(63))
    if not _label_1035(name):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        said.append(regex_complaint(rule, _LABEL_1035, "my-name", "abc-123"))
    return tuple(said)


def wildcard_subdomain(name: str) -> tuple[str, ...]:
    """A subdomain behind `*.`: hosts of an Ingress."""
    said = []
    if _longer(name, 253):
        said.append(too_long(253))
    if not _wildcard(name):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
            "which must consist of lower case alphanumeric characters, '-' or '.' "
            "and end with an alphanumeric character"
        )
        said.append(regex_complaint(rule, _WILDCARD, "*.example.com"))
    return tuple(said)


def path_segment(name: str) -> tuple[str, ...]:
    """Anything that can stand between two slashes of a URL: RBAC objects and a few more."""
    if name in {".", ".."}:
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in "/%" if part in name)


@lru_cache(maxsize=8192)
def qualified(name: str) -> tuple[str, ...]:
    """A label key: a name, perhaps behind a DNS subdomain and a slash."""
    parts = name.split("/")
    if len(parts) > 2:
        rule = regex_complaint(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {rule} {prefix}",)
    said: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            said.append("prefix part must be non-empty")
        else:
            said += (f"prefix part {complaint}" for complaint in _in_bytes(subdomain(parts[0])))
    last = parts[-1]
    if not last:
        said.append("name part must be non-empty")
    elif _longer(last, 63):
        said.append("name part must be no more than 63 bytes")
    if not _key(last):
        said.append(f"name part {regex_complaint(_KEY_RULE, _KEY, 'MyName', 'my.name', '123-abc')}")
    return tuple(said)


@lru_cache(maxsize=8192)
def label_value(value: str) -> tuple[str, ...]:
    """A label's value, which may be empty."""
    said = []
    if _longer(value, 63):
        said.append("must be no more than 63 bytes")
    if not _value(value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        said.append(regex_complaint(rule, _VALUE, "MyValue", "my_value", "12345"))
    return tuple(said)


def config_key(key: str) -> tuple[str, ...]:
    """A key of a ConfigMap or Secret, which has to do as a file name."""
    said = []
    if _longer(key, 253):
        said.append(too_long(253))
    if not _config_key(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        said.append(regex_complaint(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if key in {".", ".."}:
        said.append(f"must not be '{key}'")
    elif key.startswith(".."):
        said.append("must not start with '..'")
    return tuple(said)


def environment_name(name: str) -> tuple[str, ...]:
    """The name of an environment variable, as the server has allowed them since 1.34."""
    said = []
    if not name:
        said.append("environment variable name must be non-empty")
    if not all(" " <= character <= "~" and character != "=" for character in name):
        said.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return tuple(said)


def c_identifier(name: str) -> tuple[str, ...]:
    if _identifier(name):
        return ()
    rule = (
        "a valid C identifier must start with alphabetic character or '_', "
        "followed by a string of alphanumeric characters or '_'"
    )
    return (regex_complaint(rule, _IDENTIFIER, "my_name", "MY_NAME", "MyName"),)


def port_number(port: int) -> tuple[str, ...]:
    return () if 1 <= port <= 65535 else (between(1, 65535),)


@lru_cache(maxsize=1024)
def port_name(name: str) -> tuple[str, ...]:
    """An IANA service name: at most 15 of a-z, 0-9 and single hyphens, with a letter among them."""
    said = []
    if _longer(name, 15):
        said.append(too_long(15))
    if not re.fullmatch("[-a-z0-9]+", name):
        said.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        said.append("must contain at least one letter (a-z)")
    if "--" in name:
        said.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        said.append("must not begin or end with a hyphen")
    return tuple(said)


def percent(text: str) -> tuple[str, ...]:
    if _percent(text):
        return ()
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return (regex_complaint(rule, _PERCENT, "1%", "93%"),)


def header(name: str) -> tuple[str, ...]:
    if _header(name):
        return ()
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return (regex_complaint(rule, _HEADER, "X-Header-Name"),)


def in_prefix(rule: NameRule, prefix: str) -> tuple[str, ...]:
    """
    Return what a rule says about a generateName.

    A trailing hyphen is fine there, since something follows it: the rule sees
    a letter in its place.
    """
    if rule is path_segment:
        return tuple(f"may not contain '{part}'" for part in "/%" if part in prefix)
    if len(prefix) > 1 and prefix.endswith("-"):
        prefix = prefix[:-2] + "a"
    return rule(prefix)


def _in_bytes(complaints: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("must be no more than 253 bytes" if said == too_long(253) else said for said in complaints)
