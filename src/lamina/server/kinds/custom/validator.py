"""
The exact validation of a value by its schema.

It runs if the fast validation has found an error. Which checks run on which type, in which
order, and which of them suppress others, is as in kube-apiserver, because its messages
depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects.go_regexp import InvalidRegexp, tester
from lamina.server.kinds.custom.document import Document
from lamina.server.kinds.custom.formats import format_check
from lamina.server.kinds.custom.go_values import int64, is_integer, is_whole, plain, same, type_of
from lamina.server.kinds.custom.ratchet import Link
from lamina.server.kinds.custom.schema_errors import (
    ValidationOutcome,
    as_causes,
    bound,
    composite,
    missing,
    not_in_enum,
    other_problem,
    too_long,
    too_many,
    wrong_type,
)

_INNER_FORMATS = {"integer": "int64", "number": "float64"}


class Validator:
    """
    Validates values by one node of a schema.

    `as_default` is how the defaults of a CRD are validated: every format counts as a
    type, and int-or-string accepts anything.
    """

    __slots__ = (
        "_additional", "_all_of", "_any_of", "_as_default", "_check", "_document", "_format", "_items", "_not",
        "_one_of", "_properties", "_types",
    )  # fmt: skip

    def __init__(self, document: Document, *, as_default: bool = False) -> None:
        self._document = document
        self._as_default = as_default
        self._types: tuple[str, ...] = (document["type"],) if document.get("type") else ()
        if document.get("x-kubernetes-int-or-string") and not as_default:
            self._types = ("integer", "string")
        name = document.get("format", "")
        self._check = format_check(name)
        self._format = name if as_default or self._check else ""
        self._all_of = self._several("allOf")
        self._one_of = self._several("oneOf")
        self._any_of = self._several("anyOf")
        self._not = self._single(document.get("not"))
        self._properties = {
            name: Validator(part, as_default=as_default)
            for name, part in document.get("properties", {}).items()
        }
        self._additional = self._single(document.get("additionalProperties"))
        self._items = self._single(document.get("items"))

    def _several(self, junctor: str) -> list[Validator]:
        parts: Sequence[Document] = self._document.get(junctor, ())
        return [Validator(part, as_default=self._as_default) for part in parts]

    def _single(self, part: Any) -> Validator | None:
        return Validator(part, as_default=self._as_default) if isinstance(part, dict) else None

    def causes(self, value: Any, base: str = "", link: Link | None = None) -> list[Cause]:
        """Return the errors of a value; with a link, only those of changed values."""
        return as_causes(self.validate(value, "", link).problems, base)

    def validate(self, value: Any, path: str, link: Link | None = None) -> ValidationOutcome:
        """Validate a value with everything inside it."""
        outcome = ValidationOutcome()
        if value is None:
            # For null only type and enum are checked.
            self._validate_type(value, path, outcome)
            self._validate_enum(value, path, outcome)
        else:
            self._validate_value(value, path, link, outcome)
        if outcome.problems and link is not None and link.equal:
            passed = ValidationOutcome()
            passed.matches = outcome.matches
            return passed
        return outcome

    def _validate_value(self, value: Any, path: str, link: Link | None, outcome: ValidationOutcome) -> None:
        if self._types or self._format:
            self._validate_type(value, path, outcome)
            outcome.matches += 1
        self._validate_junctors(value, path, outcome)
        outcome.matches += 1
        if isinstance(value, str):
            self._validate_string(value, path, outcome)
            outcome.matches += 1
            if self._check is not None:
                if not self._check(value):
                    outcome.add(wrong_type(path, self._document["format"], value))
                outcome.matches += 1
        elif isinstance(value, list):
            self._validate_items(value, path, link, outcome)
            outcome.matches += 1
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._validate_number(value, path, outcome)
            outcome.matches += 2
        self._validate_enum(value, path, outcome)
        outcome.matches += 1
        if isinstance(value, dict):
            self._validate_fields(value, path, link, outcome)
            outcome.matches += 1
        outcome.matches += 1

    def _validate_type(self, value: Any, path: str, outcome: ValidationOutcome) -> None:
        types, found = self._types, type_of(value)
        if value is None:
            if types and not self._document.get("nullable"):
                outcome.add(wrong_type(path, ",".join(types), found))
            else:
                outcome.matches += 1
            return
        fits = (
            found in types
            or (found == "integer" and "number" in types)
            or (found == "number" and "integer" in types and is_whole(value))
        )
        is_text = isinstance(value, str | list)
        if self._format and not is_text and not fits and _INNER_FORMATS.get(found, "") != self._format:
            outcome.add(wrong_type(path, self._format, _INNER_FORMATS.get(found, "")))
        elif self._format and is_text and "number" not in types and "integer" not in types:
            # A format implies the type of strings and, by an old bug, of lists.
            outcome.matches += 1
        elif not fits:
            outcome.add(wrong_type(path, ",".join(types), found))
        else:
            outcome.matches += 1

    def _validate_junctors(self, value: Any, path: str, outcome: ValidationOutcome) -> None:
        if self._any_of:
            self._validate_any_of(value, path, outcome)
        if self._one_of:
            self._validate_one_of(value, path, outcome)
        if self._all_of:
            valid = 0
            for branch in self._all_of:
                seen = branch.validate(value, path)
                valid += not seen.problems
                outcome.extend(seen)
            if valid != len(self._all_of):
                none = "" if valid else ". None validated"
                outcome.add(composite(f'"{path}" must validate all the schemas (allOf){none}'))
        if self._not is not None and not self._not.validate(value, path).problems:
            outcome.add(composite(f'"{path}" must not validate the schema (not)'))
        outcome.matches += 1

    def _validate_any_of(self, value: Any, path: str, outcome: ValidationOutcome) -> None:
        best: ValidationOutcome | None = None
        for branch in self._any_of:
            seen = branch.validate(value, path)
            if not seen.problems:
                outcome.extend(seen)
                return
            if best is None or seen.matches > best.matches:
                best = seen
        outcome.add(composite(f'"{path}" must validate at least one schema (anyOf)'))
        if best is not None:
            outcome.extend(best)

    def _validate_one_of(self, value: Any, path: str, outcome: ValidationOutcome) -> None:
        best: ValidationOutcome | None = None
        valid: list[ValidationOutcome] = []
        for branch in self._one_of:
            seen = branch.validate(value, path)
            if not seen.problems:
                valid.append(seen)
                best = None
            elif not valid and (best is None or seen.matches > best.matches):
                best = seen
        if len(valid) == 1:
            outcome.extend(valid[0])
            return
        found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        outcome.add(composite(f'"{path}" must validate one and only one schema (oneOf). {found}'))
        if best is not None:
            outcome.extend(best)

    def _validate_string(self, value: str, path: str, outcome: ValidationOutcome) -> None:
        document = self._document
        maximum, minimum, pattern = (
            document.get("maxLength"),
            document.get("minLength"),
            document.get("pattern"),
        )
        if maximum is not None and len(value) > maximum:
            outcome.add(too_long(path, maximum))
        elif minimum is not None and len(value) < minimum:
            outcome.add(other_problem(path, value, f"should be at least {minimum} chars long"))
        elif pattern is not None:
            try:
                if not tester(pattern)(value):
                    outcome.add(other_problem(path, value, f"should match '{pattern}'"))
            except InvalidRegexp as problem:
                text = f"should match '{pattern}, but pattern is invalid: {problem}'"
                outcome.add(other_problem(path, value, text))

    def _validate_number(self, value: float, path: str, outcome: ValidationOutcome) -> None:
        document = self._document
        whole = is_integer(value)
        if not whole:
            value = float(value)
        if (factor := document.get("multipleOf")) is not None:
            self._validate_multiple_of(value, int64(factor) if whole else float(factor), path, outcome)
        if (minimum := document.get("minimum")) is not None:
            minimum, open_end = (
                int64(minimum) if whole else float(minimum),
                bool(document.get("exclusiveMinimum")),
            )
            if value <= minimum if open_end else value < minimum:
                outcome.add(other_problem(path, value, bound(value, minimum, open_end, upper=False)))
        if (maximum := document.get("maximum")) is not None:
            maximum, open_end = (
                int64(maximum) if whole else float(maximum),
                bool(document.get("exclusiveMaximum")),
            )
            if value >= maximum if open_end else value > maximum:
                outcome.add(other_problem(path, value, bound(value, maximum, open_end, upper=True)))

    def _validate_multiple_of(
        self, value: float, factor: float, path: str, outcome: ValidationOutcome
    ) -> None:
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {plain(factor)}"
            outcome.add(other_problem(path, factor, "")._replace(text=text))
            return
        if is_integer(value) and is_integer(factor):
            fits = value % factor == 0
        else:
            fits = is_whole(1 / factor * value if factor < 1 else value / factor)
        if not fits:
            outcome.add(other_problem(path, value, f"should be a multiple of {plain(factor)}"))

    def _validate_items(
        self, value: list[Any], path: str, link: Link | None, outcome: ValidationOutcome
    ) -> None:
        if self._items is not None:
            for index, item in enumerate(value):
                below = None if link is None else link.element(index)
                outcome.extend(self._items.validate(item, f"{path}[{index}]", below))
        minimum, maximum = self._document.get("minItems"), self._document.get("maxItems")
        if minimum is not None and len(value) < minimum:
            outcome.add(other_problem(path, len(value), f"should have at least {minimum} items"))
        if maximum is not None and len(value) > maximum:
            outcome.add(too_many(path, len(value), maximum, "items"))
        outcome.matches += 1

    def _validate_enum(self, value: Any, path: str, outcome: ValidationOutcome) -> None:
        listed = self._document.get("enum")
        if listed and not any(_is_enum_value(value, one) for one in listed):
            outcome.add(not_in_enum(path, value, listed))

    def _validate_fields(
        self, value: dict[str, Any], path: str, link: Link | None, outcome: ValidationOutcome
    ) -> None:
        document, known = self._document, self._properties
        minimum, maximum = document.get("minProperties"), document.get("maxProperties")
        if minimum is not None and len(value) < minimum:
            outcome.add(other_problem(path, len(value), f"should have at least {minimum} properties"))
        if maximum is not None and len(value) > maximum:
            outcome.add(too_many(path, len(value), maximum, "properties"))
        for name, part in value.items():
            if name in known:
                continue
            if self._additional is not None:
                below = None if link is None else link.field(name)
                outcome.extend(self._additional.validate(part, f"{path}.{name}", below))
            elif document.get("additionalProperties") is False:
                text = f"{path}.{name} in body is a forbidden property"
                outcome.add(other_problem(path, name, "")._replace(text=text))
        for name, part in value.items():
            if (walker := known.get(name)) is not None:
                below = None if link is None else link.field(name)
                outcome.extend(walker.validate(part, f"{path}.{name}" if path else name, below))
        for name in document.get("required", ()):
            if name not in value:
                outcome.add(missing(f"{path}.{name}"))


def _is_enum_value(value: Any, one: Any) -> bool:
    """Return whether a value is an enum value, after Go's conversion to the same type."""
    if value is None or one is None:
        return False
    if is_integer(value) and isinstance(one, str):
        is_character = 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF
        return bool(one == (chr(value) if is_character else "\ufffd"))
    found, wanted = type_of(value), type_of(one)
    if found in ("integer", "number") and wanted in ("integer", "number"):
        return bool(int64(value) == one if wanted == "integer" else float(value) == one)
    return same(value, one)
