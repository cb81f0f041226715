"""A Service for each pod of a StatefulSet, with version 2 of the hooks: keys have the namespace."""

import lamina


@lamina.decorate(
    "apps/v1/statefulsets",
    attachments=["v1/services"],
    annotation_exists=["service-per-pod-port"],
    version="v2",
)
def service_per_pod_v2(object: lamina.Obj, attachments: lamina.Objects) -> lamina.Response:
    metadata, port = object["metadata"], int(object["metadata"]["annotations"]["service-per-pod-port"])
    names = [f"{metadata['name']}-{place}" for place in range(object["spec"].get("replicas", 1))]
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": {"statefulset.kubernetes.io/pod-name": name}, "ports": [{"port": port}]},
        }
        for name in names
    ]
    served = sorted(attachments["Service.v1"])
    return lamina.Response(children=services, annotations={"services": ",".join(served)})


@service_per_pod_v2.finalize
def leaving(attachments: lamina.Objects) -> lamina.Response:
    done = not attachments["Service.v1"]
    return lamina.Response(finalized=done, annotations={"services": None} if done else None)
