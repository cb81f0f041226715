"""Client certificates are issued for approved requests, and for nothing else."""

from base64 import b64decode
from datetime import UTC, datetime

import pytest

from lamina.actors.csr_signing import gather, signing
from lamina.core import csr
from lamina.core.model.plan import Patch
from lamina.core.model.queries import Answers
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister

NOW = datetime(2026, 1, 1, tzinfo=UTC)
APPROVED: Made = {"type": "Approved", "status": "True", "reason": "Said", "message": ""}


def request(*conditions: Made, **spec: object) -> Made:
    made = csr.request_client_certificate("east-", b"pem", {})
    metadata = {"name": "east-1", "uid": "u", "resourceVersion": "1"}
    status = {"conditions": list(conditions)}
    return {**made, "metadata": metadata, "spec": {**made["spec"], **spec}, "status": status}


def world(obj: Made) -> Lister:
    kind = Kind(csr.REQUEST_VERSION, csr.REQUEST.kind, "certificatesigningrequests", False)
    indexer = Indexer(kind)
    indexer.put(obj)
    lister = Lister(DeletedUids())
    lister.set_indexers(Kinds((kind,)), {kind.group_kind: indexer})
    return lister


def test_an_approved_request_is_signed_for_as_long_as_it_asks() -> None:
    asked = request(APPROVED, expirationSeconds=600)
    assert gather(world(asked), meta.ref(asked)) is not None

    plan = signing(lambda pem, seconds: pem + b" for %d" % (seconds or 0)).plan(asked, Answers(), NOW)

    (action,) = plan.stages[0].actions
    assert isinstance(action, Patch) and action.subresource == "status"
    assert b64decode(action.patch["status"]["certificate"]) == b"pem for 600"


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request({**APPROVED, "type": "Denied"}),
        request(APPROVED, {**APPROVED, "type": "Failed"}),
        request(APPROVED, signerName="kubernetes.io/kubelet-serving"),
        request(APPROVED, usages=["server auth"]),
        {**request(APPROVED), "status": {"conditions": [APPROVED], "certificate": "eA=="}},
    ],
)
def test_anything_else_is_left_alone(asked: Made) -> None:
    assert gather(world(asked), meta.ref(asked)) is None
