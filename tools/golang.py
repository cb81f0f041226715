"""
Extracts declarations of API types from Go source.

This is not a Go parser: it matches gofmt'ed declarations in the form of API types,
with one field a line and its tag in backquotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\*?[\w.\[\]*]+)[ \t]+`([^`]*)`")
_TAG = re.compile(r'(\w+):"([^"]*)"')
_MARKER = re.compile(r"^\t// \+default=(.*)$")
_CONSTANT = re.compile(r'^\t(\w+)\s+\w+\s+= ("[^"]*")$', re.MULTILINE)
_MARSHALLED = re.compile(r"^func \(\w+ \*?(\w+)\) MarshalJSON\(", re.MULTILINE)
_IMPORT = re.compile(r'^\t(?:(\w+) )?"([\w./-]+)"$', re.MULTILINE)
_ENUMERATED = re.compile(r"((?:^//[^\n]*\n)+)^type (\w+) string$", re.MULTILINE)
_CHOICE = re.compile(r'^(?:\t|const )(\w+)\s+(\w+)\s+= ("[^"]*")$')
_CONVERTED = re.compile(r'^\t(\w+)\s+= (\w+)\(("[^"]*"|\w+\.\w+)\)$')
_DOCUMENTED = re.compile(r"^var map_(\w+) = map\[string\]string\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r'^\t("(?:[^"\\]|\\.)*"):\s*("(?:[^"\\]|\\.)*"),$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """
    One field of a Go struct.

    `json` is its JSON name, empty where the field is inlined. `number` is its
    protobuf number, 0 without one. `default` is the value of its +default
    marker, as JSON text or `ref(NAME)`. `imported` is the path of the package
    of its type, empty for the same package.
    """

    go_type: str
    imported: str
    json: str
    number: int
    omitempty: bool
    omitzero: bool
    inlined: bool
    default: str | None

    @property
    def pointer(self) -> bool:
        return self.go_type.startswith("*")

    @property
    def element(self) -> str:
        """Return the name of the type without its package, or of the element of a pointer, list or map."""
        return re.split(r"[\].*]", self.go_type)[-1]


Struct = tuple[Field, ...]


@cache
def structs(folder: Path) -> dict[str, Struct]:
    """Return the structs that a package declares, by name."""
    found: dict[str, Struct] = {}
    for source in _sources(folder):
        for name, body in _STRUCT.findall(source):
            found[name] = tuple(_fields(body, _imports(source)))
    return found


@cache
def enums(folder: Path, folder_of: Callable[[str], Path | None]) -> dict[str, dict[str, str]]:
    """
    Return the types with the +enum marker: type, value, and the comment of the value.

    `folder_of` gives the folder of an import path; a value may be another package's constant.
    """
    found: dict[str, dict[str, str]] = {}
    for source in _sources(folder):
        found |= {name: {} for comment, name in _ENUMERATED.findall(source) if "// +enum\n" in comment}
    for source in _sources(folder):
        imports = _imports(source)
        comment_lines: list[str] = []
        for line in source.splitlines():
            name, kind, written = next(iter(_CHOICE.findall(line) or _CONVERTED.findall(line)), ("", "", ""))
            if kind in found:
                value = json.loads(written) if written[0] == '"' else _constant(written, imports, folder_of)
                text = " ".join(comment_lines).strip().removeprefix(name)
                found[kind][value] = " ".join(text.split())
            comment_lines = [*comment_lines, line.lstrip("\t/")] if line.lstrip("\t").startswith("//") else []
    return found


def _constant(written: str, imports: dict[str, str], folder_of: Callable[[str], Path | None]) -> str:
    alias, _, name = written.rpartition(".")
    home = folder_of(imports[alias])
    if home is None:
        raise LookupError(f"the value of {written} is not declared")
    return constants(home)[name]


def _imports(source: str) -> dict[str, str]:
    return {alias or path.rpartition("/")[2]: path for alias, path in _IMPORT.findall(source)}


@cache
def constants(folder: Path) -> dict[str, str]:
    """Return the string constants that a package declares, by name."""
    return {name: json.loads(text) for source in _sources(folder) for name, text in _CONSTANT.findall(source)}


@cache
def own_forms(folder: Path) -> frozenset[str]:
    """Return the types of a package with their own MarshalJSON."""
    return frozenset(name for source in _sources(folder) for name in _MARSHALLED.findall(source))


def documentation(folder: Path) -> dict[str, dict[str, str]]:
    """Return the documentation of struct fields in a package: struct, field, text."""
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


def _fields(body: str, imports: dict[str, str]) -> list[Field]:
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
                    imported=imports.get(re.split(r"[\]*]", field[2])[-1].rpartition(".")[0], ""),
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
