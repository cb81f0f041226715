"""An indexed job: one pod for each index, a few at a time, with the index in JOB_INDEX."""

import lamina


@lamina.sync("ctl.example.com/v1/indexedjobs", children={"v1/pods": "OnDelete"}, generate_selector=True)
def indexedjob(parent: lamina.Obj, children: lamina.Objects) -> lamina.Response:
    name, spec = parent["metadata"]["name"], parent["spec"]
    pods = children["Pod.v1"]
    phases = {one: pods[one].get("status", {}).get("phase", "Pending") for one in pods}
    ended = [one for one, phase in phases.items() if phase in ("Succeeded", "Failed")]

    room = spec.get("parallelism", 1)
    wanted = []
    for index in range(spec["completions"]):
        one = f"{name}-{index}"
        if one in ended:
            wanted.append(pod(parent, one, index))
        elif room > 0:
            room -= 1
            wanted.append(pod(parent, one, index))
    succeeded = sum(phase == "Succeeded" for phase in phases.values())
    done = len(ended) >= spec["completions"]
    status = {
        "succeeded": succeeded,
        "failed": len(ended) - succeeded,
        "conditions": [{"type": "Complete", "status": str(done)}],
    }
    return lamina.Response(children=wanted, status=status)


def pod(parent: lamina.Obj, name: str, index: int) -> lamina.Obj:
    template = parent["spec"]["template"]
    numbered = {"name": "JOB_INDEX", "value": str(index)}
    containers = [{**one, "env": [*one.get("env", []), numbered]} for one in template["spec"]["containers"]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": template.get("metadata", {}).get("labels", {})},
        "spec": {**template["spec"], "restartPolicy": "Never", "containers": containers},
    }
