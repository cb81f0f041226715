"""
Generates OpenAPI definitions in the form in which kube-apiserver publishes them.

The source package has those of OpenAPI v2, changed for validators: every optional
type may be null, kinds are restricted by enums, and two types have another schema.
These changes are reverted, and the parts of v3 added: references with a description
are in `allOf`, fields that Go always writes have their zero as `default`, and enums
list their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from lamina.server.kinds.builtin.definitions import references
from tools.golang import Field, constants, enums, own_forms, structs
from tools.sources import Sources

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_ZEROS: Final[dict[str, Any]] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def definitions(sources: Sources, roots: Iterable[str]) -> dict[str, Any]:
    """Return the named definitions and all that they refer to."""
    found: dict[str, Any] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = _definition(sources, name)
        waiting += references(found[name])
    return dict(sorted(found.items()))


def _definition(sources: Sources, name: str) -> dict[str, Any]:
    package, _, struct = name.rpartition(".")
    folder = sources.folder(package)
    if name == _QUANTITY:
        return {"description": _comment(folder, struct), "oneOf": [{"type": "string"}, {"type": "number"}]}
    if name == _INT_OR_STRING:
        return {
            "description": _comment(folder, struct),
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        }
    schema = _plain(sources.definitions[name])
    fields = {field.json: field for field in _flattened(folder, struct)}
    for key, value in schema.get("properties", {}).items():
        if schema.get("x-kubernetes-group-version-kind") and key in ("apiVersion", "kind"):
            value.pop("enum", None)
        if field := fields.get(key):
            _give_default(sources, value, field, folder)
            _give_choices(sources, value, field, folder)
    published: dict[str, Any] = _with_references_apart(schema)
    return published


def _plain(schema: Any) -> Any:
    """Return a schema without the nulls for validators."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in sorted(schema.items())}
    if isinstance(plain.get("type"), list):
        (plain["type"],) = (kind for kind in plain["type"] if kind != "null")
    if isinstance(reference := plain.get("$ref"), str):
        plain["$ref"] = f"#/components/schemas/{reference.rpartition('/')[2]}"
    return plain


def _flattened(folder: Path, struct: str) -> Iterator[Field]:
    """Yield the fields of a struct and of those it inlines."""
    for field in structs(folder).get(struct, ()):
        if not field.inlined:
            yield field
        elif "." not in field.go_type:
            yield from _flattened(folder, field.go_type)


def _give_default(sources: Sources, schema: dict[str, Any], field: Field, folder: Path) -> None:
    if field.default is not None:
        schema["default"] = _literal(field.default, folder)
    elif not field.pointer:
        _give_zero(sources, schema, omitempty=field.omitempty)


def _give_zero(sources: Sources, schema: dict[str, Any], *, omitempty: bool) -> None:
    if isinstance(reference := schema.get("$ref"), str):
        package, _, struct = reference.rpartition("/")[2].rpartition(".")
        if struct not in own_forms(sources.folder(package)):
            schema["default"] = {}
    elif schema.get("type") in _ZEROS and not omitempty and schema.get("format") != "byte":
        schema["default"] = _ZEROS[schema["type"]]
    for part in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(part), dict):
            _give_zero(sources, inner, omitempty=False)


def _give_choices(sources: Sources, schema: dict[str, Any], field: Field, folder: Path) -> None:
    """Add the values of an enum, with a description where the field itself is one."""
    home = sources.imported(field.imported) if field.imported else folder
    choices = enums(home, sources.imported).get(field.element) if home else None
    if not choices:
        return
    for part in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(part), dict):
            inner["enum"] = sorted(choices)
            return
    lines = sorted(f' - `"{value}"` {text}'.rstrip() for value, text in choices.items())
    schema["description"] = "\n".join(
        (schema.get("description", ""), "", "Possible enum values:", *lines)
    ).lstrip()
    schema["enum"] = sorted(choices)


def _literal(text: str, folder: Path) -> Any:
    if text.startswith("ref("):
        return constants(folder)[text[4:-1]]
    return json.loads(text)


def _with_references_apart(schema: Any) -> Any:
    """Return a schema in which references with other keywords are in `allOf`."""
    if isinstance(schema, list):
        return [_with_references_apart(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str) and len(schema) > 1:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {"allOf": [{"$ref": reference}], **beside}
    return {key: _with_references_apart(value) for key, value in schema.items()}


def _comment(folder: Path, struct: str) -> str:
    """
    Return the comment of a message in a .proto file, for the two definitions without one.

    Lines of a paragraph are joined; an indented line stays a line.
    """
    lines: list[str] = []
    for line in (folder / "generated.proto").read_text().splitlines():
        if line.startswith(f"message {struct} "):
            break
        lines = [*lines, line.removeprefix("//").removeprefix(" ")] if line.startswith("//") else []
    text = ""
    for line in (line.rstrip(" ") for line in lines):
        if not line:
            text = text[:-1] + "\n\n"
        elif line.startswith((" ", "\t")):
            text = f"{text[:-1]}\n{line}\n"
        elif not line.startswith(("+", "TODO")):
            text += f"{line} "
    return text.strip()
