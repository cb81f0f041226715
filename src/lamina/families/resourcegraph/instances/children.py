"""
The children of an instance as they are desired: what is rendered, with the metadata of the controller.

Each child names its instance, its node and its ApplySet in labels, and the revisions that it
was made from in annotations. A child of a generated kind is an instance of its own: there
the annotation of the revision would be a pin, so it gets those of its parent instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamina.families.resourcegraph import labels as keys
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.instances.applyset import applyset_id
from lamina.graph.graph import Node, NodeKind
from lamina.objects import meta
from lamina.objects.numbers import positive
from lamina.objects.types import Made, Obj, Ref


class Owner(Struct, frozen=True, kw_only=True):
    """An instance, and the revisions that its children are made from."""

    instance: Obj
    id: str
    """Its id as an ApplySet."""
    input_revision: int
    rgd_revision: int


class Desired(Struct, frozen=True, kw_only=True):
    """One child as it is desired; `index` is its place in a collection."""

    node: str
    owner: str
    """The uid of the instance."""
    ref: Ref
    body: Made
    index: int = 0


def owner(instance: Obj, input_revision: int, rgd_revision: int) -> Owner:
    """Return an instance as the owner of children that are made from these revisions."""
    return Owner(
        instance=instance, id=applyset_id(instance), input_revision=input_revision, rgd_revision=rgd_revision
    )


def desired(by: Owner, node: Node, rendered: Sequence[Obj]) -> tuple[Desired, ...]:
    """Return the children of a node, which have their namespaces."""
    marks, notes = _labels(by, node), _annotations(by, node)
    found: list[Desired] = []
    for index, one in enumerate(rendered):
        metadata = dict(meta.metadata(one))
        of_item: dict[str, str] = {}
        if node.kind is NodeKind.COLLECTION:
            of_item = {keys.COLLECTION_INDEX: str(index), keys.COLLECTION_SIZE: str(len(rendered))}
        metadata["labels"] = {**meta.labels(one), **marks, **of_item}
        metadata["annotations"] = {**meta.annotations(one), **notes}
        body: Made = {**one, "metadata": metadata}
        found.append(
            Desired(node=node.id, owner=meta.uid(by.instance), ref=meta.ref(body), body=body, index=index)
        )
    return tuple(found)


def _labels(by: Owner, node: Node) -> dict[str, str]:
    ref = meta.ref(by.instance)
    labels = {
        keys.OWNED: "true",
        keys.KRO_VERSION: keys.VERSION,
        keys.INSTANCE_ID: meta.uid(by.instance),
        keys.INSTANCE_NAME: label_value(ref.name),
        keys.INSTANCE_GROUP: label_value(ref.group),
        keys.INSTANCE_VERSION: ref.api_version.rpartition("/")[2],
        keys.INSTANCE_KIND: ref.kind,
        keys.NODE_ID: label_value(node.id),
        keys.MANAGED_BY: keys.KRO,
        keys.PART_OF: by.id,
    }
    if ref.namespace:
        labels[keys.INSTANCE_NAMESPACE] = ref.namespace
    return labels


def _annotations(by: Owner, node: Node) -> dict[str, str]:
    ref = meta.ref(by.instance)
    notes = {keys.APPLY_ORDER: str(node.wave), keys.INSTANCE_NAME: ref.name, keys.RESOURCE_ID: node.id}
    if ref.namespace:
        notes[keys.INSTANCE_NAMESPACE] = ref.namespace
    rgd, own = (
        (keys.PARENT_RGD_REVISION, keys.PARENT_INPUT_REVISION)
        if node.is_generated
        else (keys.RGD_REVISION, keys.INPUT_REVISION_STAMP)
    )
    notes[rgd], notes[own] = str(by.rgd_revision), str(by.input_revision)
    return notes


def node_of(child: Obj) -> str:
    """Return the id of the node that a live child was made by."""
    return meta.annotations(child).get(keys.RESOURCE_ID) or meta.labels(child).get(keys.NODE_ID) or ""


def made_by(node: str, children: Iterable[Obj]) -> tuple[Obj, ...]:
    """Return the live children that a node has made, those of a collection in its order."""
    return tuple(sorted((one for one in children if node_of(one) == node), key=_index_of))


def _index_of(child: Obj) -> int:
    """Return the place of a live child in its collection."""
    return positive(meta.labels(child).get(keys.COLLECTION_INDEX) or "")


def order_of(child: Obj) -> int:
    """Return the deletion wave of a live child; 0, which is the last, where it has none."""
    return _number(child, keys.APPLY_ORDER)


def input_stamp(child: Obj, owner: str) -> int:
    """Return the input revision that a live child was made from; 0 where it names none of the owner's."""
    if meta.labels(child).get(keys.INSTANCE_ID) != owner:
        # An earlier instance of the same name had numbers of its own.
        return 0
    return _number(child, keys.PARENT_INPUT_REVISION) or _number(child, keys.INPUT_REVISION_STAMP)


def rgd_stamp(child: Obj) -> int:
    """Return the revision that a live child was made from; 0 where it names none."""
    if keys.PARENT_INPUT_REVISION in meta.annotations(child):
        return _number(child, keys.PARENT_RGD_REVISION)
    return _number(child, keys.RGD_REVISION) if keys.INPUT_REVISION_STAMP in meta.annotations(child) else 0


def _number(child: Obj, annotation: str) -> int:
    return positive(meta.annotations(child).get(annotation) or "")
