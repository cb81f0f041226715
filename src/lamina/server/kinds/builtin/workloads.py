"""Workloads with pod templates: fields that are set on create and update."""

from __future__ import annotations

from typing import Any, Final

from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.pods import drop_unallocated


def _template_of(obj: Obj) -> Made | None:
    spec: Obj = obj.get("spec") or {}
    job: Obj = spec.get("jobTemplate") or {}
    template: Made | None = (job.get("spec") or spec).get("template") or obj.get("template")
    return template


def workload_created(workload: Made, stamp: str) -> None:
    if template := _template_of(workload):
        drop_unallocated(template["spec"])


def workload_updated(workload: Made, old: Obj, stamp: str) -> None:
    workload_created(workload, stamp)


_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def daemon_set_created(daemon_set: Made, stamp: str) -> None:
    workload_created(daemon_set, stamp)
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(max(1, _number(annotations.get(_TEMPLATE_GENERATION))))


def daemon_set_updated(daemon_set: Made, old: Obj, stamp: str) -> None:
    workload_created(daemon_set, stamp)
    number = _number((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    if daemon_set["spec"]["template"] != old["spec"]["template"]:
        number += 1
    daemon_set["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(number)


def _number(text: Any) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0


def stateful_set_written(stateful_set: Made, old: Obj | str, stamp: str = "") -> None:
    workload_created(stateful_set, stamp)
    # The feature gate is off, so the field is dropped.
    (stateful_set["spec"]["updateStrategy"].get("rollingUpdate") or {}).pop("maxUnavailable", None)


def job_created(job: Made, stamp: str) -> None:
    workload_created(job, stamp)
    spec, metadata = job["spec"], job["metadata"]
    inner = spec["template"]["metadata"]
    borrowed = metadata.get("labels") is inner.get("labels")
    if not spec["manualSelector"]:
        labels = inner.setdefault("labels", {})
        for name in ("job-name", "batch.kubernetes.io/job-name"):
            labels.setdefault(name, metadata.get("name", ""))
        for name in ("controller-uid", "batch.kubernetes.io/controller-uid"):
            labels.setdefault(name, metadata["uid"])
        selected = spec.setdefault("selector", {}).setdefault("matchLabels", {})
        selected.setdefault("batch.kubernetes.io/controller-uid", metadata["uid"])
    if borrowed and inner.get("labels"):
        metadata["labels"] = dict(inner["labels"])


def job_updated(job: Made, old: Obj, stamp: str) -> None:
    workload_created(job, stamp)
    if job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(job["metadata"]["labels"])


def borrow_labels(workload: Made, old: Obj, stamp: str) -> None:
    """Set the labels of the template on a job or replication controller whose labels a status write omitted."""
    template = workload["spec"].get("template") or {"metadata": {}}
    if not workload["metadata"].get("labels") and (labels := template["metadata"].get("labels")):
        workload["metadata"]["labels"] = dict(labels)
