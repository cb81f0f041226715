"""
Applies and deletes objects on a simulated cluster as kubectl does.

kubectl applies on the client side by default, and records the last applied
configuration in an annotation. An object that was last applied on the server side
is applied so again, and is refused where another manager owns a changed field.
"""

from __future__ import annotations

from msgspec import Struct

from lamina.actors.crd_finalizer import FINALIZER
from lamina.core.crd.kinds import DEFINITION, kinds_of
from lamina.core.model.queries import DryRun
from lamina.errors import Conflict, Forbidden
from lamina.merge.client_side import annotated, client_side
from lamina.merge.last_applied import ANNOTATION, KUBECTL
from lamina.merge.managed import APPLY
from lamina.objects import meta
from lamina.objects.diff import diff
from lamina.objects.kinds import Kind
from lamina.objects.paths import shown
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.object_rules import deep_copy

_FEW = 3
_IGNORED_PATHS = (
    ("metadata", "annotations", ANNOTATION),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)
_PROTECTED_NAMESPACES = ("default", "kube-public", "kube-system")
"""Namespaces that cannot be deleted."""


class ApplyOptions(Struct, frozen=True):
    """How manifests are applied: on the server or client side, by which field manager, and whether conflicts are forced."""

    server_side: bool = False
    manager: str = KUBECTL
    force: bool = False


def apply(cluster: SimulatedCluster, manifest: Obj, options: ApplyOptions) -> Made:
    """Apply a manifest; raises the error that kubectl would report."""
    desired, live = deep_copy(manifest), cluster.at(meta.ref(manifest))
    if options.server_side or (live is not None and _is_by_server(live, options.manager)):
        try:
            return cluster.apply(desired, manager=options.manager, force=options.force)
        except Conflict as conflict:
            conflict.hint = "take the fields over with --force-conflicts"
            raise
    # Unknown fields are refused either way.
    with_annotation = annotated(desired)
    cluster.answer(DryRun(obj=with_annotation, manager=options.manager, key=""))
    if live is None:
        return cluster.create(with_annotation)
    return cluster.replace(client_side(deep_copy(live), desired, cluster.schema(meta.ref(live))), "")


def _is_by_server(live: Obj, manager: str) -> bool:
    entries = live["metadata"].get("managedFields") or ()
    return any(
        (one.get("manager"), one.get("operation"), one.get("subresource") or "") == (manager, APPLY, "")
        for one in entries
    )


def describe_change(before: Obj | None, made: Obj) -> str:
    """Describe the change of an object."""
    if before is None:
        return "it is new"
    changed = [shown(one.path) for one in diff(before, made) if not _is_ignored(one.path)]
    if not changed:
        return "nothing of it changes"
    more = f" and {len(changed) - _FEW} more" if len(changed) > _FEW else ""
    return f"it is changed: {', '.join(changed[:_FEW])}{more}"


def _is_ignored(path: tuple[str | int, ...]) -> bool:
    return any(path[: len(one)] == one for one in _IGNORED_PATHS)


def delete(cluster: SimulatedCluster, ref: Ref) -> tuple[Kind, ...]:
    """Delete an object, and return the kinds whose objects are deleted with it."""
    if (ref.group, ref.kind) == ("", "Namespace") and ref.name in _PROTECTED_NAMESPACES:
        raise Forbidden(f'namespaces "{ref.name}" is forbidden: this namespace may not be deleted')
    if GroupKind(ref.group, ref.kind) != DEFINITION:
        cluster.delete(ref)
        return ()
    definition = cluster.get(ref)
    held = [one for one in meta.finalizers(definition) if one != FINALIZER]
    cluster.patch(ref, {"metadata": {"finalizers": [*held, FINALIZER]}})
    cluster.delete(ref)
    return tuple(kinds_of(definition))
