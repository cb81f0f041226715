"""Workloads that become ready, or do not: C70 to C75. They need running pods."""

import json
import re
from typing import Any

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check

PODS = "simulated pods"


def _read(kubectl: Kubectl, kind: str, name: str) -> dict[str, Any]:
    return dict(json.loads(kubectl("get", kind, name, "-o", "json")))


def _conditions(found: dict[str, Any]) -> set[str]:
    return {f"{one['type']}={one['status']}/{one['reason']}" for one in found["status"]["conditions"]}


@pytest.fixture
def web(kubectl: Kubectl) -> str:
    """A Deployment of three pods that was rolled out; returns kubectl's output."""
    kubectl("create", "deployment", "web", "--image=nginx:1.25", "--replicas=3")
    return kubectl("rollout", "status", "deploy/web", "--timeout=120s")


@check("C70", needs=PODS)
def test_a_deployment_rolls_out(kubectl: Kubectl, web: str) -> None:
    deployment = _read(kubectl, "deploy", "web")
    [replicas] = json.loads(kubectl("get", "rs", "-l", "app=web", "-o", "json"))["items"]

    assert 'deployment "web" successfully rolled out' in web
    assert re.match(r"web +3/3 +3 +3", kubectl("get", "deploy", "web", "--no-headers"))
    assert replicas["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert replicas["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    assert re.fullmatch(r"[a-z0-9]{8,10}", replicas["metadata"]["labels"]["pod-template-hash"])
    expected = {"Available=True/MinimumReplicasAvailable", "Progressing=True/NewReplicaSetAvailable"}
    assert expected <= _conditions(deployment)
    assert deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    pods = kubectl("get", "pods", "-l", "app=web", "--no-headers").splitlines()
    assert all(re.match(r"web-[a-z0-9]+-[a-z0-9]{5} +1/1 +Running", line) for line in pods)


@check("C71", needs=PODS)
def test_a_bad_image_stalls_is_reported_and_can_be_undone(kubectl: Kubectl, web: str) -> None:
    kubectl("patch", "deploy", "web", "-p", json.dumps({"spec": {"progressDeadlineSeconds": 5}}))
    kubectl("set", "image", "deploy/web", "nginx=registry.invalid/bad:1")

    stalled = kubectl.attempt("rollout", "status", "deploy/web", "--timeout=120s")
    deployment = _read(kubectl, "deploy", "web")
    status = deployment["status"]
    assert "exceeded its progress deadline" in stalled.both
    assert "Progressing=False/ProgressDeadlineExceeded" in _conditions(deployment)
    assert (status["readyReplicas"], status["updatedReplicas"], status["unavailableReplicas"]) == (3, 1, 1)
    pods = kubectl("get", "pods", "-l", "app=web", "--no-headers")
    assert re.search("ImagePullBackOff|ErrImagePull", pods)

    assert "rolled back" in kubectl("rollout", "undo", "deploy/web")
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    assert re.search(r"^2 +<none>\n3 +<none>", kubectl("rollout", "history", "deploy/web"), re.MULTILINE)


@check("C72", needs=PODS)
def test_a_deployment_is_scaled_and_restarted(kubectl: Kubectl, web: str) -> None:
    def running() -> int:
        return kubectl("get", "pods", "-l", "app=web", "--no-headers").count("Running")

    assert kubectl("scale", "deploy/web", "--replicas=1") == "deployment.apps/web scaled\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    eventually_sync(running, lambda found: found == 1)

    assert kubectl("rollout", "restart", "deploy/web") == "deployment.apps/web restarted\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    annotations = _read(kubectl, "deploy", "web")["spec"]["template"]["metadata"]["annotations"]
    assert "kubectl.kubernetes.io/restartedAt" in annotations


@check("C73", needs=PODS)
def test_the_pods_of_a_stateful_set_are_ordered_and_keep_their_names(kubectl: Kubectl) -> None:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "pg"}]}}
    selector = {"matchLabels": {"app": "db"}}
    spec = {"replicas": 2, "serviceName": "db", "selector": selector, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    kubectl("apply", "-f", "-", given=json.dumps(manifest))
    kubectl("rollout", "status", "sts/db", "--timeout=120s")

    pods = json.loads(kubectl("get", "pods", "-l", "app=db", "-o", "json"))["items"]
    revisions = kubectl("get", "controllerrevisions", "-l", "app=db", "--no-headers").splitlines()
    status = _read(kubectl, "sts", "db")["status"]

    assert [one["metadata"]["name"] for one in pods] == ["db-0", "db-1"]
    assert pods[0]["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    assert len(revisions) == 1
    assert status["readyReplicas"] == 2
    assert re.fullmatch(r"db-[a-z0-9]+", status["currentRevision"])


@check("C74", needs=PODS)
def test_a_job_completes(kubectl: Kubectl) -> None:
    kubectl("create", "job", "once", "--image=busybox", "--", "true")

    assert "condition met" in kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=120s")
    assert re.match(r"once +Complete +1/1", kubectl("get", "job", "once", "--no-headers"))


@check("C75", needs=PODS)
def test_a_deployment_takes_its_replica_sets_and_pods_with_it(kubectl: Kubectl, web: str) -> None:
    deleted = kubectl("delete", "deploy", "web", "--cascade=foreground", "--timeout=120s")

    assert 'deployment.apps "web" deleted' in deleted
    left = kubectl.attempt("get", "rs,pods", "-l", "app=web", "--no-headers")
    assert left.both.startswith("No resources found")
