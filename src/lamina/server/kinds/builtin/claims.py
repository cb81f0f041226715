"""Volumes and claims: fields that are set on create and update."""

from __future__ import annotations

from lamina.objects.types import Made, Obj


def volume_created(volume: Made, stamp: str) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": stamp}
    _protect(volume, "kubernetes.io/pv-protection")


def volume_status(volume: Made, old: Obj, stamp: str) -> None:
    status, before = volume["status"], old.get("status") or {}
    since, now = before.get("lastPhaseTransitionTime"), status.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if now is None and since is not None:
            status["lastPhaseTransitionTime"] = since
    elif now is None or now == since:
        status["lastPhaseTransitionTime"] = stamp


def claim_created(claim: Made, stamp: str) -> None:
    claim["status"] = {"phase": "Pending"}
    _protect(claim, "kubernetes.io/pvc-protection")
    _sync_sources(claim["spec"], {})


def claim_updated(claim: Made, old: Obj, stamp: str) -> None:
    _sync_sources(claim["spec"], old["spec"])


def _sync_sources(spec: Made, before: Obj) -> None:
    """Keep `dataSource` and `dataSourceRef` in sync."""
    is_new = "dataSource" not in before and "dataSourceRef" not in before
    reference, source = spec.get("dataSourceRef"), spec.get("dataSource")
    if reference is not None and reference.get("namespace") and "dataSourceRef" not in before:
        del spec["dataSourceRef"]
        reference = None
    if source is not None and is_new and reference is None:
        # dataSource allows only two kinds and drops others; dataSourceRef allows all.
        named = source.get("kind"), source.get("apiGroup") or ""
        if named not in (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io")):
            del spec["dataSource"]
            return
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}


def _protect(obj: Made, finalizer: str) -> None:
    """Add the protection finalizer."""
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)
