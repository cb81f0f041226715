"""
YAML with the rules of kubectl.

Scalars follow Go's decoder, not PyYAML's: `yes` and `on` are booleans, `010` and
`0o10` are eight, dates and `1:30` are strings. Map keys become strings, as in JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml gives the same results, but is slower.
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]


class YamlError(ValueError):
    """Text that is no YAML, or that has values which JSON cannot hold."""


class GoLoader(_Loader):
    """A loader with Go's scalar rules that records duplicate keys."""

    # Copied, so that removing rules does not change PyYAML globally.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


_TRUE = {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"}
_FALSE = {"n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"}
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|0[0-7_]*|[1-9][0-9_]*)$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$")

for _first in "yYnNoOtTfF":
    GoLoader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile("(" + "|".join(sorted(_TRUE | _FALSE)) + ")$"), [_first]
    )
for _first in "-+0123456789":
    GoLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER, [_first])
for _first in "-+0123456789.":
    GoLoader.add_implicit_resolver("tag:yaml.org,2002:float", _SPECIAL, [_first])
    GoLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, [_first])
GoLoader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
GoLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<$"), ["<"])


def _integer(loader: GoLoader, node: yaml.ScalarNode) -> int | float | str:
    text = str(loader.construct_scalar(node)).replace("_", "")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    for mark, radix in (("0b", 2), ("0x", 16), ("0o", 8)):
        if digits.startswith(mark):
            return sign * int(digits[2:], radix)
    if len(digits) > 1 and digits.startswith("0"):
        return sign * int(digits, 8)
    value = sign * int(digits)
    return value if -(2**63) <= value < 2**64 else float(value)


def _float(loader: GoLoader, node: yaml.ScalarNode) -> float | int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        raise YamlError(f"json: unsupported value: {text}")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _boolean(loader: GoLoader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)) in _TRUE


def _text(loader: GoLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


# `<<` is a merge only as a key; elsewhere it is text.
GoLoader.add_constructor("tag:yaml.org,2002:merge", _text)
GoLoader.add_constructor("tag:yaml.org,2002:int", _integer)
GoLoader.add_constructor("tag:yaml.org,2002:float", _float)
GoLoader.add_constructor("tag:yaml.org,2002:bool", _boolean)


def load_yaml(
    data: bytes | str, duplicate: Callable[[str], None] | None = None, loader: type[GoLoader] = GoLoader
) -> Any:
    """Return the JSON value of a YAML document; `duplicate` is called with the path of each duplicate key."""
    return _loaded(loader(data), duplicate)


def _loaded(loader: GoLoader, duplicate: Callable[[str], None] | None) -> Any:
    try:
        # Only the first document is decoded.
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None
        if duplicate is not None:
            _report(node, "", duplicate, set())
        return _as_json(loader.construct_document(node))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(_message(error)) from None
    finally:
        loader.dispose()


def repeated_keys(data: bytes) -> list[tuple[int, str]]:
    """Return the duplicate keys of a document's maps, with the line of each repetition."""
    loader = GoLoader(data)
    found: list[tuple[int, str]] = []
    try:
        node = loader.get_node() if loader.check_node() else None
        if node is not None:
            _report(node, "", lambda path: None, set(), found)
    except yaml.YAMLError:
        return []
    finally:
        loader.dispose()
    return found


def dump_yaml(value: Any) -> bytes:
    """Return a JSON value as YAML, with sorted keys as kubectl prints them."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, default_flow_style=False, allow_unicode=True, sort_keys=True)
    return text.encode()


def _report(
    node: yaml.Node,
    path: str,
    duplicate: Callable[[str], None],
    above: set[int],
    lines: list[tuple[int, str]] | None = None,
) -> None:
    if id(node) in above:
        return
    above = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, inner in node.value:
            name = str(key.value)
            here = f"{path}.{name}" if path else name
            if name in seen and name != "<<":
                duplicate(here)
                if lines is not None:
                    lines.append((key.start_mark.line + 1, name))
            seen.add(name)
            _report(inner, here, duplicate, above, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, inner in enumerate(node.value):
            _report(inner, f"{path}[{index}]", duplicate, above, lines)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(key): _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return value


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    return str(key)


def _message(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        # Go counts lines from one while scanning characters, and from zero while composing nodes.
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
        return f"yaml: line {line}: {error.problem}" if line else f"yaml: {error.problem}"
    return f"yaml: {error}"
