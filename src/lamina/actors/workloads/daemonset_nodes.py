"""
Which nodes a daemon set is for, and the pod it makes for one.

A pod is made for one node by asking for it by name; the scheduler does the
rest. It puts up with everything that is only temporarily wrong with a node.
"""

from __future__ import annotations

from enum import Enum

from lamina.actors.placing import is_tolerated, is_wanted
from lamina.actors.workloads import pods
from lamina.actors.workloads.revisions import HASH_LABEL
from lamina.objects import meta
from lamina.objects.types import Made, Obj

GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"

_EXECUTE = ("not-ready", "unreachable")
_SCHEDULE = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_NETWORK = "network-unavailable"


class Standing(Enum):
    """What a node is to a daemon set."""

    RUNS = "a pod belongs there"
    KEEPS = "a pod that is there may stay"
    REFUSES = "no pod belongs there"


def standing(daemon_set: Obj, node: Obj) -> Standing:
    """Return what a node is to a daemon set, whatever runs there now."""
    spec: Obj = daemon_set["spec"]["template"]["spec"]
    if spec.get("nodeName", meta.name(node)) != meta.name(node) or not is_wanted(spec, node):
        return Standing.REFUSES
    tolerations = tolerations_of(spec)
    hindrances = {
        taint.get("effect")
        for taint in (node.get("spec") or {}).get("taints") or ()
        if not is_tolerated(taint, tolerations)
    }
    if "NoExecute" in hindrances:
        return Standing.REFUSES
    return Standing.KEEPS if "NoSchedule" in hindrances else Standing.RUNS


def tolerations_of(spec: Obj) -> list[Obj]:
    """Return what a daemon's pod puts up with: what its template says, and what passes."""
    always = [(name, "NoExecute") for name in _EXECUTE] + [(name, "NoSchedule") for name in _SCHEDULE]
    if spec.get("hostNetwork"):
        always.append((_NETWORK, "NoSchedule"))
    own = list(spec.get("tolerations") or ())
    for name, effect in always:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in own:
            own.append(toleration)
    return own


def make_pod(daemon_set: Obj, node: str, name: str, mark: str) -> Made:
    """Return the pod that a daemon set makes for a node, of the revision with that mark."""
    template: Obj = daemon_set["spec"]["template"]
    made = pods.from_template(daemon_set, template, name)
    labels = {**meta.labels(template), HASH_LABEL: mark}
    generation = generation_of(daemon_set)
    if generation is not None:
        labels[GENERATION_LABEL] = generation
    made = meta.with_metadata(made, labels=labels)
    spec: Made = {**made["spec"], "tolerations": tolerations_of(template["spec"])}
    return {**made, "spec": {**spec, "affinity": _bound_to(node, spec.get("affinity") or {})}}


def generation_of(daemon_set: Obj) -> str | None:
    """Return the number of a daemon set's template, where its annotation has one."""
    text = meta.annotations(daemon_set).get(GENERATION) or ""
    return text if text.isascii() and text.isdigit() else None


def _bound_to(node: str, affinity: Obj) -> Made:
    """Return an affinity to one node in place of any other that is required; what is preferred stays."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def node_of(pod: Obj) -> str | None:
    """Return the node a pod is on, or was made for."""
    spec: Obj = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if (field["key"], field["operator"], len(field["values"])) == ("metadata.name", "In", 1):
                return str(field["values"][0])
    return None


def is_updated(daemon_set: Obj, pod: Obj, mark: str) -> bool:
    """Say whether a pod was made of the newest template, by the mark or the number it carries."""
    labels = meta.labels(pod)
    generation = generation_of(daemon_set)
    return labels.get(HASH_LABEL) == mark or (
        generation is not None and labels.get(GENERATION_LABEL) == generation
    )
