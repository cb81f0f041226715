"""A set of pods with stable names, created and deleted in order, each with storage that outlives it."""

import lamina


@lamina.sync(
    "ctl.example.com/v1/catsets",
    children={
        "v1/pods": lamina.Update("RollingRecreate", wait_for={"Ready": "True"}, progress_deadline=10),
        "v1/persistentvolumeclaims": "OnDelete",
    },
    revision_fields=["spec.template"],
    revisions_kept=5,
)
def catset(parent: lamina.Obj, children: lamina.Objects, finalizing: bool) -> lamina.Response:
    name, spec = parent["metadata"]["name"], parent["spec"]
    pods, claims = children["Pod.v1"], children["PersistentVolumeClaim.v1"]
    wanted = [] if finalizing else [f"{name}-{place}" for place in range(spec["replicas"])]

    # Pods are created in order, each when those before it are ready, and deleted in reverse order.
    kept = list(pods) if finalizing else []
    for one in wanted:
        kept.append(one)
        if one not in pods or not is_ready(pods[one]):
            break
    kept += [one for one in wanted if one in pods and one not in kept]
    surplus = sorted((one for one in pods if one not in wanted), key=ordinal)
    kept = [one for one in kept if one not in surplus] + surplus[:-1]

    status = {"replicas": len(pods), "ready": sum(map(is_ready, pods.values()))}
    stored = [claim(parent, one) for one in {**dict.fromkeys(kept), **claims}] if spec.get("storage") else []
    return lamina.Response(
        children=[*(pod(parent, one) for one in kept), *stored],
        status=status,
        finalized=finalizing and not pods,
    )


catset = catset.finalize(catset)


def pod(parent: lamina.Obj, name: str) -> lamina.Obj:
    template, storage = parent["spec"]["template"], parent["spec"].get("storage")
    made = {**template["spec"], "hostname": name}
    if storage:
        made["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template.get("metadata", {}), "name": name},
        "spec": made,
    }


def claim(parent: lamina.Obj, name: str) -> lamina.Obj:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": parent["spec"]["selector"]["matchLabels"]},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": parent["spec"]["storage"]}},
        },
    }


def is_ready(pod: lamina.Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def ordinal(name: str) -> int:
    return int(name.rpartition("-")[2])
