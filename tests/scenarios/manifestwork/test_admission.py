"""Writes that a server sends to our admission webhook, which is served and registered as any other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from lamina.admission.ca import Secrets
from lamina.admission.registration import WebhookEndpoint
from lamina.admission.webhook_server import serving
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.errors import ApiError, BadRequest, InternalError, NotFound
from lamina.families.manifestwork.admission import CONFIGURATION, checks
from lamina.families.manifestwork.labels import REPLICA_SET_VERSION, WORK_VERSION
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.stage import TIMEOUT, Stage, progressive
from tests.scenarios.story import free_port
from tests.unit.families.manifestwork.fleet import OK1, OK2, template

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRETS = Secrets(namespace="default")
REGISTERED = Ref("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", CONFIGURATION)


class Judge:
    """The webhook that answers the server, and whether it is there."""

    def __init__(self, client: Client) -> None:
        self.client, self.port = client, free_port()
        self._serving: Any = None

    async def come(self) -> None:
        way = WebhookEndpoint(url=f"https://127.0.0.1:{self.port}/some/where")
        self._serving = serving(checks(), self.client, way, ("127.0.0.1", self.port), SECRETS, log)
        await self._serving.__aenter__()

    async def leave(self) -> None:
        if self._serving is not None:
            await self._serving.__aexit__(None, None, None)
            self._serving = None


@pytest_asyncio.fixture(loop_scope="session")
async def judge(served: tuple[Client, Path]) -> AsyncIterator[Judge]:
    """A webhook that stands beside the server under test, once the server asks it."""
    judge = Judge(served[0])
    await judge.come()
    try:
        await _asked(judge.client)
        yield judge
    finally:
        await judge.leave()
        for ref in (REGISTERED, SECRETS.ref):
            with suppress(NotFound):
                await judge.client.delete(ref)
        await _not_asked(judge.client)


async def _asked(client: Client) -> None:
    """Wait until the server calls the webhook: it watches registrations like every other object."""

    async def is_refused() -> bool:
        try:
            await client.create(work("default", "absent", {}), dry_run=True)
        except BadRequest:
            return True
        return False

    await eventually(is_refused, seconds=TIMEOUT, interval=0.05)


async def _not_asked(client: Client) -> None:
    async def is_accepted() -> bool:
        try:
            await client.create(work("default", "absent", {}), dry_run=True)
        except ApiError:
            return False
        return True

    await eventually(is_accepted, seconds=TIMEOUT, interval=0.05)


def work(namespace: str, name: str, spec: Made) -> Made:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": WORK_VERSION, "kind": "ManifestWork", "metadata": metadata, "spec": spec}


@check("MW-59")
async def test_a_template_that_is_too_much_is_refused_and_what_runs_stays(stage: Stage, judge: Judge) -> None:
    async with stage.running():
        await stage.given(OK1)
        before = await stage.until_done()

        heavy = template("2")
        heavy["workload"]["manifests"][0]["data"]["ballast"] = "x" * 1024 * 1024
        with pytest.raises(BadRequest) as refused:
            await stage.want(heavy)
        after = await stage.settled()

    denied = 'admission webhook "manifests.work.open-cluster-management.io" denied the request: '
    assert str(refused.value).startswith(f"{denied}the size of manifests is 10")
    assert str(refused.value).endswith("bytes which exceeds the 512000 limit")
    assert refused.value.code == 400
    assert meta.generation(after.app) == meta.generation(before.app)
    assert (after.generations, after.history, after.row) == (before.generations, before.history, before.row)


async def test_a_work_is_judged_by_what_it_holds(stage: Stage, judge: Judge) -> None:
    await stage.given_namespace(stage.namespace)
    manifest = OK1["workload"]["manifests"][0]
    twice = work(stage.namespace, "twice", {"workload": {"manifests": [manifest, manifest]}})
    with pytest.raises(
        BadRequest, match="duplicate manifest for resource default/cm1 with resource type v1.ConfigMap"
    ):
        await stage.create(twice)

    made = await stage.create(work(stage.namespace, "once", {"workload": {"manifests": [manifest]}}))
    with pytest.raises(BadRequest, match="Workload manifests should not be empty"):
        await stage.client.patch(meta.ref(made), {"spec": {"workload": {"manifests": []}}})


async def test_what_will_not_do_what_it_seems_to_is_warned_of(
    stage: Stage, judge: Judge, kubeconfig: Path
) -> None:
    await stage.given_namespace(stage.namespace)
    refs = [{"name": "place", "rolloutStrategy": progressive(progressDeadline="None")}]
    made = {
        "apiVersion": REPLICA_SET_VERSION,
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "warned", "namespace": stage.namespace},
        "spec": {"placementRefs": refs, "manifestWorkTemplate": OK1},
    }
    transport = HttpTransport(read_kubeconfig(kubeconfig))
    try:
        answer = await transport.request(
            "POST",
            f"/apis/{REPLICA_SET_VERSION}/namespaces/{stage.namespace}/manifestworkreplicasets",
            query=(("dryRun", "All"),),
            headers={"content-type": "application/json"},
            body=orjson.dumps(made),
        )
        await answer.read()
    finally:
        await transport.close()

    assert answer.status == 201
    assert "failureStrategy AbortAll does nothing while progressDeadline is None" in answer.headers["warning"]


async def test_without_a_webhook_works_go_out_and_none_acts_in_anothers_name(
    stage: Stage, judge: Judge
) -> None:
    await judge.leave()
    async with stage.running():
        await stage.given(OK1, 2)
        await stage.until_done()
        await stage.want(OK2)
        await stage.until_done()

    subject = {"type": "ServiceAccount", "serviceAccount": {"namespace": "ops", "name": "robot"}}
    acting = {"workload": OK1["workload"], "executor": {"subject": subject}}
    with pytest.raises(
        InternalError, match='failed calling webhook "executors.work.open-cluster-management.io"'
    ):
        await stage.create(work(stage.cluster("c1"), "acting", acting))

    await judge.come()
    await stage.create(work(stage.cluster("c1"), "acting", acting))


async def test_a_restarted_process_is_trusted_by_the_authority_that_was_kept(
    stage: Stage, judge: Judge
) -> None:
    def bundle(found: Made) -> str:
        return str(found["webhooks"][0]["clientConfig"]["caBundle"])

    before = bundle(await stage.client.get(REGISTERED))
    await judge.leave()
    await judge.come()

    assert bundle(await stage.client.get(REGISTERED)) == before
    with pytest.raises(BadRequest):
        await stage.create(work(stage.namespace, "nothing", {}))


@pytest.mark.skipif(chosen_server() != "real", reason="the embedded server has no authorization")
async def test_a_user_who_may_not_act_as_an_executor_writes_no_work_for_it(
    stage: Stage, judge: Judge, kubeconfig: Path
) -> None:
    await stage.given_namespace(stage.namespace)
    user, group = f"ada-{stage.id}", "rbac.authorization.k8s.io"
    rules = [
        {
            "apiGroups": ["work.open-cluster-management.io"],
            "resources": ["manifestworks"],
            "verbs": ["create"],
        }
    ]
    named = {"name": "writer", "namespace": stage.namespace}
    role = await stage.create(
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": named, "rules": rules}
    )
    await stage.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": named,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "writer"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }
    )
    subject = {"type": "ServiceAccount", "serviceAccount": {"namespace": "ops", "name": "robot"}}
    acting = work(stage.namespace, "acting", {"workload": OK1["workload"], "executor": {"subject": subject}})
    transport = HttpTransport(read_kubeconfig(kubeconfig))

    async def written(*answers: int) -> tuple[int, str]:
        """Write until the response has one of these codes: a role is in force a moment after it is written."""

        async def write() -> tuple[int, str]:
            answer = await transport.request(
                "POST",
                f"/apis/{WORK_VERSION}/namespaces/{stage.namespace}/manifestworks",
                query=(("dryRun", "All"),),
                headers={"content-type": "application/json", "impersonate-user": user},
                body=orjson.dumps(acting),
            )
            return answer.status, str(orjson.loads(await answer.read()).get("message"))

        return await eventually(write, lambda answer: answer[0] in answers, interval=0.05)

    try:
        async with asyncio.timeout(TIMEOUT):
            assert await written(201, 400) == (
                400,
                'admission webhook "executors.work.open-cluster-management.io" denied the request: '
                f"user {user} cannot manipulate the Manifestwork with executor ops/robot in namespace {stage.namespace}",
            )
        more = {**rules[0], "verbs": ["execute-as"], "resourceNames": ["system:serviceaccount:ops:robot"]}
        await stage.client.patch(meta.ref(role), {"rules": [*rules, more]})
        async with asyncio.timeout(TIMEOUT):
            await written(201)
    finally:
        await transport.close()
