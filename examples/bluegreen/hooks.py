"""Two ReplicaSets, one of which gets the traffic: the Service switches to a new version when all its pods are ready."""

import hashlib
import json

import lamina

COLOURS = {"blue": "green", "green": "blue"}


@lamina.sync("ctl.example.com/v1/bluegreendeployments", children=["apps/v1/replicasets", "v1/services"])
def bluegreen(parent: lamina.Obj, children: lamina.Objects) -> lamina.Response:
    name, spec = parent["metadata"]["name"], parent["spec"]
    sets = children["ReplicaSet.apps/v1"]
    version = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:10]

    active = parent.get("status", {}).get("active", "blue")
    serving = sets.get(f"{name}-{active}")
    other = COLOURS[active]
    if serving is None or version_of(serving) == version:
        wanted = {active: (spec["replicas"], version)}
    else:
        wanted = {active: (spec["replicas"], version_of(serving)), other: (spec["replicas"], version)}
        coming = sets.get(f"{name}-{other}")
        if coming is not None and version_of(coming) == version and is_ready(coming, spec["replicas"]):
            active, wanted = other, {other: (spec["replicas"], version)}

    made = []
    for colour in COLOURS:
        replicas, which = wanted.get(colour, (0, ""))
        there = sets.get(f"{name}-{colour}")
        if which == version:
            made.append(replica_set(parent, colour, replicas, version, spec["template"]))
        elif there is not None:
            template = there["spec"]["template"]
            made.append(replica_set(parent, colour, replicas, version_of(there), template))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": spec["selector"]["matchLabels"]},
        "spec": {
            "selector": {**spec["selector"]["matchLabels"], "colour": active},
            "ports": spec["ports"],
        },
    }
    ready = sets.get(f"{name}-{active}", {}).get("status", {}).get("readyReplicas", 0)
    return lamina.Response(children=[*made, service], status={"active": active, "ready": ready})


def replica_set(
    parent: lamina.Obj, colour: str, replicas: int, version: str, template: lamina.Obj
) -> lamina.Obj:
    labels = {**parent["spec"]["selector"]["matchLabels"], "colour": colour}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{parent['metadata']['name']}-{colour}",
            "labels": labels,
            "annotations": {"ctl.example.com/version": version},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def version_of(replica_set: lamina.Obj) -> str:
    return replica_set["metadata"].get("annotations", {}).get("ctl.example.com/version", "")


def is_ready(replica_set: lamina.Obj, replicas: int) -> bool:
    status = replica_set.get("status", {})
    is_current = status.get("observedGeneration", 0) >= replica_set["metadata"].get("generation", 0)
    return is_current and status.get("readyReplicas", 0) >= replicas
