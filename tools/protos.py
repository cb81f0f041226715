"""
Generates the table for decoding protobuf bodies.

A message is one line of text, `1 name! string;2 ports []ContainerPort`, under the
name of its OpenAPI definition. A suffix of a field's name says how a zero is
decoded: `?` is a pointer in Go, whose explicit zero is kept; `!` is written even
when it was not sent, as every struct is; `^` is inlined into the parent; without a
suffix, a zero is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tools.golang import Field, own_forms, structs
from tools.sources import Sources

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (optional|repeated|required) ([\w.]+) (\w+) = (\d+);", re.MULTILINE)
_MAP = re.compile(r"^  map<(\w+), ([\w.]+)> (\w+) = (\d+);", re.MULTILINE)


def messages(sources: Sources, roots: Iterable[str]) -> dict[str, str]:
    """Return the lines of the named messages and of all that they refer to."""
    found: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name], mentioned = _line(sources, name)
        waiting += mentioned
    return dict(sorted(found.items()))


def _line(sources: Sources, name: str) -> tuple[str, list[str]]:
    package, _, message = name.rpartition(".")
    folder = sources.folder(package)
    declared = {field.number: field for field in structs(folder).get(message, ())}
    entries: list[str] = []
    mentioned: list[str] = []

    def shown(written: str) -> str:
        if not _is_message(written):
            return written
        full = _definition(written, package)
        mentioned.append(full)
        return full.removeprefix(f"{package}.")

    for number, field, written, form in sorted(_declared(folder)[message]):
        # A named slice type, such as ExtraValue, has no Go field: one repeated field.
        known = declared.get(number)
        if known and message in own_forms(folder):
            called = f"{field}?" if known.pointer else field
        else:
            struct = form == "{}" and _is_message(written)
            called = _named(known, field, struct=struct) if known else field
        entries.append(f"{number} {called} {form.format(shown(written))}")
    return ";".join(entries), mentioned


def _named(declared: Field, field: str, *, struct: bool) -> str:
    if declared.inlined:
        return f"{field}^"
    if declared.pointer:
        return f"{declared.json}?"
    # Go's omitempty does not omit structs; omitzero does.
    dropped = declared.omitzero if struct else declared.omitempty
    return declared.json if dropped else f"{declared.json}!"


@cache
def _declared(folder: Path) -> dict[str, list[tuple[int, str, str, str]]]:
    """Return the messages of a package: number, name, type and format of each field."""
    source = (folder / "generated.proto").read_text()
    return {
        message: [
            (int(number), name, written, "[]{}" if label == "repeated" else "{}")
            for label, written, name, number in _FIELD.findall(body)
        ]
        + [
            (int(number), name, written, f"map<{key},{{}}>")
            for key, written, name, number in _MAP.findall(body)
        ]
        for message, body in _MESSAGE.findall(source)
    }


def _is_message(written: str) -> bool:
    return written[0].isupper() or written.startswith(".")


def _definition(written: str, package: str) -> str:
    """Return the definition name of a type in a .proto file, such as .k8s.io.api.core.v1.Pod."""
    if not written.startswith("."):
        return f"{package}.{written}"
    return "io.k8s." + written.removeprefix(".k8s.io.").replace("_", "-")
