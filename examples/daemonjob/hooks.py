"""A task that runs once on every node: a DaemonSet that completes."""

import lamina


@lamina.sync("ctl.example.com/v1/daemonjobs", children=["apps/v1/daemonsets"], generate_selector=True)
def daemonjob(parent: lamina.Obj, children: lamina.Objects) -> lamina.Response:
    name = parent["metadata"]["name"]
    before = parent.get("status", {})
    if is_complete(before):
        return lamina.Response(status=before)
    there = children["DaemonSet.apps/v1"].get(name, {})
    counts = there.get("status", {})
    scheduled, done = counts.get("desiredNumberScheduled", 0), counts.get("numberReady", 0)
    complete = scheduled > 0 and done == scheduled
    status = {
        "nodes": scheduled,
        "succeeded": done,
        "conditions": [{"type": "Complete", "status": str(complete)}],
    }
    return lamina.Response(children=[daemon_set(parent)], status=status)


def is_complete(status: lamina.Obj) -> bool:
    conditions = status.get("conditions", [])
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


def daemon_set(parent: lamina.Obj) -> lamina.Obj:
    """The task is an init container; the pod's only container then waits until the pod is deleted."""
    name, template = parent["metadata"]["name"], parent["spec"]["template"]
    labels = {**template.get("metadata", {}).get("labels", {}), "daemonjob": name}
    waiting = [{"name": "done", "image": "registry.k8s.io/pause:3.10"}]
    work = {**template["spec"], "initContainers": template["spec"]["containers"], "containers": waiting}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"daemonjob": name}},
            "template": {"metadata": {"labels": labels}, "spec": work},
        },
    }
