"""
Reads what Go source says about the types of the API.

This is no parser of Go: it reads gofmt'ed declarations of the one shape that
API types have, one field a line with its tag in backquotes.
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

    `json` is its name on the wire, empty where the field is inlined. `number`
    is its protobuf number, 0 where it has none. `default` is what a marker
    above it says, as JSON text or `ref(NAME)`. `imported` is the path of the
    package its type comes from, empty for its own.
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
        """Return the name of the type without its package, whatever it is a pointer to, list or map of."""
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
def enums(folder: Path, elsewhere: Callable[[str], Path | None]) -> dict[str, dict[str, str]]:
    """
    Return the types marked as enumerations: type, value, and what the source says of the value.

    `elsewhere` gives the folder of an import path; a value may be another package's constant.
    """
    found: dict[str, dict[str, str]] = {}
    for source in _sources(folder):
        found |= {name: {} for comment, name in _ENUMERATED.findall(source) if "// +enum\n" in comment}
    for source in _sources(folder):
        imports = _imports(source)
        said: list[str] = []
        for line in source.splitlines():
            name, kind, written = next(iter(_CHOICE.findall(line) or _CONVERTED.findall(line)), ("", "", ""))
            if kind in found:
                value = json.loads(written) if written[0] == '"' else _constant(written, imports, elsewhere)
                text = " ".join(said).strip().removeprefix(name)
                found[kind][value] = " ".join(text.split())
            said = [*said, line.lstrip("\t/")] if line.lstrip("\t").startswith("//") else []
    return found


def _constant(written: str, imports: dict[str, str], elsewhere: Callable[[str], Path | None]) -> str:
    alias, _, name = written.rpartition(".")
    home = elsewhere(imports[alias])
    if home is None:
        raise LookupError(f"nobody knows the value of {written}")
    return constants(home)[name]


def _imports(source: str) -> dict[str, str]:
    return {alias or path.rpartition("/")[2]: path for alias, path in _IMPORT.findall(source)}


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
