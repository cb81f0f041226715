"""What of a set cannot be changed."""

import pytest

from lamina.errors import Invalid
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import Stage, state

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHANGES: dict[str, Made] = {
    "phases": {"phases": [{"name": "p2"}]},
    "availabilityProbes": {
        "availabilityProbes": [{"selector": {"kind": {"group": "", "kind": "Pod"}}, "probes": []}]
    },
    "successDelaySeconds": {"successDelaySeconds": 7},
    "previous": {"previous": [{"name": "other"}]},
    "revision": {"revision": 9},
    "collisionProtection": {"collisionProtection": "None"},
}
"""By the field that is changed: the value that it cannot be changed to."""


async def given(stage: Stage, **fields: object) -> None:
    phase = stage.phase("p1", stage.config_map("cm"))
    await stage.given_set(
        "v2",
        phase,
        previous=["v1"],
        revision=2,
        successDelaySeconds=5,
        collisionProtection="Prevent",
        **fields,
    )


async def check_immutable(stage: Stage, field: str, change: Obj) -> None:
    await given(stage)
    before = await stage.set("v2")
    for spec in (change, {field: None}):
        with pytest.raises(Invalid, match=f"{field} is immutable"):
            await stage.edit(stage.set_ref("v2"), {"spec": spec})
    with pytest.raises(Invalid, match=f"{field} is immutable"):
        await stage.client.update({**before, "spec": {**before["spec"], **change}})
    assert (await stage.set("v2"))["spec"] == before["spec"]


@check("OS-47")
@pytest.mark.parametrize(("field", "change"), CHANGES.items(), ids=CHANGES.keys())
async def test_what_a_revision_rolls_out_is_immutable(stage: Stage, field: str, change: Obj) -> None:
    await check_immutable(stage, field, change)


@check("OS-47")
@pytest.mark.parametrize(("field", "change"), CHANGES.items(), ids=CHANGES.keys())
async def test_what_a_cluster_revision_rolls_out_is_immutable(
    cluster_stage: Stage, field: str, change: Obj
) -> None:
    await check_immutable(cluster_stage, field, change)


@check("OS-47")
async def test_the_lifecycle_state_of_a_revision_can_be_changed(stage: Stage) -> None:
    await check_lifecycle(stage)


@check("OS-47")
async def test_the_lifecycle_state_of_a_cluster_revision_can_be_changed(cluster_stage: Stage) -> None:
    await check_lifecycle(cluster_stage)


async def check_lifecycle(stage: Stage) -> None:
    await given(stage)
    for wanted in ("Paused", "Active", "Archived", "Active"):
        await stage.set_state("v2", wanted)
        assert state(await stage.set("v2")) == wanted
    with pytest.raises(Invalid, match="lifecycleState"):
        await stage.set_state("v2", "Gone")


@check("OS-47")
async def test_a_field_that_is_absent_cannot_be_added_but_for_the_revision(stage: Stage) -> None:
    await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")), probed=False)
    for field, change in CHANGES.items():
        if field == "revision":
            continue
        with pytest.raises(Invalid, match=f"{field} is immutable"):
            await stage.edit(stage.set_ref("v1"), {"spec": change})

    made = await stage.edit(stage.set_ref("v1"), {"spec": {"revision": 3}})

    assert made["spec"]["revision"] == 3
    with pytest.raises(Invalid, match="revision is immutable"):
        await stage.edit(stage.set_ref("v1"), {"spec": {"revision": 4}})


@check("OS-47")
async def test_the_deadline_of_a_revision_can_be_changed(stage: Stage) -> None:
    await given(stage)

    made = await stage.edit(stage.set_ref("v2"), {"spec": {"progressDeadlineSeconds": 60}})

    assert made["spec"]["progressDeadlineSeconds"] == 60
