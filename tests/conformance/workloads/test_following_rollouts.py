"""kubectl rollout status: its output, and when it ends."""

import json
import re
from uuid import uuid4

import pytest

from tests.bed.kubectl import Kubectl
from tests.bed.wire import JSON
from tests.conformance.transcript.play import Stage

_WAITING = re.compile(
    r'Waiting for deployment "web" rollout to finish: '
    r"(\d out of \d new replicas have been updated"
    r"|\d old replicas are pending termination"
    r"|\d of \d updated replicas are available)\.\.\."
    r"|Waiting for deployment spec update to be observed\.\.\."
)


@pytest.fixture
def kubectl(stage: Stage) -> Kubectl:
    """The kubectl of the fixture, with a namespace of its own."""
    assert stage.kubectl is not None
    namespace = f"t-{uuid4().hex[:10]}"
    body = json.dumps({"metadata": {"name": namespace}}).encode()
    made = stage.wire.call("POST", "/api/v1/namespaces", {"Content-Type": JSON}, body)
    assert made.code == 201, made.text
    return stage.kubectl.within(namespace)


def test_rollout_status_says_what_it_waits_for_until_it_is_done(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    first = kubectl("rollout", "status", "deploy/web", "--timeout=120s").splitlines()
    kubectl("set", "image", "deploy/web", "nginx=nginx:2")
    second = kubectl("rollout", "status", "deploy/web", "--timeout=120s").splitlines()

    for said in (first, second):
        assert said[-1] == 'deployment "web" successfully rolled out'
        assert all(_WAITING.fullmatch(line) for line in said[:-1]), said


def test_rollout_status_gives_up_when_it_was_told_to(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=bad.invalid/bad")

    given_up = kubectl.attempt("rollout", "status", "deploy/web", "--timeout=3s")

    assert given_up.code == 1
    assert given_up.err == "error: timed out waiting for the condition\n"


def test_waiting_for_a_deployment_ends_when_it_is_available(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")

    said = kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=120s")

    assert said == "deployment.apps/web condition met\n"
