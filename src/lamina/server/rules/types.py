"""Which types the nodes of a schema have, as one goes down from its root."""

from __future__ import annotations

from lamina.cel.schema import Declared, declare, escape
from lamina.server.custom.document import Document

EMBEDDED = "x-kubernetes-embedded-resource"


def of_root(document: Document, *, resource: bool = True) -> Declared | None:
    """Return the type of what a schema describes; a `resource` has a name and a kind whatever its schema says."""
    return declare(document, resource=resource)


def of_property(holder: Declared | None, name: str, part: Document) -> Declared | None:
    """Return the type of a field; one whose name no expression can write has a type all the same."""
    identifier = escape(name)
    if holder is not None and identifier is not None and identifier in holder.fields:
        return holder.fields[identifier]
    return declare(part, resource=bool(part.get(EMBEDDED)))


def of_element(holder: Declared | None, part: Document) -> Declared | None:
    """Return the type of what a list or a map holds."""
    if holder is not None and holder.element is not None:
        return holder.element
    return declare(part, resource=bool(part.get(EMBEDDED)))
