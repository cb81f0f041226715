"""A hook: a Flock has `spec.size` pods, which are rolled out one by one."""

import lamina

ROLLING = lamina.Update("RollingRecreate", wait_for={"Ready": "True"}, progress_deadline=600)


@lamina.sync("example.com/v1/flocks", children={"v1/pods": ROLLING}, revision_fields=["spec.image"])
def flock(parent: lamina.Obj) -> lamina.Response:
    name, spec = parent["metadata"]["name"], parent["spec"]
    return lamina.Response(children=[bird(f"{name}-{place}", spec) for place in range(spec["size"])])


def bird(name: str, spec: lamina.Obj) -> lamina.Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": spec["selector"]["matchLabels"]},
        "spec": {"containers": [{"name": "bird", "image": spec["image"]}]},
    }
