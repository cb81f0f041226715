"""The attributes of a request, as policies and webhooks match and evaluate them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from lamina.objects.types import Made, Obj
from lamina.server.identity import Identity
from lamina.server.kinds.kind import Kind


class Attributes(Struct, frozen=True, kw_only=True):
    """
    A write, as admission reviews it.

    `operation` is CREATE, UPDATE or DELETE. `new` and `old` are objects of the kind
    without apiVersion and kind, or None. `convert` converts an object to another
    version. For a subresource with its own type, such as a Scale, `body` is its group,
    version and kind.
    """

    operation: str
    kind: Kind
    namespace: str
    name: str
    subresource: str
    new: Obj | None
    old: Obj | None
    user: Identity
    dry_run: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    convert: Callable[[Obj, Kind], Obj] = lambda obj, kind: obj
    body: tuple[str, str, str] | None = None

    def converted(self, kind: Kind) -> tuple[Made | None, Made | None]:
        """Return the new and the old object in a version of the kind, with apiVersion and kind."""
        return self._converted(self.new, kind), self._converted(self.old, kind)

    def _converted(self, obj: Obj | None, kind: Kind) -> Made | None:
        if obj is None:
            return None
        if self.body is not None:
            return {**obj}
        result = self.convert(obj, kind) if kind is not self.kind else obj
        return {**result, "apiVersion": kind.api_version, "kind": kind.kind}

    def request(self, kind: Kind) -> Made:
        """Return the CEL variable `request`, for a policy that matches this version of the kind."""
        made: Made = {
            "kind": self._kind(kind),
            "resource": _resource(kind),
            "requestKind": self._kind(self.kind),
            "requestResource": _resource(self.kind),
            "name": self.name,
            "operation": self.operation,
            "userInfo": {"username": self.user.name, "groups": list(self.user.groups)},
            "dryRun": self.dry_run,
            "options": dict(self.options),
        }
        if self.user.uid:
            made["userInfo"]["uid"] = self.user.uid
        if self.subresource:
            made["subResource"] = made["requestSubResource"] = self.subresource
        if self.namespace:
            made["namespace"] = self.namespace
        return made

    def _kind(self, kind: Kind) -> Made:
        group, version, name = self.body or (kind.group, kind.version, kind.kind)
        return {"group": group, "version": version, "kind": name}


def _resource(kind: Kind) -> Made:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}
