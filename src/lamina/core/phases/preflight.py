"""Preflight: what is wrong with the objects of a phase, found before any of them is written."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.core.phases.manifest import Manifest
from lamina.core.phases.owner import PhaseOwner
from lamina.objects import meta

_OWN = ("ownerReferences", "generateName", "uid", "resourceVersion", "generation")


def violations(owner: PhaseOwner, manifest: Manifest) -> Iterator[str]:
    """Yield what is wrong with a manifest as such; where its kind is not served, nothing else is known."""
    if not manifest.key.kind or not manifest.obj.get("apiVersion"):
        yield "apiVersion and kind are required"
        return
    if not manifest.key.name:
        yield "metadata.name is required"
        return
    if manifest.kind is None:
        version = manifest.obj["apiVersion"]
        yield (
            f'no matches for kind "{manifest.key.kind}" in version "{version}"; '
            "install its CustomResourceDefinition in an earlier phase"
        )
        return
    yield from _metadata(manifest)
    yield from _scope(owner, manifest)
    yield from manifest.problems


def _metadata(manifest: Manifest) -> Iterator[str]:
    for field in _OWN:
        if meta.metadata(manifest.obj).get(field):
            yield f"metadata.{field} must not be set"


def _scope(owner: PhaseOwner, manifest: Manifest) -> Iterator[str]:
    """Yield violations of scope; the kind decides, not whether a namespace is written."""
    assert manifest.kind is not None, "the scope of a kind that is not served is not checked"
    own, where = meta.namespace(owner.obj), manifest.key.namespace
    name = owner.conventions.owner
    if not manifest.kind.namespaced:
        if owner.confines and own:
            yield (
                f"{manifest.key.kind} is cluster-scoped; "
                f"an object of namespace {own} must not contain it: use {owner.conventions.cluster_owner}"
            )
    elif not where:
        yield f"metadata.namespace is required, because the {name} has no namespace"
    elif owner.confines and own and where != own:
        yield f"metadata.namespace must be {own}, the namespace of the {name}, and is {where}"
