"""The CEL types of schema nodes."""

from __future__ import annotations

from lamina.cel.schema import Declared, declare, escape
from lamina.server.kinds.custom.document import Document

EMBEDDED = "x-kubernetes-embedded-resource"


def of_root(document: Document, *, resource: bool = True) -> Declared | None:
    """Return the type of a schema; a `resource` has name and kind whatever its schema has."""
    return declare(document, resource=resource)


def of_property(holder: Declared | None, name: str, part: Document) -> Declared | None:
    """Return the type of a field; one whose name is no CEL identifier has a type, too."""
    identifier = escape(name)
    if holder is not None and identifier is not None and identifier in holder.fields:
        return holder.fields[identifier]
    return declare(part, resource=bool(part.get(EMBEDDED)))


def of_element(holder: Declared | None, part: Document) -> Declared | None:
    """Return the type of the items of a list or map."""
    if holder is not None and holder.element is not None:
        return holder.element
    return declare(part, resource=bool(part.get(EMBEDDED)))
