"""Reads the variables of an expression: YAML in which a number keeps the type that CEL gives it."""

from __future__ import annotations

import re
from typing import Any

import yaml

from lamina.cel.numbers import INT_MAX, UINT_MAX, UInt
from lamina.server.codec.yaml import GoLoader, YamlError, load_yaml

_UINT = "tag:yaml.org,2002:uint"


class _ExactLoader(GoLoader):
    """A loader for which `3.0` is a double, and `7u` and what is too large for an int are uints."""


def _double(loader: _ExactLoader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).replace("_", "")
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _integer(loader: _ExactLoader, node: yaml.ScalarNode) -> Any:
    value = GoLoader.yaml_constructors["tag:yaml.org,2002:int"](loader, node)
    return UInt(value) if isinstance(value, int) and value > INT_MAX else value


def _uint(loader: _ExactLoader, node: yaml.ScalarNode) -> UInt:
    text = str(loader.construct_scalar(node))
    value = int(text.removesuffix("u"))
    if value > UINT_MAX:
        raise YamlError(f"{text} is too large for a uint")
    return UInt(value)


_ExactLoader.add_constructor("tag:yaml.org,2002:float", _double)
_ExactLoader.add_constructor("tag:yaml.org,2002:int", _integer)
_ExactLoader.add_implicit_resolver(_UINT, re.compile(r"[0-9]+u$"), list("0123456789"))
_ExactLoader.add_constructor(_UINT, _uint)


def load_variables(data: bytes) -> Any:
    """Return the value of a YAML document, with the numbers of CEL."""
    return load_yaml(data, loader=_ExactLoader)
