"""
The fast validation of custom objects.

A schema is translated to a JSON Schema for a compiled validator. What that accepts,
kube-apiserver accepts too; what it refuses is validated again by the exact `Validator`.
So a construct with a slightly different meaning is translated to a stricter one, and
not translated inside `not` and `oneOf`, where stricter would be more lenient.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs

from lamina.objects.go_regexp import InvalidRegexp, tester
from lamina.server.kinds.custom.document import Document
from lamina.server.kinds.custom.formats import format_check
from lamina.server.kinds.custom.go_values import int64

Check = Callable[[Any], bool]

_EDGE: Final = 2**53 - 1
_COMMON: Final = re.compile(r"(?:[A-Za-z0-9_.:@/ ^$|,-]|\[\^?(?:[A-Za-z0-9_.:@/ -]|\\[.-])+\]|\((?:\?:)?|\)|[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\}|\\[./$^()*+?\[\]{}|-])*")  # fmt: skip
_OPTIONS: Final = jsonschema_rs.RegexOptions()


class _Untranslatable(Exception):
    """A construct without a sound translation; the schema is validated exactly."""


def compile_check(document: Document) -> Check | None:
    """Return a check that is true only for valid values; None if the schema cannot be translated."""
    translation = _Translation()
    try:
        schema = translation.node(document, exact=False)
    except _Untranslatable:
        return None
    return compiled(schema, translation.formats)


def compiled(schema: dict[str, Any], formats: dict[str, Callable[[str], bool]] | None = None) -> Check:
    """Return the check of a JSON Schema; values that are no JSON fail it."""
    validator = jsonschema_rs.Draft7Validator(
        schema, formats=formats or None, validate_formats=bool(formats), pattern_options=_OPTIONS
    )
    is_valid: Check = validator.is_valid

    def check(value: Any) -> bool:
        try:
            return is_valid(value)
        except ValueError:
            return False

    return check


class _Translation:
    """Translates one schema, and collects the string checks that the compiled validator calls back."""

    def __init__(self) -> None:
        self.formats: dict[str, Callable[[str], bool]] = {}

    def node(self, document: Document, *, exact: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        self._type(document, made, exact)
        self._numbers(document, made, exact)
        self._strings(document, made)
        self._enum(document, made, exact)
        for limit in ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"):
            if limit in document:
                if document[limit] < 0 and limit.startswith("max"):
                    raise _Untranslatable
                made[limit] = max(document[limit], 0)
        if "required" in document:
            made["required"] = list(dict.fromkeys(document["required"]))
        items, values = document.get("items"), document.get("additionalProperties")
        if isinstance(items, dict):
            made["items"] = self.node(items, exact=exact)
        if values is not None and values is not True:
            made["additionalProperties"] = values and self.node(values, exact=exact)
        if "properties" in document:
            made["properties"] = {
                name: self.node(part, exact=exact) for name, part in document["properties"].items()
            }
        if junctors := self._junctors(document, exact):
            # Junctors are not applied to null.
            made["allOf"] = [{"anyOf": [{"type": "null"}, junctors]}]
        return made

    def _type(self, document: Document, made: dict[str, Any], exact: bool) -> None:
        kind = document.get("type")
        types = [kind] if kind else []
        if document.get("x-kubernetes-int-or-string"):
            types = ["integer", "string"]
        if types:
            if exact:
                raise _Untranslatable
            made["type"] = [*types, "null"] if document.get("nullable") else types
        elif "format" in document and format_check(document["format"]) is not None:
            # A format without a type applies to strings, and ignores lists.
            made["type"] = ["string", "array", "null"]

    def _numbers(self, document: Document, made: dict[str, Any], exact: bool) -> None:
        if "multipleOf" in document:
            raise _Untranslatable
        # Beyond this limit a float without fraction is no integer.
        is_integer = "integer" in made.get("type", ())
        for keyword, narrower, edge in (("minimum", max, -_EDGE), ("maximum", min, _EDGE)):
            limit = document.get(keyword)
            if limit is None:
                if is_integer:
                    made[keyword] = edge
                continue
            if exact and (limit != int64(limit) or abs(limit) > _EDGE):
                raise _Untranslatable
            # For integers kube-apiserver truncates the limit; for other numbers it does not.
            limit = narrower(limit, int64(limit), edge if is_integer else limit)
            exclusive = f"exclusive{keyword.capitalize()}"
            made[exclusive if document.get(exclusive) else keyword] = limit

    def _strings(self, document: Document, made: dict[str, Any]) -> None:
        checks = []
        if (check := format_check(document.get("format", ""))) is not None:
            checks.append(check)
        if pattern := document.get("pattern"):
            if _COMMON.fullmatch(pattern) and _compiles(pattern):
                made["pattern"] = pattern
            else:
                try:
                    checks.append(tester(pattern))
                except InvalidRegexp:
                    raise _Untranslatable from None
        if checks:
            name = f"check-{len(self.formats)}"
            made["format"] = name
            self.formats[name] = checks[0] if len(checks) == 1 else lambda text: all(c(text) for c in checks)

    def _enum(self, document: Document, made: dict[str, Any], exact: bool) -> None:
        if "enum" not in document:
            return
        plain = [one for one in document["enum"] if one is not None and not isinstance(one, dict | list)]
        numbers = any(isinstance(one, int | float) for one in plain)
        if exact and (len(plain) != len(document["enum"]) or numbers):
            raise _Untranslatable
        made["enum"] = plain

    def _junctors(self, document: Document, exact: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for junctor in ("allOf", "anyOf"):
            if parts := document.get(junctor):
                made[junctor] = [self._branch(part, exact) for part in parts]
        if parts := document.get("oneOf"):
            made["oneOf"] = [self.node(part, exact=True) for part in parts]
        if "not" in document:
            made["not"] = self.node(document["not"], exact=True)
        return made

    def _branch(self, part: Document, exact: bool) -> dict[str, Any]:
        if set(part) == {"type"}:
            # One part of the way to declare integer-or-string.
            return {"type": part["type"]}
        return self.node(part, exact=exact)


def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=_OPTIONS)
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True
