"""
One kind in one version, as the server serves it.

Built-in and custom kinds differ in where they come from and in what a write
has to go through; both are a `Kind` with a `Shape`, and no verb asks which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from lamina.errors import Cause
from lamina.merge.schema import Schema
from lamina.objects.types import Made, Obj
from lamina.server.empties import Empty


class Subresource(Struct, frozen=True, kw_only=True):
    """What is served below an object: `status`, `scale`, `finalize`; `group`, `version` and `kind` are its body's."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class Column(Struct, frozen=True, kw_only=True):
    """One column of a Table; `type` and `format` are OpenAPI's, `priority` above zero shows only in wide output."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


_REPEATED = "yaml: unmarshal errors:"


class Findings:
    """
    What a decoder dropped on its way: unknown and duplicate fields, in the order met, and what was empty.

    Each field is a sentence such as `unknown field "spec.bogus"`; what becomes of
    them (an error, a warning, nothing) is the request's to say.
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
        """Report keys that stand twice in a YAML text, by their lines: its parser knows no paths."""
        if keys:
            lines = [f'  line {line}: key "{key}" already set in map' for line, key in keys]
            self._add("\n".join([_REPEATED, *lines]))

    @property
    def warnings(self) -> list[str]:
        """The same as warnings, of which each is one line."""
        return [
            line.strip()
            for sentence in self.sentences
            for line in sentence.removeprefix(f"{_REPEATED}\n").split("\n")
        ]

    def _add(self, sentence: str) -> None:
        if sentence not in self.sentences:
            self.sentences.append(sentence)


class Excused(Cause):
    """Something wrong that was stored so and has not changed: it is warned of, and let pass."""

    __slots__ = ()


class Shape(Protocol):
    """
    What is particular to a kind in a version.

    Objects handed in are fresh dicts that the caller owns; `decode`, `default`
    and the `prepare` pair may change them in place. `old` never is.
    `subresource` is "" for the object itself.
    """

    columns: tuple[Column, ...]
    """All columns after negotiation's `Name`, which is the first of them."""

    field_labels: Mapping[str, Callable[[Obj], str]]
    """What a field selector may ask beyond metadata.name and metadata.namespace."""

    def decode(self, body: Made, findings: Findings) -> Made:
        """
        Return a parsed body as this kind stores it: unknown fields dropped and reported, values normalised.

        Raises BadRequest where a value has a type the kind cannot hold.
        """
        ...

    def default(self, obj: Made) -> None:
        """Fill in what the writer left out."""
        ...

    def prepare_create(self, obj: Made) -> None:
        """Reset what a creator may not say (status, where it is a subresource), and set what a creation starts with."""
        ...

    def prepare_update(self, new: Made, old: Obj, subresource: str, stamp: str = "") -> None:
        """Put back what this endpoint may not change, and count the generation; `stamp` is the present."""
        ...

    def validate_create(self, obj: Obj) -> Sequence[Cause]: ...

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> Sequence[Cause]: ...

    def warn(self, new: Obj, old: Obj | None) -> Sequence[str]:
        """Return sentences for Warning headers about an object that is nevertheless accepted."""
        ...

    def untracked(self, subresource: str) -> Sequence[tuple[str, ...]]:
        """Return the field paths that a write to this endpoint resets, and so never owns."""
        ...

    def read(self, stored: Made) -> Made:
        """Return a stored object as this version shows it."""
        ...

    def store(self, obj: Made) -> Made:
        """Return an object of this version as it is stored."""
        ...

    def cells(self, obj: Obj, now: datetime) -> list[Any]:
        """Return one row of the Table, a cell for each column."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """
    A kind in one served version.

    `bucket` names what is stored, listed and watched together: two versions of
    one kind share it. `definition` is the name of a built-in kind's OpenAPI
    definition; `document` is the schema a CRD gave, as written.
    `converts` is false where what is stored is what is shown, so that the
    stored bytes can be sent as they are.
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
    """Whether this is the version of its group that discovery prefers for this kind."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    definition: str = ""
    document: Mapping[str, Any] | None = None
    storage_hash: str = ""
    deprecation: str = ""
    """What every request to this version is warned of, if it should not be used any more."""
    api_version: str = field(init=False)
    prefix: bytes = field(init=False)
    """The opening of every object's JSON, up to where the stored bytes go on."""

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)
        object.__setattr__(self, "prefix", f'{{"kind":"{self.kind}","apiVersion":"{api_version}",'.encode())

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource of that name, if there is one."""
        return next((sub for sub in self.subresources if sub.name == name), None)

    @property
    def qualified(self) -> str:
        """Return what messages call the kind: `Widget.ex.example.com`, `ConfigMap`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind
