"""Kubernetes' regex library, `find` and `findAll`, and the regex extension, `regex.*`."""

from __future__ import annotations

from typing import Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library import patterns
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.values import NONE, Optional


def find(text: str, pattern: str) -> str:
    _check(pattern)
    return patterns.find(text, pattern)


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    _check(pattern)
    return patterns.find_all(text, pattern, limit)


def _check(pattern: str) -> None:
    try:
        patterns.compiled(pattern)
    except EvaluationError as refused:
        raise EvaluationError(f"Illegal regex: {refused.message}") from None


def extract(text: str, pattern: str) -> Optional:
    found = patterns.extract(text, pattern)
    return NONE if found is None else Optional(True, found)


KUBERNETES_REGEX: Final = Library(
    name="kubernetes.regex",
    functions=to_functions(
        [
            method("find", "string_find_string", "string, string -> string", find),
            method("findAll", "string_find_all_string", "string, string -> list(string)", find_all),
            method("findAll", "string_find_all_string_int", "string, string, int -> list(string)", find_all),
        ]
    ),
)

REGEX: Final = Library(
    name="regex",
    functions=to_functions(
        [
            function(
                "regex.extract", "regex_extract_string_string", "string, string -> optional(string)", extract
            ),
            function(
                "regex.extractAll",
                "regex_extractAll_string_string",
                "string, string -> list(string)",
                patterns.extract_all,
            ),
            function(
                "regex.replace",
                "regex_replace_string_string_string",
                "string, string, string -> string",
                patterns.replace,
            ),
            function(
                "regex.replace",
                "regex_replace_string_string_string_int",
                "string, string, string, int -> string",
                patterns.replace,
            ),
        ]
    ),
)
