"""
Works that are applied in the name of an account: what that one may not do is not done.

Who may do what is enforced by a real server only, so that one is hub and cluster at once.
"""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from lamina.objects.types import Made
from lamina.testing.waiting import eventually
from tests.bed.fixtures import chosen_server
from tests.bed.scenarios import check
from tests.scenarios.manifestwork.agents import Report, Spoke, spoke
from tests.scenarios.manifestwork.stage import Stage
from tests.unit.families.manifestwork.agent.story import config_map

pytestmark = pytest.mark.asyncio(loop_scope="session")

enforced = pytest.mark.skipif(
    chosen_server() != "real", reason="who may do what is enforced on a real server only"
)
_RBAC = "rbac.authorization.k8s.io"
_VERBS = ["create", "update", "patch", "get", "delete"]


def executor(namespace: str) -> Made:
    account = {"namespace": namespace, "name": "deployer"}
    return {"subject": {"type": "ServiceAccount", "serviceAccount": account}}


def role(namespace: str, name: str, resource: str, verbs: list[str], group: str = "") -> Made:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}],
    }


def binding(namespace: str, name: str) -> Made:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": namespace}],
    }


@pytest_asyncio.fixture(loop_scope="session")
async def west(stage: Stage) -> AsyncIterator[Spoke]:
    """A cluster that is its own hub, with its agent at work and a namespace for what is applied."""
    name = stage.cluster("west")
    await stage.given_namespace(name)
    await stage.given_namespace(stage.namespace)
    made = Spoke(name, stage.client, stage.client, stage.clock)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def east(stage: Stage) -> AsyncIterator[Spoke]:
    name = stage.cluster("east")
    await stage.given_namespace(name)
    async with spoke(name, stage.client, stage.clock) as made:
        yield made


async def in_time(stage: Stage, west: Spoke, is_so: Callable[[Report], bool]) -> None:
    """Wait until a work is as it should be: a server applies new RBAC rules with delay, and the agent checks each minute."""

    async def is_so_now() -> bool:
        stage.pass_time(61)
        await west.settled()
        return is_so(await west.work())

    assert await eventually(is_so_now)


@check("MW-61")
async def test_without_authorization_a_work_is_applied_in_any_name(east: Spoke) -> None:
    await east.want(config_map(a="1"), executor=executor("default"))
    await east.until_applied()

    assert await east.data() == {"a": "1"}


@enforced
@check("MW-61")
async def test_an_executor_that_may_not_is_refused_and_applies_once_it_may(stage: Stage, west: Spoke) -> None:
    where = stage.namespace
    await west.want(config_map(namespace=where, a="1"), executor=executor(where))
    report = await west.until(lambda now: now.denies("Applied"))
    assert report.message_of(0, "Applied") == (
        f"Failed to apply manifest: not allowed to apply the resource  configmaps, {where} cm1, "
        "will try again in 1m0s"
    )
    assert await west.config_map(namespace=where) is None

    for made in (role(where, "may", "configmaps", _VERBS), binding(where, "may")):
        await stage.create(made)
    await in_time(stage, west, lambda now: now.holds("Applied"))
    assert await west.data(namespace=where) == {"a": "1"}


@enforced
@check("MW-61")
async def test_an_executor_gives_away_no_rights_it_does_not_have(stage: Stage, west: Spoke) -> None:
    where = stage.namespace
    for made in (role(where, "rolls", "roles", _VERBS, _RBAC), binding(where, "rolls")):
        await stage.create(made)
    await west.want(role(where, "too-much", "secrets", ["get"]), executor=executor(where))
    refused = f"roles, {where} too-much, error: permission escalation, will try again in 1m0s"
    await in_time(
        stage, west, lambda now: now.denies("Applied") and now.message_of(0, "Applied").endswith(refused)
    )
    with_rights = role(where, "same", "roles", ["get"], _RBAC)
    await west.want(with_rights, executor=executor(where))
    await in_time(stage, west, lambda now: now.holds("Applied"))


@enforced
@check("MW-61")
async def test_an_executor_makes_no_binding_to_a_role_that_has_yet_to_be_made(
    stage: Stage, west: Spoke
) -> None:
    where = stage.namespace
    for made in (role(where, "binds", "rolebindings", _VERBS, _RBAC), binding(where, "binds")):
        await stage.create(made)
    await west.want(binding(where, "later"), executor=executor(where))
    refused = f"what rolebindings {where}/later refers to, or its namespace, does not exist"
    await in_time(
        stage, west, lambda now: now.denies("Applied") and now.message_of(0, "Applied").endswith(refused)
    )

    await stage.create(role(where, "later", "rolebindings", ["get"], _RBAC))
    await in_time(stage, west, lambda now: now.holds("Applied"))
