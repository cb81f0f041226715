"""
What the record of a work lists, given what is done about its manifests.

An object is listed before it is created, and so is an owner reference before it is set,
and the labels and annotations of a manifest before they are written: a process that
stops in between leaves nothing behind that the record does not know.
"""

from __future__ import annotations

from collections.abc import Iterator

from lamina.core.model.plan import Action, Create, change
from lamina.families.manifestwork.agent.api import Resource
from lamina.families.manifestwork.agent.applied_manifestwork import (
    Entry,
    SetKeys,
    as_list,
    entries,
    keys_of,
    metadata_patches,
    new_record,
    set_keys,
)
from lamina.families.manifestwork.agent.manifest import Manifest, wanted_resources
from lamina.families.manifestwork.agent.manifest_step import ManifestOutcome, ManifestStep
from lamina.families.manifestwork.agent.ownership import is_ours
from lamina.families.manifestwork.agent.view import View
from lamina.families.manifestwork.agent.work_steps import WorkSteps
from lamina.objects import meta
from lamina.objects.types import Obj


def create(view: View) -> Create:
    """Return the creation of the record of a work."""
    keys = {one.resource: keys_of(one.obj) for one in view.manifests if _sets_keys(one)}
    return new_record(view.agent, view.work, keys)


def _sets_keys(manifest: Manifest) -> bool:
    """Say whether labels and annotations of a manifest are removed again when it drops them."""
    return manifest.kind is not None and manifest.config.strategy.type == "Update"


def comes_first(record: Obj, done: WorkSteps) -> bool:
    """Say whether an object, an owner reference or a key is about to be written that the record does not list."""
    known = {entry.resource: entry for entry in entries(record)}
    keys = set_keys(record)
    for step in done.steps:
        resource = step.manifest.resource
        if step.creates and (resource not in known or known[resource].uid):
            return True
        if _claims(step, record) and (
            resource not in known or known[resource].uid != meta.uid(step.live or {})
        ):
            # An agent that finds the object listed may set our owner reference together with its own.
            return True
        if (
            step.action is not None
            and _sets_keys(step.manifest)
            and not keys.get(resource, SetKeys()).covers(keys_of(step.manifest.obj))
        ):
            return True
    return False


def _claims(step: ManifestStep, record: Obj) -> bool:
    """Say whether our owner reference is about to be set on a live object."""
    writes = step.action is not None and not step.manifest.is_orphaned
    return writes and step.live is not None and not is_ours(step.live, record)


def changes(view: View, record: Obj, done: WorkSteps) -> Iterator[Action]:
    """Yield the patches that make the record list what exists, what is about to, and the keys that are set."""
    wanted = as_list(_entries(view, record, done))
    if wanted != ((record.get("status") or {}).get("appliedResources") or []):
        yield change(record, {"status": {"appliedResources": wanted}}, subresource="status")
    yield from metadata_patches(view.agent, view.work, record, dict(_keys(view, record, done)))


def _entries(view: View, record: Obj, done: WorkSteps) -> Iterator[Entry]:
    known = {entry.resource: entry for entry in entries(record)}
    seen: set[Resource] = set()
    for step in done.steps:
        manifest = step.manifest
        if manifest.kind is None or manifest.wrong:
            continue
        before = known.get(manifest.resource)
        seen.add(manifest.resource)
        if step.live is not None:
            yield Entry(resource=manifest.resource, version=manifest.version, uid=meta.uid(step.live))
        elif step.creates:
            yield Entry(resource=manifest.resource, version=manifest.version)
        elif before is not None and (step.found.unknown or not before.uid):
            yield before
    waiting = {one.entry.resource for one in done.stale if one.release.waits}
    wanted = wanted_resources(view.manifests, view.kinds)
    for resource, entry in known.items():
        if resource not in seen and (resource in waiting or resource in wanted):
            yield entry


def _keys(view: View, record: Obj, done: WorkSteps) -> Iterator[tuple[Resource, SetKeys]]:
    """Yield the keys that manifests set on objects; until those of before are removed, these as well."""
    known = set_keys(record)
    for step in done.steps:
        resource = step.manifest.resource
        keys = keys_of(step.manifest.obj) if _sets_keys(step.manifest) else SetKeys()
        is_settled = step.outcome is ManifestOutcome.DONE and step.live is not None
        yield resource, keys if is_settled else known.get(resource, SetKeys()) | keys
    left = {entry.resource for entry in _entries(view, record, done)}
    left -= {step.manifest.resource for step in done.steps}
    yield from ((resource, known[resource]) for resource in left if resource in known)
