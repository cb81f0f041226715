"""Label and field selectors over stored rows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import orjson

from lamina.errors import BadRequest
from lamina.objects.field_selectors import parse_field_selector
from lamina.objects.selectors import LabelSelector, parse_label_selector
from lamina.objects.types import Obj
from lamina.server.codec.response import versioned_json
from lamina.server.http.request import Request
from lamina.server.kinds.builtin.field_labels import refusal
from lamina.server.kinds.kind import Kind
from lamina.server.storage.store import Row


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Meta


_LABELS = msgspec.json.Decoder(_Labelled)
_NONE: Mapping[str, str] = {}


def labels_of(row: Row) -> Mapping[str, str]:
    """Return the labels of a row without decoding the rest of it."""
    return _LABELS.decode(row.value).metadata.labels or _NONE


class Selection:
    """
    The selectors of a request.

    `name` is set if a field selector requests one name: then that row is looked up
    instead of filtering all rows.
    """

    __slots__ = ("_fields", "_kind", "_labels", "everything", "name")

    def __init__(self, kind: Kind, request: Request) -> None:
        self._kind = kind
        self._labels: LabelSelector | None = None
        self._fields: list[tuple[str, bool, str]] = []
        self.name: str | None = None
        if request.query:
            if text := request.parameter("labelSelector"):
                self._labels = parse_label_selector(text)
            if text := request.parameter("fieldSelector"):
                self._read_fields(text)
        self.everything = self._labels is None and not self._fields

    def _read_fields(self, text: str) -> None:
        for field, equal, value in parse_field_selector(text):
            if not field and not value:
                continue
            if message := _unsupported_field(self._kind, field):
                raise BadRequest(message)
            self._fields.append((field, equal, value))
            if field == "metadata.name" and equal:
                self.name = value

    def restrict_to(self, name: str) -> None:
        """Restrict the selection to one name, for a watch on the path of one object."""
        self._fields.append(("metadata.name", True, name))
        self.name = name
        self.everything = False

    def matches(self, row: Row) -> bool:
        if self._fields and not self._match_fields(row):
            return False
        return self._labels is None or self._labels.matches(labels_of(row))

    def _match_fields(self, row: Row) -> bool:
        obj: Obj | None = None
        for field, equal, value in self._fields:
            if field == "metadata.name":
                actual = row.key.name
            elif field == "metadata.namespace":
                actual = row.key.namespace
            else:
                if obj is None:
                    obj = orjson.loads(versioned_json(self._kind, row))
                actual = self._kind.shape.field_labels[field](obj)
            if (actual == value) is not equal:
                return False
        return True


def _unsupported_field(kind: Kind, field: str) -> str:
    """Return why a field is not selectable, empty if it is."""
    if not kind.custom:
        return refusal(kind.group, kind.plural, field)
    known = field in ("metadata.name", "metadata.namespace") or field in kind.shape.field_labels
    return "" if known else f"field label not supported: {field}"
