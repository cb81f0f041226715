"""Kubernetes' semver library: `semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.numbers import UINT_MAX
from lamina.cel.values import CelObject, TypeValue

_DIGITS: Final = re.compile("[0-9]+")
_WORD: Final = re.compile("[0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Semver(CelObject):
    """A version. Build metadata is ignored in comparisons."""

    cel_type: ClassVar[TypeValue] = TypeValue("kubernetes.Semver")

    major: int
    minor: int
    patch: int
    before: tuple[int | str, ...] = ()
    build: str = field(default="", compare=False)


def parse(text: str, normalize: bool = False) -> Semver:
    """Return the version of a text; `normalize` accepts a `v` prefix, leading zeros and missing parts."""
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch, hyphen, before = rest.partition("-")
    found = _number(patch, "Patch")
    labels = tuple(_label(part) for part in before.split(".")) if hyphen else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _WORD.fullmatch(part):
            raise EvaluationError(f'Invalid character(s) found in build meta data "{part}"')
    return Semver(major, minor, found, labels, build)


def _number(text: str, which: str) -> int:
    if not _DIGITS.fullmatch(text):
        if not text and which != "Patch":
            raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
        if not text:
            raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
        raise EvaluationError(f'Invalid character(s) found in {which.lower()} number "{text}"')
    if len(text) > 1 and text.startswith("0"):
        raise EvaluationError(f'{which} number must not contain leading zeroes "{text}"')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise EvaluationError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _label(text: str) -> int | str:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text.startswith("0"):
            raise EvaluationError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        if len(text) > 20 or int(text) > UINT_MAX:
            raise EvaluationError(f'strconv.ParseUint: parsing "{text}": value out of range')
        return int(text)
    if not _WORD.fullmatch(text):
        raise EvaluationError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[place] = (
                stripped if stripped[:1] in set("0123456789") - {""} and stripped else f"0{stripped}"
            )
    if len(parts) < 3:
        if set(parts[-1]) & set("+-"):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse(text, normalize)
    except EvaluationError:
        return False
    return True


def compare(one: Semver, two: Semver) -> int:
    """Return -1, 0 or 1; a version comes after its prereleases."""
    left, right = (one.major, one.minor, one.patch), (two.major, two.minor, two.patch)
    if left != right:
        return 1 if left > right else -1
    if not one.before or not two.before:
        return bool(two.before) - bool(one.before)
    for mine, theirs in zip(one.before, two.before, strict=False):
        if mine != theirs:
            # Numeric identifiers come before others.
            return 1 if (isinstance(mine, str), mine) > (isinstance(theirs, str), theirs) else -1
    return (len(one.before) > len(two.before)) - (len(one.before) < len(two.before))


_V: Final = "kubernetes.Semver"

SEMVER: Final = Library(
    name="kubernetes.semver",
    functions=to_functions(
        [
            function("semver", "string_to_semver", f"string -> {_V}", parse),
            function("semver", "string_bool_to_semver", f"string, bool -> {_V}", parse),
            function("isSemver", "is_semver_string", "string -> bool", is_semver),
            function("isSemver", "is_semver_string_bool", "string, bool -> bool", is_semver),
            method(
                "isGreaterThan",
                "semver_is_greater_than",
                f"{_V}, {_V} -> bool",
                lambda a, b: compare(a, b) > 0,
            ),
            method(
                "isLessThan", "semver_is_less_than", f"{_V}, {_V} -> bool", lambda a, b: compare(a, b) < 0
            ),
            method("compareTo", "semver_compare_to", f"{_V}, {_V} -> int", compare),
            method("major", "semver_major", f"{_V} -> int", lambda version: version.major),
            method("minor", "semver_minor", f"{_V} -> int", lambda version: version.minor),
            method("patch", "semver_patch", f"{_V} -> int", lambda version: version.patch),
        ]
    ),
)
