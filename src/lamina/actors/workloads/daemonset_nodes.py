"""
The eligibility of nodes for a DaemonSet, and the pod for one node.

A pod has a node affinity to one node's name; the scheduler binds it. It
tolerates the taints of temporary node problems.
"""

from __future__ import annotations

from enum import Enum

from lamina.actors.node_fit import is_tolerated, matches_affinity
from lamina.actors.workloads import pods
from lamina.actors.workloads.revisions import HASH_LABEL
from lamina.objects import meta
from lamina.objects.types import Made, Obj

GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"

_EXECUTE = ("not-ready", "unreachable")
_SCHEDULE = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_NETWORK = "network-unavailable"


class Eligibility(Enum):
    """Whether a node runs a daemon pod."""

    SHOULD_RUN = "a pod should run there"
    MAY_STAY = "an existing pod may stay"
    MUST_NOT_RUN = "no pod may run there"


def eligibility(daemon_set: Obj, node: Obj) -> Eligibility:
    """Return whether a node runs a daemon pod, whatever runs there now."""
    spec: Obj = daemon_set["spec"]["template"]["spec"]
    if spec.get("nodeName", meta.name(node)) != meta.name(node) or not matches_affinity(spec, node):
        return Eligibility.MUST_NOT_RUN
    tolerations = tolerations_of(spec)
    untolerated = {
        taint.get("effect")
        for taint in (node.get("spec") or {}).get("taints") or ()
        if not is_tolerated(taint, tolerations)
    }
    if "NoExecute" in untolerated:
        return Eligibility.MUST_NOT_RUN
    return Eligibility.MAY_STAY if "NoSchedule" in untolerated else Eligibility.SHOULD_RUN


def tolerations_of(spec: Obj) -> list[Obj]:
    """Return the tolerations of a daemon pod: those of its template, and those for temporary problems."""
    always = [(name, "NoExecute") for name in _EXECUTE] + [(name, "NoSchedule") for name in _SCHEDULE]
    if spec.get("hostNetwork"):
        always.append((_NETWORK, "NoSchedule"))
    own = list(spec.get("tolerations") or ())
    for name, effect in always:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in own:
            own.append(toleration)
    return own


def make_pod(daemon_set: Obj, node: str, name: str, revision_hash: str) -> Made:
    """Return the pod of a DaemonSet for a node, of the revision with this hash."""
    template: Obj = daemon_set["spec"]["template"]
    made = pods.from_template(daemon_set, template, name)
    labels = {**meta.labels(template), HASH_LABEL: revision_hash}
    generation = generation_of(daemon_set)
    if generation is not None:
        labels[GENERATION_LABEL] = generation
    made = meta.with_metadata(made, labels=labels)
    spec: Made = {**made["spec"], "tolerations": tolerations_of(template["spec"])}
    return {**made, "spec": {**spec, "affinity": _with_node(node, spec.get("affinity") or {})}}


def generation_of(daemon_set: Obj) -> str | None:
    """Return the template generation of a DaemonSet, where its annotation has one."""
    text = meta.annotations(daemon_set).get(GENERATION) or ""
    return text if text.isascii() and text.isdigit() else None


def _with_node(node: str, affinity: Obj) -> Made:
    """Return an affinity that requires one node; preferences stay."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def node_of(pod: Obj) -> str | None:
    """Return the node of a pod, by its binding or its affinity."""
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


def is_updated(daemon_set: Obj, pod: Obj, revision_hash: str) -> bool:
    """Say whether a pod has the newest template, by its hash or its template generation."""
    labels = meta.labels(pod)
    generation = generation_of(daemon_set)
    return labels.get(HASH_LABEL) == revision_hash or (
        generation is not None and labels.get(GENERATION_LABEL) == generation
    )
