"""The resource that a request names."""

from __future__ import annotations

from typing import NamedTuple

from lamina.server.kinds.kind import Kind, Subresource
from lamina.server.storage.store import Key


class Target(NamedTuple):
    """A kind, namespace, name and subresource; `below` is the subresource's description, if the kind has it."""

    kind: Kind
    namespace: str
    name: str
    subresource: str = ""
    below: Subresource | None = None

    @property
    def key(self) -> Key:
        return Key(self.kind.bucket, self.namespace, self.name)
