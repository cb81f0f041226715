"""
The template: what of it makes a revision, and what a revision is called.

Two templates are the same revision when their canonical bytes are; the hash is
only a name, and two of them may have the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.objects.digest import canonical, safe, sha256
from lamina.objects.paths import drop, get
from lamina.objects.types import Made, Obj

_STAMPS = (("metadata", "creationTimestamp"), ("spec", "template", "metadata", "creationTimestamp"))
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_LONGEST_NAME = 223
_NONE = object()


def template_of(obj: Obj) -> Obj:
    """Return the template in a replica set, or in the data of one of its revisions."""
    return (obj.get("spec") or {}).get("manifestWorkTemplate") or {}


def plain(template: Obj) -> Made:
    """Return a template without what says nothing: when its manifests, or their pods, were made."""
    workload = template.get("workload")
    manifests = workload.get("manifests") if isinstance(workload, Mapping) else None
    if not isinstance(workload, Mapping) or not isinstance(manifests, list):
        return dict(template)
    kept = [_unstamped(manifest) for manifest in manifests]
    return {**template, "workload": {**workload, "manifests": kept}}


def _unstamped(manifest: Any) -> Any:
    if not isinstance(manifest, Mapping):
        return manifest
    for path in _STAMPS:
        if get(manifest, path, default=_NONE) is not _NONE:
            manifest = drop(manifest, path)
    return manifest


def canonical_template(template: Obj) -> bytes:
    """Return a template in the one form that all equal ones have."""
    return canonical(plain(template))


def identity(template: Obj) -> str:
    """Return what tells a template from every other."""
    return sha256(canonical_template(template))


def mark(template: Obj, collisions: int = 0) -> str:
    """Return the hash of a template; each collision leads to another."""
    data = canonical_template(template)
    if collisions:
        data += collisions.to_bytes(4, "little") + bytes(4)
    number = _FNV_OFFSET
    for byte in data:
        number = ((number ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return safe(str(number))


def revision_name(owner: str, tag: str) -> str:
    """Return what the revision with that mark is called."""
    return f"{owner.encode()[:_LONGEST_NAME].decode(errors='ignore')}-{tag}"


def reports_progress(template: Obj) -> bool:
    """Say whether somebody wrote a rule for when a work made of this template is progressing."""
    return any(
        rule.get("condition") == "Progressing"
        for config in template.get("manifestConfigs") or ()
        for rule in config.get("conditionRules") or ()
    )
