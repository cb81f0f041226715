"""Defaults, limits and subresources of writes: C24 to C31."""

import json

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import NAMESPACES, config_map, widget

DUPLICATED = '{"metadata":{"name":"fv"},"data":{"a":"1","a":"2"},"foo":1}'


def deployment(name: str) -> str:
    """Return a minimal Deployment."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template},
        }
    )


@check("C24")
def test_a_minimal_deployment_is_filled_in(kubectl: Kubectl) -> None:
    made = json.loads(kubectl("create", "-o", "json", "-f", "-", given=deployment("small")))
    spec, pod = made["spec"], made["spec"]["template"]["spec"]

    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert (pod["containers"][0]["imagePullPolicy"], pod["restartPolicy"]) == ("Always", "Always")
    assert made["metadata"]["generation"] >= 1


@check("C25")
def test_quantities_are_canonical_and_string_data_becomes_data(
    api: Api, kubectl: Kubectl, namespace: str
) -> None:
    asked = {"requests": {"cpu": "0.5", "memory": "1024Mi"}}
    spec = {"containers": [{"name": "c", "image": "x", "resources": asked}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "qp"}, "spec": spec}
    made = json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=json.dumps(pod)))
    secret = api.post(
        f"{NAMESPACES}/{namespace}/secrets?dryRun=All", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}
    ).json

    assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "1Gi"}}
    assert (secret["data"], secret["type"]) == ({"a": "Yg=="}, "Opaque")
    assert "stringData" not in secret


@check("C26")
def test_status_and_spec_are_written_apart_and_only_spec_counts_generations(api: Api, widgets: str) -> None:
    made = api.post(widgets, widget("st", size=1) | {"status": {"replicas": 7}}).json
    assert made["metadata"]["generation"] == 1
    assert "status" not in made

    path = f"{widgets}/st"
    spec = api.patch(path, {"spec": {"size": 2}, "status": {"replicas": 7}}).json
    assert (spec["metadata"]["generation"], spec.get("status")) == (2, None)

    status = api.patch(f"{path}/status", {"spec": {"size": 9}, "status": {"replicas": 3}}).json
    assert (status["metadata"]["generation"], status["spec"]["size"]) == (2, 2)
    assert status["status"] == {"replicas": 3}

    label = api.patch(path, {"metadata": {"labels": {"x": "y"}}}).json
    assert label["metadata"]["generation"] == 2


@check("C27")
def test_scale_is_read_and_written_through_its_subresource(api: Api, kubectl: Kubectl, widgets: str) -> None:
    api.post(widgets, widget("st", size=1))
    api.patch(f"{widgets}/st/status", {"status": {"replicas": 3}})
    kubectl("create", "-f", "-", given=deployment("small"))

    assert "/st scaled" in kubectl("scale", "widget/st", "--replicas=4")
    scale = api.get(f"{widgets}/st/scale").json
    refused = kubectl.attempt("scale", "deploy/small", "--replicas=0", "--current-replicas=5")

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"]["replicas"] == 3
    assert "expected replicas to be 5" in refused.both.lower()
    assert kubectl("get", "widget", "st", "-o", "jsonpath={.spec.replicas}") == "4"


@check("C28")
def test_a_dry_run_stores_nothing(api: Api, kubectl: Kubectl, configmaps: str) -> None:
    api.post(configmaps, config_map("kept"))

    assert kubectl("create", "cm", "dry", "--dry-run=server") == "configmap/dry created (server dry run)\n"
    assert api.get(f"{configmaps}/dry").code == 404
    refused = api.post(f"{configmaps}?dryRun=bad", config_map("dry")).json
    assert (refused["code"], refused["details"]["kind"]) == (422, "CreateOptions")
    assert api.delete(f"{configmaps}/kept?dryRun=All").code == 200
    assert api.get(f"{configmaps}/kept").code == 200


@check("C29")
def test_unknown_and_duplicate_fields_are_refused_warned_of_or_ignored(api: Api, configmaps: str) -> None:
    strict = api.post(f"{configmaps}?fieldValidation=Strict", DUPLICATED).json
    warned = api.post(f"{configmaps}?dryRun=All", DUPLICATED)
    ignored = api.post(f"{configmaps}?dryRun=All&fieldValidation=Ignore", DUPLICATED)

    assert strict["code"] == 400
    assert 'strict decoding error: duplicate field "data.a", unknown field "foo"' in strict["message"]
    assert warned.warnings == ('299 - "duplicate field \\"data.a\\""', '299 - "unknown field \\"foo\\""')
    assert (ignored.code, ignored.warnings) == (201, ())
    assert api.post(f"{configmaps}?fieldValidation=Bogus", DUPLICATED).code == 422


@check("C30")
def test_unknown_fields_of_custom_objects_are_refused_or_pruned_with_a_warning(
    api: Api, kubectl: Kubectl, widgets: str
) -> None:
    body = widget("fvw", size=1, bogus=1)
    strict = api.post(f"{widgets}?fieldValidation=Strict", body).json
    warned = api.post(f"{widgets}?dryRun=All", body)
    applied = kubectl.attempt("apply", "-f", "-", given=json.dumps(body))

    assert strict["code"] == 400
    assert 'strict decoding error: unknown field "spec.bogus"' in strict["message"]
    assert warned.warnings == ('299 - "unknown field \\"spec.bogus\\""',)
    assert "bogus" not in warned.json["spec"]
    assert "Error from server (BadRequest)" in applied.err
    assert 'unknown field "spec.bogus"' in applied.err


@check("C31")
def test_a_body_over_the_limit_is_too_large(api: Api, configmaps: str) -> None:
    refused = api.post(configmaps, config_map("big", x="a" * 3_200_000)).json

    assert (refused["code"], refused["reason"]) == (413, "RequestEntityTooLarge")
    assert refused["message"] == "Request entity too large: limit is 3145728"
