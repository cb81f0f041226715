"""
Reads what Go source says about the types of the API.

This is no parser of Go: it reads gofmt'ed declarations of the one shape that
API types have, one field a line with its tag in backquotes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\*?[\w.\[\]*]+)[ \t]+`([^`]*)`")
_TAG = re.compile(r'(\w+):"([^"]*)"')
_MARKER = re.compile(r"^\t// \+default=(.*)$")
_CONSTANT = re.compile(r'^\t(\w+)\s+\w+\s+= ("[^"]*")$', re.MULTILINE)
_MARSHALLED = re.compile(r"^func \(\w+ \*?(\w+)\) MarshalJSON\(", re.MULTILINE)
_DOCUMENTED = re.compile(r"^var map_(\w+) = map\[string\]string\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r'^\t("(?:[^"\\]|\\.)*"):\s*("(?:[^"\\]|\\.)*"),$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """
    One field of a Go struct.

    `json` is its name on the wire, empty where the field is inlined. `number`
    is its protobuf number, 0 where it has none. `default` is what a marker
    above it says, as JSON text or `ref(NAME)`.
    """

    go_type: str
    json: str
    number: int
    omitempty: bool
    omitzero: bool
    inlined: bool
    default: str | None

    @property
    def pointer(self) -> bool:
        return self.go_type.startswith("*")


Struct = tuple[Field, ...]


@cache
def structs(folder: Path) -> dict[str, Struct]:
    """Return the structs that a package declares, by name."""
    found: dict[str, Struct] = {}
    for source in _sources(folder):
        for name, body in _STRUCT.findall(source):
            found[name] = tuple(_fields(body))
    return found


@cache
def constants(folder: Path) -> dict[str, str]:
    """Return the string constants that a package declares, by name."""
    return {name: json.loads(text) for source in _sources(folder) for name, text in _CONSTANT.findall(source)}


@cache
def own_forms(folder: Path) -> frozenset[str]:
    """Return the types of a package that write themselves as JSON, in a form their fields do not show."""
    return frozenset(name for source in _sources(folder) for name in _MARSHALLED.findall(source))


def documentation(folder: Path) -> dict[str, dict[str, str]]:
    """Return what a package says about the fields of its structs: struct, field, sentences."""
    source = (folder / "types_swagger_doc_generated.go").read_text()
    return {
        struct: {json.loads(field): json.loads(text) for field, text in _SENTENCE.findall(body)}
        for struct, body in _DOCUMENTED.findall(source)
    }


def _sources(folder: Path) -> list[str]:
    generated = ("zz_generated", "generated.pb", "types_swagger_doc")
    return [
        path.read_text()
        for path in sorted(folder.glob("*.go"))
        if not path.name.startswith(generated) and not path.name.endswith("_test.go")
    ]


def _fields(body: str) -> list[Field]:
    fields: list[Field] = []
    default: str | None = None
    for line in body.splitlines():
        if marker := _MARKER.match(line):
            default = marker[1].strip()
        elif not line.startswith("\t//") and (field := _FIELD.match(line)):
            tags = dict(_TAG.findall(field[3]))
            name, *options = tags.get("json", "").split(",")
            wire = tags.get("protobuf", "").split(",")
            fields.append(
                Field(
                    go_type=field[2],
                    json=name,
                    number=int(wire[1]) if len(wire) > 1 else 0,
                    omitempty="omitempty" in options,
                    omitzero="omitzero" in options,
                    inlined="inline" in options or (not name and not field[1]),
                    default=default,
                )
            )
            default = None
        elif not line.startswith("\t//"):
            default = None
    return fields
