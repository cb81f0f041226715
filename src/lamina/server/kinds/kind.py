"""
One kind in one version.

Built-in and custom kinds differ in their source and in their behavior on write; both are
a `Kind` with a `Shape`, and verbs do not distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from lamina.errors import Cause, Invalid
from lamina.merge.schema import Schema
from lamina.objects.types import Made, Obj
from lamina.server.field_errors import invalid_named

Empty: TypeAlias = tuple[tuple[str | int, ...], Any]
"""The path and value of an empty list or map in a body."""


class Subresource(Struct, frozen=True, kw_only=True):
    """A subresource such as `status`, `scale`, `finalize`; `group`, `version` and `kind` are those of its body."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class Column(Struct, frozen=True, kw_only=True):
    """One column of a Table; `type` and `format` are OpenAPI's; with a `priority` above zero it is only in wide output."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


_REPEATED = "yaml: unmarshal errors:"


class Findings:
    """
    What a decoder dropped: unknown and duplicate fields in order, and empty values.

    Each field is a message such as `unknown field "spec.bogus"`; whether it becomes an
    error or a warning depends on the request.
    """

    __slots__ = ("empties", "sentences")

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.empties: list[Empty] = []

    def unknown(self, path: str) -> None:
        self._add(f'unknown field "{path}"')

    def duplicate(self, path: str) -> None:
        self._add(f'duplicate field "{path}"')

    def repeated(self, keys: Sequence[tuple[int, str]]) -> None:
        """Report duplicate keys of a YAML text by their lines, because its parser has no paths."""
        if keys:
            lines = [f'  line {line}: key "{key}" already set in map' for line, key in keys]
            self._add("\n".join([_REPEATED, *lines]))

    @property
    def warnings(self) -> list[str]:
        """The messages as warnings, one line each."""
        return [
            line.strip()
            for sentence in self.sentences
            for line in sentence.removeprefix(f"{_REPEATED}\n").split("\n")
        ]

    def _add(self, sentence: str) -> None:
        if sentence not in self.sentences:
            self.sentences.append(sentence)


class RatchetedCause(Cause):
    """An error of an unchanged value: it becomes a warning."""

    __slots__ = ()


class Shape(Protocol):
    """
    The behavior of a kind in a version.

    Objects that are passed in are new dicts, owned by the caller; `decode`, `default` and
    the `prepare` functions may modify them in place. `old` is never modified.
    `subresource` is "" for the object itself.
    """

    columns: tuple[Column, ...]
    """All columns; the first is `Name`."""

    field_labels: Mapping[str, Callable[[Obj], str]]
    """The selectable fields beyond metadata.name and metadata.namespace."""

    @property
    def has_generation(self) -> bool:
        """Whether a change of the spec raises metadata.generation."""
        ...

    @property
    def counts_annotations(self) -> bool:
        """Whether a change of annotations raises it, too, as that of a Deployment does."""
        ...

    @property
    def has_status(self) -> bool:
        """Whether the status is written through a subresource of its own."""
        ...

    def decode(self, body: Made, findings: Findings) -> Made:
        """
        Return a parsed body in the stored form of this kind: unknown fields dropped and reported, values normalized.

        Raises BadRequest for a value of the wrong type.
        """
        ...

    def default(self, obj: Made) -> None:
        """Set the defaults."""
        ...

    def prepare_create(self, obj: Made) -> None:
        """Reset fields that the creator must not set (such as status, if it is a subresource), and set initial values."""
        ...

    def prepare_update(self, new: Made, old: Obj, subresource: str, stamp: str = "") -> None:
        """Restore what the endpoint must not change, and raise the generation if needed; `stamp` is the time."""
        ...

    def validate_create(self, obj: Obj) -> Sequence[Cause]: ...

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> Sequence[Cause]: ...

    def warn(self, new: Obj, old: Obj | None) -> Sequence[str]:
        """Return warnings about an accepted object."""
        ...

    def reset_fields(self, subresource: str) -> Sequence[tuple[str, ...]]:
        """Return the field paths that a write to this endpoint resets, and so never owns."""
        ...

    def read(self, stored: Made) -> Made:
        """Return a stored object in this version."""
        ...

    def store(self, obj: Made) -> Made:
        """Return an object of this version in the stored version."""
        ...

    def cells(self, obj: Obj, now: datetime) -> list[Any]:
        """Return one row of the Table, a cell for each column."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """
    A kind in one served version.

    `bucket` is the unit of storage, list and watch: versions of one kind share it.
    `definition` is the name of a built-in kind's OpenAPI definition; `document` is the
    schema of a CRD, as written. `converts` is false if the stored version is the served
    one, so that the stored bytes can be sent as they are.
    """

    group: str
    version: str
    kind: str
    list_kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    bucket: str
    schema: Schema
    shape: Shape
    custom: bool = False
    stored: bool = True
    converts: bool = False
    preferred: bool = True
    """Whether discovery prefers this version of the kind."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    definition: str = ""
    document: Mapping[str, Any] | None = None
    storage_hash: str = ""
    deprecation: str = ""
    """The deprecation warning of this version, or an empty string."""
    api_version: str = field(init=False)
    prefix: bytes = field(init=False)
    """The beginning of every object's JSON, before the stored bytes."""

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)
        object.__setattr__(self, "prefix", f'{{"kind":"{self.kind}","apiVersion":"{api_version}",'.encode())

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource with a name, if there is one."""
        return next((sub for sub in self.subresources if sub.name == name), None)

    @property
    def qualified(self) -> str:
        """Return the name of the kind in messages: `Widget.ex.example.com`, `ConfigMap`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def invalid_error(kind: Kind, name: str, causes: Sequence[Cause]) -> Invalid:
    """Return the error for an invalid object; repeated causes are in the message once."""
    # Events of both groups are validated as core events.
    return invalid_named(kind.kind, "" if kind.bucket == "events" else kind.group, name, causes)
