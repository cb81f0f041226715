"""A cluster joins a hub with a bootstrap token, and no administrator's credentials are on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane.hub import join
from lamina.control_plane.join import Store, client_request, is_joined, keep_renewed, obtain
from lamina.control_plane.membership import accept, bootstrap_token, detach
from lamina.core import csr
from lamina.core.model.agents import Agents
from lamina.errors import AlreadyExists, Forbidden, NotFound, SettingsError
from lamina.families.manifestwork.placement.managedcluster import cluster_ref
from lamina.families.manifestwork.placement.renewals import RENEWALS
from lamina.families.registry import agents as family_agents
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.manager import Manager
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.agents import spoke
from tests.scenarios.manifestwork.stage import TIMEOUT, Stage
from tests.unit.families.manifestwork.agent.story import config_map

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENTS: Agents = family_agents()
REQUESTS = csr.REQUEST_VERSION, csr.REQUEST.kind


@asynccontextmanager
async def as_user(access: Access) -> AsyncIterator[Client]:
    client = Client(HttpTransport(access))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def renewing(stage: Stage) -> AsyncIterator[None]:
    """A hub that approves renewals."""
    manager = Manager(stage.client, [RENEWALS], WallClock())
    task = asyncio.create_task(manager.run())
    await manager.ready()
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def old_pair() -> tuple[bytes, bytes]:
    """Return a certificate that is still valid for an hour, of the eleven that it was issued for, and its key."""
    key, now, name = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC), x509.Name([])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=10))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


def is_fresh(store: Store) -> bool:
    lifetime = store.lifetime()
    return lifetime is not None and lifetime.renews > datetime.now(UTC)


async def bootstrap(stage: Stage, admin: Access) -> Access:
    """Return the access of a cluster that is to join; the embedded server issues no tokens."""
    if chosen_server() != "real":
        with pytest.raises(SettingsError, match="issues no tokens"):
            await bootstrap_token(AGENTS, stage.client, 3600)
        return admin
    token = await bootstrap_token(AGENTS, stage.client, 3600)
    return Access(server=admin.server, authority=admin.authority, token=token)


async def until_requested(stage: Stage, name: str, joining: asyncio.Task[None]) -> None:
    async def is_requested() -> bool:
        if joining.done():
            await joining
        return bool((await stage.client.list(REQUESTS, labels=AGENTS.joining.requests(name))).items)

    await eventually(is_requested)


async def test_a_cluster_joins_once_it_is_accepted_and_renews_its_certificate_by_itself(
    stage: Stage, kubeconfig: Path, tmp_path: Path
) -> None:
    name, store = stage.cluster("east"), Store(tmp_path / "hub.kubeconfig")
    way = await bootstrap(stage, read_kubeconfig(kubeconfig))
    async with as_user(way) as hub:
        joining = asyncio.create_task(obtain(AGENTS, hub, name, "https://east", store))
        await until_requested(stage, name, joining)
        assert store.lifetime() is None and not joining.done()
        assert not AGENTS.is_accepted(await stage.client.get(cluster_ref(name)))
        if chosen_server() == "real":
            with pytest.raises(Forbidden):
                await hub.list(("v1", "Secret"), "default")
            with pytest.raises(Forbidden):
                await hub.patch(cluster_ref(name), {"spec": {"hubAcceptsClient": True}})

        assert len(await accept(AGENTS, stage.client, name)) == 1
        async with asyncio.timeout(TIMEOUT):
            await joining
    store.write(way)

    access = read_kubeconfig(store.kubeconfig)
    assert access.token == "" and store.kubeconfig.stat().st_mode & 0o077 == 0
    async with as_user(access) as hub, spoke(name, stage.client, WallClock(), way=hub) as east:
        await east.want(config_map(a="1"))
        await east.until_applied()
        if chosen_server() == "real":
            with pytest.raises(Forbidden):
                await hub.get(cluster_ref("another"))

        first = store.certificate.read_bytes()
        async with renewing(stage), asyncio.timeout(TIMEOUT):
            await obtain(AGENTS, hub, name, "", store)
        assert store.certificate.read_bytes() != first

        await detach(AGENTS, stage.client, name, force=False, seconds=TIMEOUT)
        with pytest.raises(NotFound):
            await east.client.get(Ref("v1", "ConfigMap", "default", "cm1"))

    for ref in (cluster_ref(name), *(meta.ref(one) for one in AGENTS.joining.grants(name)[1:])):
        with pytest.raises(NotFound):
            await stage.client.get(ref)
    assert not (await stage.client.list(REQUESTS, labels=AGENTS.joining.requests(name))).items


async def test_a_renewed_certificate_that_cannot_be_stored_does_not_end_the_agent(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, store = stage.cluster("east"), Store(tmp_path / "hub.kubeconfig")
    stage.made += [cluster_ref(name), *(meta.ref(one) for one in AGENTS.joining.grants(name))]
    store.write_pair(*old_pair())
    store.key.unlink()
    store.key.mkdir()
    renewal, said = asyncio.create_task(keep_renewed(AGENTS, stage.client, name, store)), ""

    def is_over() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return renewal.done() or "certificate not renewed, retrying" in said

    await until_requested(stage, name, renewal)
    await accept(AGENTS, stage.client, name)
    await eventually(is_over, seconds=TIMEOUT)
    assert not renewal.done() and str(store.key) in said
    renewal.cancel()
    await asyncio.gather(renewal, return_exceptions=True)


async def test_a_request_for_another_user_is_not_approved(stage: Stage) -> None:
    name = stage.cluster("east")
    stage.made.append(cluster_ref(name))
    await stage.client.create(
        AGENTS.joining.step(name, "", b"", None, None).creates[0],
    )
    asked = client_request("system:admin", ("auditors",))
    made = await stage.client.create(
        csr.request_client_certificate(
            f"{name}-", asked.pem, {"open-cluster-management.io/cluster-name": name}
        )
    )
    stage.made.append(meta.ref(made))

    with pytest.raises(SettingsError, match="it is for the user system:admin"):
        await accept(AGENTS, stage.client, name)

    assert csr.is_pending(await stage.client.get(meta.ref(made)))
    assert not AGENTS.is_accepted(await stage.client.get(cluster_ref(name)))


async def ask(stage: Stage, hub: Client, name: str) -> str:
    """Send a request for the agent of a cluster, which is registered if it is not, and return its name."""
    registered = AGENTS.joining.step(name, "", b"", None, None).creates[0]
    stage.made += [cluster_ref(name), *(meta.ref(one) for one in AGENTS.joining.grants(name))]
    with suppress(AlreadyExists):
        await stage.client.create(registered)
    pem = client_request(AGENTS.hub_user(name)[0], ()).pem
    (request,) = AGENTS.joining.step(name, "", pem, registered, None).creates
    made = await hub.create(request)
    stage.made.append(meta.ref(made))
    return meta.name(made)


async def is_pending(stage: Stage, request: str) -> bool:
    return csr.is_pending(await stage.client.get(Ref(csr.REQUEST_VERSION, csr.REQUEST.kind, "", request)))


async def test_a_request_that_the_agent_of_another_cluster_has_sent_is_not_approved(
    stage: Stage, kubeconfig: Path, tmp_path: Path
) -> None:
    name, other, store = stage.cluster("east"), stage.cluster("west"), Store(tmp_path / "hub.kubeconfig")
    stage.made += [cluster_ref(other), *(meta.ref(one) for one in AGENTS.joining.grants(other))]
    joining = asyncio.create_task(obtain(AGENTS, stage.client, other, "", store))
    await until_requested(stage, other, joining)
    await accept(AGENTS, stage.client, other)
    async with asyncio.timeout(TIMEOUT):
        await joining
    store.write(read_kubeconfig(kubeconfig))
    async with as_user(read_kubeconfig(store.kubeconfig)) as hub:
        request = await ask(stage, hub, name)

    sender = AGENTS.hub_user(other)[0]
    with pytest.raises(SettingsError, match=f"request {request}, requested by {sender}, is not one"):
        await accept(AGENTS, stage.client, name)
    with pytest.raises(SettingsError, match="which is the agent of another cluster"):
        await accept(AGENTS, stage.client, name, request)

    assert await is_pending(stage, request)
    assert not AGENTS.is_accepted(await stage.client.get(cluster_ref(name)))


async def test_of_several_requests_only_the_one_that_is_named_is_approved(stage: Stage) -> None:
    name = stage.cluster("east")
    first, second = [await ask(stage, stage.client, name) for _ in range(2)]

    with pytest.raises(SettingsError, match="has several requests that wait for approval") as refused:
        await accept(AGENTS, stage.client, name)
    assert first in str(refused.value) and second in str(refused.value)
    assert await is_pending(stage, first) and await is_pending(stage, second)
    with pytest.raises(SettingsError, match="has no request 'another' that waits"):
        await accept(AGENTS, stage.client, name, "another")

    (approved,) = await accept(AGENTS, stage.client, name, second)
    assert approved.startswith(f"{second}, requested by ")
    assert await is_pending(stage, first) and not await is_pending(stage, second)


async def test_a_namespace_that_the_hub_did_not_make_stays_when_its_cluster_is_detached(stage: Stage) -> None:
    name = stage.cluster("east")
    namespace: Made = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"a": "1"}},
    }
    await stage.client.create(namespace)
    await ask(stage, stage.client, name)

    await accept(AGENTS, stage.client, name)
    assert not AGENTS.owns_namespace(await stage.client.get(meta.ref(namespace)), name)
    await detach(AGENTS, stage.client, name, force=True, seconds=1)

    found = await stage.client.get(meta.ref(namespace))
    assert meta.labels(found)["a"] == "1" and not meta.is_deleting(found)


async def test_a_detachment_that_timed_out_is_completed_with_force(stage: Stage) -> None:
    name = stage.cluster("east")
    await join(AGENTS, stage.client, name)
    stage.made.append(cluster_ref(name))
    stage.made.append(meta.ref(await stage.client.create(AGENTS.joining.grants(name)[0])))
    version, kind = AGENTS.assigned
    metadata = {"name": "held", "namespace": name, "finalizers": [AGENTS.finalizer]}
    spec = {"workload": {"manifests": [config_map(a="1")]}}
    work = await stage.client.create(
        {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    )

    for _ in range(2):
        with pytest.raises(SettingsError, match="has not removed 1 works within 0.1s: held") as refused:
            await detach(AGENTS, stage.client, name, force=False, seconds=0.1)
        assert "use --force" in str(refused.value.hint)

    await detach(AGENTS, stage.client, name, force=True, seconds=0.1)
    with pytest.raises(NotFound):
        await stage.client.get(meta.ref(work))


async def test_a_cluster_whose_group_would_be_that_of_all_clusters_does_not_join(
    stage: Stage, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="no cluster may be called 'managed-clusters'"):
        await accept(AGENTS, stage.client, "managed-clusters")
    with pytest.raises(SettingsError, match="which is that of all clusters"):
        await obtain(AGENTS, stage.client, "managed-clusters", "", Store(tmp_path / "hub.kubeconfig"))


async def test_a_refused_request_ends_the_join_and_says_why(
    stage: Stage, kubeconfig: Path, tmp_path: Path
) -> None:
    name, store = stage.cluster("east"), Store(tmp_path / "hub.kubeconfig")
    stage.made.append(cluster_ref(name))
    async with as_user(await bootstrap(stage, read_kubeconfig(kubeconfig))) as hub:
        joining = asyncio.create_task(obtain(AGENTS, hub, name, "", store))
        await until_requested(stage, name, joining)
        (asked,) = (await stage.client.list(REQUESTS, labels=AGENTS.joining.requests(name))).items
        denied = {"type": "Denied", "status": "True", "reason": "No", "message": "an unknown cluster"}
        await stage.client.update({**asked, "status": {"conditions": [denied]}}, subresource="approval")
        stage.made.append(meta.ref(asked))

        with pytest.raises(SettingsError, match="Denied: an unknown cluster"):
            async with asyncio.timeout(TIMEOUT):
                await joining
    assert not store.key.exists()


async def test_a_cluster_has_joined_while_its_certificate_is_valid(tmp_path: Path) -> None:
    store, now = Store(tmp_path / "hub.kubeconfig"), datetime.now(UTC)
    assert not is_joined(store, now)

    store.write(Access(server="https://hub", token="t"))
    assert is_joined(store, now), "an administrator may have written it, with other credentials"
    store.write_pair(*old_pair())
    assert is_joined(store, now) and not is_joined(store, now + timedelta(hours=2))
    assert read_kubeconfig(store.kubeconfig).certificate_file == store.certificate

    store.key.write_bytes(old_pair()[1])
    assert not is_joined(store, now), "a renewal ended between its two files"


async def test_a_cluster_that_has_not_asked_is_not_accepted_and_one_that_is_none_is_not_detached(
    stage: Stage,
) -> None:
    name = stage.cluster("east")
    with pytest.raises(SettingsError, match="has not asked to join"):
        await accept(AGENTS, stage.client, name)
    with pytest.raises(SettingsError, match="is not registered with the hub"):
        await detach(AGENTS, stage.client, name, force=True, seconds=1)
