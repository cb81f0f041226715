"""The hub approves renewals of an agent's certificate, and nothing else."""

from datetime import UTC, datetime

import pytest

from lamina.control_plane.join import client_request
from lamina.core import csr
from lamina.core.model.plan import Replace
from lamina.core.model.queries import Answers
from lamina.families.manifestwork.placement.renewals import View, mismatch, plan
from lamina.objects.types import Made

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = "system:open-cluster-management:east"
USER, ALL = f"{GROUP}:lamina", "system:open-cluster-management:managed-clusters"
CLUSTER: Made = {"metadata": {"name": "east"}, "spec": {"hubAcceptsClient": True}}


def request(user: str = USER, groups: tuple[str, ...] = (GROUP, ALL), by: str = USER) -> Made:
    made = csr.request_client_certificate("east-", client_request(user, groups).pem, {})
    metadata = {"name": "east-1", "uid": "u", "resourceVersion": "1"}
    return {**made, "metadata": metadata, "spec": {**made["spec"], "username": by}}


def approved(asked: Made, cluster: Made | None = CLUSTER) -> bool:
    stages = plan(View(request=asked, cluster=cluster), Answers(), NOW).stages
    actions = [action for stage in stages for action in stage.actions]
    for action in actions:
        assert isinstance(action, Replace) and action.subresource == "approval"
        assert csr.is_approved(action.obj)
    return bool(actions)


def test_a_renewal_with_the_certificate_itself_is_approved() -> None:
    assert approved(request())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request("system:admin", by="system:admin"), "it is for the user system:admin"),
        (request(f"{GROUP}:"), "it is for the user"),
        (request("system:open-cluster-management:west:lamina"), "it is for the user"),
        (request(groups=(GROUP, "auditors")), "it is for the groups auditors, too"),
        (
            request(by="system:open-cluster-management:west:lamina"),
            "it was sent by system:open-cluster-management:west:lamina",
        ),
        (request(by=f"{GROUP}-2:lamina"), f"it was sent by {GROUP}-2:lamina"),
        ({**request(), "spec": {**request()["spec"], "request": "bm8="}}, "its subject cannot be read"),
        ({**request(), "spec": {**request()["spec"], "usages": ["server auth"]}}, "it is not for the signer"),
        (
            {**request(), "spec": {**request()["spec"], "signerName": "kubernetes.io/kubelet-serving"}},
            "it is not for the signer",
        ),
    ],
)
def test_a_request_for_anything_but_the_agent_of_the_cluster_is_not_approved(asked: Made, why: str) -> None:
    assert mismatch("east", asked).startswith(why)
    assert not approved(asked)


def test_a_first_request_waits_for_an_administrator() -> None:
    bootstrap = request(by="system:serviceaccount:open-cluster-management:agent-registration-bootstrap")

    assert mismatch("east", bootstrap) == ""
    assert not approved(bootstrap)


@pytest.mark.parametrize(
    "cluster",
    [
        None,
        {"metadata": {"name": "east"}, "spec": {"hubAcceptsClient": False}},
        {**CLUSTER, "metadata": {"name": "east", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_a_cluster_that_the_hub_does_not_accept_renews_nothing(cluster: Made | None) -> None:
    assert not approved(request(), cluster)
