"""One revision of a replica set, and the ControllerRevision it is kept as."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lamina.core.plan import Create
from lamina.core.revision import Revision
from lamina.core.world import card, whole
from lamina.families.manifestwork.names import (
    GENERATION,
    HASH,
    OWNER,
    REPLICA_SET,
    REPLICA_SET_VERSION,
    REVISION,
    REVISION_VERSION,
    owner_key,
)
from lamina.families.manifestwork.template import identity, revision_name
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_FACTS = "facts"


class Kept(Struct, frozen=True, kw_only=True):
    """A revision, and the object it is kept as. `holds` is empty where what is kept there cannot be read."""

    revision: Revision
    holds: str
    obj: Obj

    @property
    def tag(self) -> str:
        return self.revision.tag

    @property
    def name(self) -> str:
        return self.revision.name

    @property
    def number(self) -> int:
        return self.revision.number

    @property
    def is_controlled(self) -> bool:
        return meta.controller_of(self.obj) is not None


def revisions_only(obj: Obj) -> Obj:
    """Keep all of a revision of ours, and of anybody else's only whose it is."""
    owner = meta.controller_of(obj)
    if OWNER not in meta.labels(obj) and (owner is None or owner["kind"] != REPLICA_SET.kind):
        return card(obj)
    return {**(found := whole(obj)), _FACTS: _kept(found)}


def kept(obj: Obj) -> Kept:
    """Return a ControllerRevision as the revision it keeps, whether or not somebody read it before."""
    known = obj.get(_FACTS)
    return known if isinstance(known, Kept) else _kept(whole(obj))


def _kept(obj: Obj) -> Kept:
    name, template = meta.name(obj), _template(obj.get("data"))
    number = obj.get("revision")
    return Kept(
        revision=Revision(
            number=number if isinstance(number, int) else 0,
            name=name,
            snapshot=template,
            tag=meta.labels(obj).get(HASH) or name.rpartition("-")[2],
            born=meta.metadata(obj).get("creationTimestamp") or "",
        ),
        holds=_held(template),
        obj=obj,
    )


def _template(data: Any) -> Obj:
    """Return the template in what somebody may have written by hand; an empty one where there is none."""
    spec = data.get("spec") if isinstance(data, dict) else None
    template = spec.get("manifestWorkTemplate") if isinstance(spec, dict) else None
    return template if isinstance(template, dict) else {}


def _held(template: Obj) -> str:
    try:
        return identity(template) if template else ""
    except (TypeError, ValueError):
        # What cannot be written down again is as good as lost.
        return ""


def revision_ref(owner: Obj, tag: str) -> Ref:
    name = revision_name(meta.name(owner), tag)
    return Ref(REVISION_VERSION, REVISION.kind, meta.namespace(owner), name)


def take(owner: Obj, template: Obj, tag: str, number: int) -> Create:
    """Return the keeping of a template as a revision of its owner."""
    reference = {**meta.owner_ref(owner, controller=True, blocks=True), "apiVersion": REPLICA_SET_VERSION}
    return Create(
        obj={
            "apiVersion": REVISION_VERSION,
            "kind": REVISION.kind,
            "metadata": {
                "name": revision_name(meta.name(owner), tag),
                "namespace": meta.namespace(owner),
                "labels": {OWNER: owner_key(meta.namespace(owner), meta.name(owner)), HASH: tag},
                "annotations": {GENERATION: str(meta.generation(owner))},
                "ownerReferences": [reference],
            },
            "data": {"spec": {"manifestWorkTemplate": template}},
            "revision": number,
        }
    )
