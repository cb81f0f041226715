"""
Walks a value by its schema and says everything that is wrong with it.

This is the slow and exact way, taken when the fast one has found that there is
something to say. Which checks run on which type of value, in which order, and
which of them keep others from running, is the real server's doing; its messages
depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.server.custom.document import Document
from lamina.server.custom.formats import format_check
from lamina.server.custom.golang import int64, is_integer, is_whole, plain, same, type_of
from lamina.server.custom.patterns import BadPattern, searcher
from lamina.server.custom.problems import (
    Outcome,
    as_causes,
    bound,
    composite,
    improper,
    missing,
    not_listed,
    too_long,
    too_many,
    wrong_type,
)
from lamina.server.custom.ratchet import Link

_INNER_FORMATS = {"integer": "int64", "number": "float64"}


class Walker:
    """
    One node of a schema, ready to look at values.

    `as_default` is how the defaults of a CRD are checked: every format counts
    where a type is compared, and int-or-string takes anything.
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
            name: Walker(part, as_default=as_default) for name, part in document.get("properties", {}).items()
        }
        self._additional = self._single(document.get("additionalProperties"))
        self._items = self._single(document.get("items"))

    def _several(self, junctor: str) -> list[Walker]:
        parts: Sequence[Document] = self._document.get(junctor, ())
        return [Walker(part, as_default=self._as_default) for part in parts]

    def _single(self, part: Any) -> Walker | None:
        return Walker(part, as_default=self._as_default) if isinstance(part, dict) else None

    def causes(self, value: Any, base: str = "", link: Link | None = None) -> list[Cause]:
        """Return what is wrong with a value; with a link, only what has changed counts."""
        return as_causes(self.look(value, "", link).problems, base)

    def look(self, value: Any, path: str, link: Link | None = None) -> Outcome:
        """Look at a value and everything inside it."""
        outcome = Outcome()
        if value is None:
            # Of null only the type is asked, and whether it is listed.
            self._look_at_type(value, path, outcome)
            self._look_at_list(value, path, outcome)
        else:
            self._look_at_value(value, path, link, outcome)
        if outcome.problems and link is not None and link.equal:
            passed = Outcome()
            passed.matches = outcome.matches
            return passed
        return outcome

    def _look_at_value(self, value: Any, path: str, link: Link | None, outcome: Outcome) -> None:
        if self._types or self._format:
            self._look_at_type(value, path, outcome)
            outcome.matches += 1
        self._look_at_junctors(value, path, outcome)
        outcome.matches += 1
        if isinstance(value, str):
            self._look_at_string(value, path, outcome)
            outcome.matches += 1
            if self._check is not None:
                if not self._check(value):
                    outcome.add(wrong_type(path, self._document["format"], value))
                outcome.matches += 1
        elif isinstance(value, list):
            self._look_at_items(value, path, link, outcome)
            outcome.matches += 1
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._look_at_number(value, path, outcome)
            outcome.matches += 2
        self._look_at_list(value, path, outcome)
        outcome.matches += 1
        if isinstance(value, dict):
            self._look_at_fields(value, path, link, outcome)
            outcome.matches += 1
        outcome.matches += 1

    def _look_at_type(self, value: Any, path: str, outcome: Outcome) -> None:
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
            # A format vouches for the type of strings, and by an old oversight of lists.
            outcome.matches += 1
        elif not fits:
            outcome.add(wrong_type(path, ",".join(types), found))
        else:
            outcome.matches += 1

    def _look_at_junctors(self, value: Any, path: str, outcome: Outcome) -> None:
        if self._any_of:
            self._look_at_any(value, path, outcome)
        if self._one_of:
            self._look_at_one(value, path, outcome)
        if self._all_of:
            valid = 0
            for branch in self._all_of:
                seen = branch.look(value, path)
                valid += not seen.problems
                outcome.take(seen)
            if valid != len(self._all_of):
                none = "" if valid else ". None validated"
                outcome.add(composite(f'"{path}" must validate all the schemas (allOf){none}'))
        if self._not is not None and not self._not.look(value, path).problems:
            outcome.add(composite(f'"{path}" must not validate the schema (not)'))
        outcome.matches += 1

    def _look_at_any(self, value: Any, path: str, outcome: Outcome) -> None:
        best: Outcome | None = None
        for branch in self._any_of:
            seen = branch.look(value, path)
            if not seen.problems:
                outcome.take(seen)
                return
            if best is None or seen.matches > best.matches:
                best = seen
        outcome.add(composite(f'"{path}" must validate at least one schema (anyOf)'))
        if best is not None:
            outcome.take(best)

    def _look_at_one(self, value: Any, path: str, outcome: Outcome) -> None:
        best: Outcome | None = None
        valid: list[Outcome] = []
        for branch in self._one_of:
            seen = branch.look(value, path)
            if not seen.problems:
                valid.append(seen)
                best = None
            elif not valid and (best is None or seen.matches > best.matches):
                best = seen
        if len(valid) == 1:
            outcome.take(valid[0])
            return
        found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        outcome.add(composite(f'"{path}" must validate one and only one schema (oneOf). {found}'))
        if best is not None:
            outcome.take(best)

    def _look_at_string(self, value: str, path: str, outcome: Outcome) -> None:
        document = self._document
        most, least, pattern = document.get("maxLength"), document.get("minLength"), document.get("pattern")
        if most is not None and len(value) > most:
            outcome.add(too_long(path, most))
        elif least is not None and len(value) < least:
            outcome.add(improper(path, value, f"should be at least {least} chars long"))
        elif pattern is not None:
            try:
                if not searcher(pattern)(value):
                    outcome.add(improper(path, value, f"should match '{pattern}'"))
            except BadPattern as problem:
                text = f"should match '{pattern}, but pattern is invalid: {problem}'"
                outcome.add(improper(path, value, text))

    def _look_at_number(self, value: float, path: str, outcome: Outcome) -> None:
        document = self._document
        whole = is_integer(value)
        if not whole:
            value = float(value)
        if (factor := document.get("multipleOf")) is not None:
            self._look_at_multiple(value, int64(factor) if whole else float(factor), path, outcome)
        if (least := document.get("minimum")) is not None:
            least, open_end = int64(least) if whole else float(least), bool(document.get("exclusiveMinimum"))
            if value <= least if open_end else value < least:
                outcome.add(improper(path, value, bound(value, least, open_end, upper=False)))
        if (most := document.get("maximum")) is not None:
            most, open_end = int64(most) if whole else float(most), bool(document.get("exclusiveMaximum"))
            if value >= most if open_end else value > most:
                outcome.add(improper(path, value, bound(value, most, open_end, upper=True)))

    def _look_at_multiple(self, value: float, factor: float, path: str, outcome: Outcome) -> None:
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {plain(factor)}"
            outcome.add(improper(path, factor, "")._replace(text=text))
            return
        if is_integer(value) and is_integer(factor):
            fits = value % factor == 0
        else:
            fits = is_whole(1 / factor * value if factor < 1 else value / factor)
        if not fits:
            outcome.add(improper(path, value, f"should be a multiple of {plain(factor)}"))

    def _look_at_items(self, value: list[Any], path: str, link: Link | None, outcome: Outcome) -> None:
        if self._items is not None:
            for index, item in enumerate(value):
                below = None if link is None else link.element(index)
                outcome.take(self._items.look(item, f"{path}[{index}]", below))
        least, most = self._document.get("minItems"), self._document.get("maxItems")
        if least is not None and len(value) < least:
            outcome.add(improper(path, len(value), f"should have at least {least} items"))
        if most is not None and len(value) > most:
            outcome.add(too_many(path, len(value), most, "items"))
        outcome.matches += 1

    def _look_at_list(self, value: Any, path: str, outcome: Outcome) -> None:
        listed = self._document.get("enum")
        if listed and not any(_is_listed(value, one) for one in listed):
            outcome.add(not_listed(path, value, listed))

    def _look_at_fields(self, value: dict[str, Any], path: str, link: Link | None, outcome: Outcome) -> None:
        document, known = self._document, self._properties
        least, most = document.get("minProperties"), document.get("maxProperties")
        if least is not None and len(value) < least:
            outcome.add(improper(path, len(value), f"should have at least {least} properties"))
        if most is not None and len(value) > most:
            outcome.add(too_many(path, len(value), most, "properties"))
        for name, part in value.items():
            if name in known:
                continue
            if self._additional is not None:
                below = None if link is None else link.field(name)
                outcome.take(self._additional.look(part, f"{path}.{name}", below))
            elif document.get("additionalProperties") is False:
                text = f"{path}.{name} in body is a forbidden property"
                outcome.add(improper(path, name, "")._replace(text=text))
        for name, part in value.items():
            if (walker := known.get(name)) is not None:
                below = None if link is None else link.field(name)
                outcome.take(walker.look(part, f"{path}.{name}" if path else name, below))
        for name in document.get("required", ()):
            if name not in value:
                outcome.add(missing(f"{path}.{name}"))


def _is_listed(value: Any, one: Any) -> bool:
    """Say whether a value is one of an enum, after Go has tried to make it of the same type."""
    if value is None or one is None:
        return False
    if is_integer(value) and isinstance(one, str):
        is_character = 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF
        return bool(one == (chr(value) if is_character else "\ufffd"))
    found, wanted = type_of(value), type_of(one)
    if found in ("integer", "number") and wanted in ("integer", "number"):
        return bool(int64(value) == one if wanted == "integer" else float(value) == one)
    return same(value, one)
