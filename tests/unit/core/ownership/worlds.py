"""Worlds of owners and their dependents."""

from typing import Any

from lamina.core.model.queries import Absent, Answer, Answers, Found, Read
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, OwnerRef
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister

THING = Kind("ex.com/v1", "Thing", "things", True)
ROOT = Kind("ex.com/v1", "Root", "roots", False)
PART = Kind("v1", "Part", "parts", True)
KINDS = (THING, ROOT, PART)


def made(kind: Kind, name: str, namespace: str = "", **more: Any) -> Made:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **more.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}


def world(*objects: Obj) -> Lister:
    shelves = {kind.group_kind: Indexer(kind) for kind in KINDS}
    for obj in objects:
        shelves[next(kind.group_kind for kind in KINDS if kind.kind == obj["kind"])].put(obj)
    memory = Lister(DeletedUids())
    memory.set_indexers(Kinds(KINDS), shelves)
    return memory


def thing(name: str = "t", *, deleting: bool = False, **labels: str) -> Made:
    """Return an owner that selects these labels."""
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}
    return made(THING, name, "one", metadata=metadata, spec={"selector": {"matchLabels": labels}})


def part(
    name: str = "p",
    namespace: str = "one",
    *,
    owner: str = "",
    also: str = "",
    deleting: bool = False,
    **labels: str,
) -> Made:
    """Return a dependent that `owner` controls and `also` owns."""
    metadata: dict[str, Any] = {"labels": labels, "ownerReferences": []}
    if also:
        metadata["ownerReferences"].append(reference(also, controller=False))
    if owner:
        metadata["ownerReferences"].append(reference(owner))
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made(PART, name, namespace, metadata=metadata)


def reference(name: str, *, controller: bool = True, kind: Kind = THING) -> OwnerRef:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def names(objects: Any) -> list[str]:
    return [meta.name(one) for one in objects]


def read(owner: Obj, live: Obj | None) -> Answers:
    """Return the answer to a live read of an owner."""
    found: Answer = Found(live) if live is not None else Absent()
    return Answers({Read(meta.ref(owner)): found})
