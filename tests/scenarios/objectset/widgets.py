"""A kind of the scenarios themselves, whose objects have conditions and other fields of a status."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from lamina.client.client import Client
from lamina.core.crd.kinds import is_established
from lamina.errors import NotFound
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually

VERSION = "v1"
_OPEN: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str, kind: str = "Widget", *, namespaced: bool = True, spec: Obj = _OPEN) -> Made:
    """Return the definition of a kind with a status; `spec` is the schema of its spec."""
    plural = f"{kind.lower()}s"
    schema: Made = {"type": "object", "properties": {"spec": dict(spec), "status": dict(_OPEN)}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {
                "kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower(),
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }  # fmt: skip


def definition_ref(group: str, kind: str = "Widget") -> Ref:
    return Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", f"{kind.lower()}s.{group}")


def widget(group: str, name: str, kind: str = "Widget", **fields: object) -> Made:
    """Return the manifest of an object of the kind; `labels` and `annotations` are those of its metadata."""
    metadata: Made = {"name": name}
    metadata |= {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    return {"apiVersion": f"{group}/{VERSION}", "kind": kind, "metadata": metadata, **fields}


def probe(group: str, *probes: Obj, kind: str = "Widget", **selector: object) -> Made:
    """Return an entry of availabilityProbes for the kind."""
    return {"selector": {"kind": {"group": group, "kind": kind}, **selector}, "probes": list(probes)}


async def install(client: Client, made: Obj) -> None:
    """Create a definition, and wait until its kind is served."""
    await client.create(made)
    ref = meta.ref(made)
    await eventually(lambda: client.get(ref), is_established)


@asynccontextmanager
async def served_widgets(client: Client) -> AsyncIterator[str]:
    """Serve the kind Widget until the end of the block, in a group of its own, which is returned."""
    group = f"g{uuid4().hex[:8]}.example.com"
    await install(client, definition(group))
    try:
        yield group
    finally:
        with suppress(NotFound):
            await client.delete(definition_ref(group))
