"""
Sends the model's requests to a real API, and parses the responses.

One namespace on one server; requests have leaves, responses are returned.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from tests.bed.wire import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Answer
from tests.conformance.model.leaves import Leaves, Path, to_body
from tests.conformance.model.world import Kind
from tests.conformance.transcript.kinds import GROUP
from tests.conformance.transcript.reach import Wire

TYPES = {
    "configmaps": {"apiVersion": "v1", "kind": "ConfigMap"},
    "widgets": {"apiVersion": f"{GROUP}/v1", "kind": "Widget"},
}


class Speaker:
    """A namespace of its own on a server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.namespace = f"m-{uuid4().hex[:10]}"
        made = self._send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        assert made.code == 201, made.text
        self._bases = {
            "configmaps": f"/api/v1/namespaces/{self.namespace}/configmaps",
            "widgets": f"/apis/{GROUP}/v1/namespaces/{self.namespace}/widgets",
        }

    def path(self, kind: Kind, name: str = "", below: str = "", **query: str) -> str:
        """Return the path of a collection, an object or a subresource; empty parameters are omitted."""
        path = "/".join(part for part in (self._bases[kind], name, below) if part)
        asked = "&".join(f"{key}={value}" for key, value in query.items() if value)
        return f"{path}?{asked}" if asked else path

    def get(self, kind: Kind, name: str) -> Answer:
        """Read one object."""
        return self._send("GET", self.path(kind, name))

    def page(self, kind: Kind, **query: str) -> Answer:
        """Read a collection, or a page of one."""
        return self._send("GET", self.path(kind, **query))

    def create(self, kind: Kind, name: str, leaves: Leaves, manager: str, *, dry: bool) -> Answer:
        """POST an object."""
        return self._send("POST", self.path(kind, **_options(manager, dry)), _object(kind, name, leaves))

    def generate(self, kind: Kind, prefix: str, leaves: Leaves, manager: str) -> Answer:
        """POST an object with a generateName."""
        body = _object(kind, "", leaves)
        body["metadata"] = {**body["metadata"], "generateName": prefix}
        return self._send("POST", self.path(kind, fieldManager=manager), body)

    def update(
        self, kind: Kind, name: str, leaves: Leaves, manager: str, *, version: str, dry: bool
    ) -> Answer:
        """PUT an object."""
        body = _object(kind, name, leaves)
        if version:
            body["metadata"]["resourceVersion"] = version
        return self._send("PUT", self.path(kind, name, **_options(manager, dry)), body)

    def merge(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[Path, Any],
        manager: str,
        *,
        below: str = "",
        version: str = "",
        strategic: bool = False,
        dry: bool = False,
    ) -> Answer:
        """PATCH with a merge patch, or a strategic one."""
        body = to_body(patch, nulls=True)
        if any(path[:2] == ("metadata", "finalizers") for path in patch):
            kept = sorted(
                path[2] for path, value in patch.items() if path[:2] == ("metadata", "finalizers") and value
            )
            body.setdefault("metadata", {})["finalizers"] = kept
        if version:
            body.setdefault("metadata", {})["resourceVersion"] = version
        path = self.path(kind, name, below, **_options(manager, dry))
        return self._send("PATCH", path, body, STRATEGIC if strategic else MERGE)

    def patch(self, kind: Kind, name: str, operations: Sequence[Any], manager: str) -> Answer:
        """PATCH with a JSON patch."""
        return self._send("PATCH", self.path(kind, name, fieldManager=manager), operations, JSON_PATCH)

    def apply(self, kind: Kind, name: str, leaves: Leaves, manager: str, *, force: bool, dry: bool) -> Answer:
        """PATCH by server-side apply."""
        options = _options(manager, dry) | ({"force": "true"} if force else {})
        return self._send("PATCH", self.path(kind, name, **options), _object(kind, name, leaves), APPLY)

    def delete(self, kind: Kind, name: str, options: Mapping[str, Any]) -> Answer:
        """DELETE an object."""
        return self._send("DELETE", self.path(kind, name), options or None)

    def delete_all(self, kind: Kind, **query: str) -> Answer:
        """DELETE a collection."""
        return self._send("DELETE", self.path(kind, **query))

    def watch(self, kind: Kind, count: int, **query: str) -> list[Any]:
        """Return the first events of a watch."""
        opened = self._wire.open(self.path(kind, watch="true", **query), {})
        assert not isinstance(opened, Answer), opened.text
        try:
            return [opened.line() for _ in range(count)]
        finally:
            opened.close()

    def _send(self, method: str, path: str, body: Any = None, content: str = JSON) -> Answer:
        headers = {"Content-Type": content} if body is not None else {}
        payload = json.dumps(body).encode() if body is not None else None
        return self._wire.call(method, path, headers, payload)


def _options(manager: str, dry: bool) -> dict[str, str]:
    return {"fieldManager": manager} | ({"dryRun": "All"} if dry else {})


def _object(kind: Kind, name: str, leaves: Leaves) -> dict[str, Any]:
    body = to_body(leaves)
    body.setdefault("metadata", {})["name"] = name
    return {**TYPES[kind], **body}
