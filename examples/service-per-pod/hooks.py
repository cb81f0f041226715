"""A Service for each pod of a StatefulSet with an annotation, and the label on its pods that the Services select."""

import lamina


@lamina.decorate(
    "apps/v1/statefulsets",
    attachments=["v1/services"],
    annotation_exists=["service-per-pod-label", "service-per-pod-ports"],
)
def service_per_pod(object: lamina.Obj) -> list[lamina.Obj]:
    annotations, spec = object["metadata"]["annotations"], object["spec"]
    label = annotations["service-per-pod-label"]
    pairs = [one.split(":") for one in annotations["service-per-pod-ports"].split(",")]
    ports = [{"name": f"port-{port}", "port": int(port), "targetPort": int(to)} for port, to in pairs]
    names = [f"{object['metadata']['name']}-{place}" for place in range(spec.get("replicas", 1))]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": {label: name}, "ports": ports},
        }
        for name in names
    ]


@service_per_pod.finalize
def leaving(attachments: lamina.Objects) -> bool:
    """Called when the StatefulSet is deleted or no longer selected; finalized when no Service is left."""
    return not attachments["Service.v1"]


@lamina.decorate("v1/pods", label_exists=["app"], annotation_exists=["pod-name-label"])
def pod_name_label(object: lamina.Obj) -> lamina.Response:
    metadata = object["metadata"]
    return lamina.Response(labels={metadata["annotations"]["pod-name-label"]: metadata["name"]})
