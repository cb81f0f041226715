"""
The identity of a StatefulSet's pods: ordinals, names, volumes and claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lamina.actors.workloads import pods
from lamina.actors.workloads.revisions import HASH_LABEL
from lamina.objects import meta
from lamina.objects.types import Made, Obj

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_ORDINAL = re.compile(r"(.*)-([0-9]+)", re.DOTALL)


def ordinal_of(stateful_set: Obj, pod: Obj) -> int | None:
    """Return the ordinal of a pod by its name; None where the name is not one of the set's."""
    parts = _ORDINAL.fullmatch(meta.name(pod))
    if parts is None or parts[1] != meta.name(stateful_set):
        return None
    return int(parts[2])


def ordinals(stateful_set: Obj) -> range:
    """Return the ordinals of a set's pods."""
    spec = stateful_set["spec"]
    start = (spec.get("ordinals") or {}).get("start") or 0
    return range(start, start + replicas(stateful_set))


def replicas(stateful_set: Obj) -> int:
    wanted = stateful_set["spec"].get("replicas")
    return 1 if wanted is None else wanted


def pod_name(stateful_set: Obj, ordinal: int) -> str:
    return f"{meta.name(stateful_set)}-{ordinal}"


def revision_of(pod: Obj) -> str:
    """Return the name of a pod's revision."""
    return meta.labels(pod).get(HASH_LABEL) or ""


def make_pod(stateful_set: Obj, template: Obj, revision: str, ordinal: int) -> Made:
    """Return the pod of an ordinal, with the template of a revision."""
    name = pod_name(stateful_set, ordinal)
    made = pods.from_template(stateful_set, template, name)
    labels = {**identity(name, ordinal), HASH_LABEL: revision}
    made["metadata"]["labels"] = {**meta.labels(made), **labels}
    spec = {**made["spec"], "hostname": name}
    service = stateful_set["spec"].get("serviceName")
    if service:
        spec["subdomain"] = service
    else:
        spec.pop("subdomain", None)
    volumes = with_claims(stateful_set, spec.get("volumes") or (), ordinal)
    if volumes:
        spec["volumes"] = volumes
    return {**made, "spec": spec}


def identity(name: str, ordinal: int) -> Made:
    """Return the identity labels of a pod."""
    return {POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal)}


def with_claims(stateful_set: Obj, volumes: object, ordinal: int) -> list[Obj]:
    """Return the volumes of a pod: one for each claim template, and those of the pod template with other names."""
    assert isinstance(volumes, list | tuple)
    claimed = {
        template: {"name": template, "persistentVolumeClaim": {"claimName": name}}
        for template, name in claim_names(stateful_set, ordinal)
    }
    return [*claimed.values(), *(one for one in volumes if one["name"] not in claimed)]


def claim_names(stateful_set: Obj, ordinal: int) -> Iterator[tuple[str, str]]:
    """Yield the name of each claim template, and of its claim for one pod."""
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        name = meta.name(template)
        yield name, f"{name}-{meta.name(stateful_set)}-{ordinal}"


def make_claims(stateful_set: Obj, ordinal: int) -> list[Made]:
    """Return the claims of one pod."""
    made: list[Made] = []
    selected = (stateful_set["spec"]["selector"].get("matchLabels")) or {}
    names = dict(claim_names(stateful_set, ordinal))
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        metadata: Made = {
            **meta.metadata(template),
            "name": names[meta.name(template)],
            "namespace": meta.namespace(stateful_set),
            "labels": {**meta.labels(template), **selected},
        }
        metadata = {field: value for field, value in metadata.items() if value}
        claim: Made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        claim["spec"] = template.get("spec") or {}
        made.append(claim)
    return made


def has_identity(stateful_set: Obj, pod: Obj, ordinal: int) -> bool:
    """Say whether a pod has its identity label and the volumes of its claims."""
    if meta.labels(pod).get(POD_NAME_LABEL) != meta.name(pod):
        return False
    volumes = {one["name"]: one for one in pod["spec"].get("volumes") or ()}
    for template, name in claim_names(stateful_set, ordinal):
        source = (volumes.get(template) or {}).get("persistentVolumeClaim") or {}
        if source.get("claimName") != name:
            return False
    return True
