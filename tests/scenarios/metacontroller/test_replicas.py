"""Several processes and one roll: a process that is frozen, killed or new does no harm."""

import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.metacontroller.replicas import Replica, team
from tests.scenarios.metacontroller.rolls import (
    REVISIONS,
    Roll,
    check_promises,
    disruptions,
    settled,
    updated,
)
from tests.scenarios.metacontroller.stage import Stage
from tests.scenarios.metacontroller.witness import witness

pytestmark = pytest.mark.asyncio(loop_scope="session")


def freeze(replica: Replica) -> None:
    replica.signal(signal.SIGSTOP)


def kill(replica: Replica) -> None:
    replica.signal(signal.SIGKILL)


@check("MC-7")
async def test_a_process_frozen_past_its_lease_writes_for_no_parent_on_waking(
    stage: Stage, tmp_path: Path
) -> None:
    """
    Two take turns: each is stopped in the middle of a write, and continued once the other has taken over.

    The answer to that write is the first thing it hears on waking, and the rest of its plan is at hand.
    """
    roll, names = Roll(stage), ("c", "a", "e", "b", "d", "f")
    async with team(stage, tmp_path) as replicas:
        await settled(roll, *names)
        start = {meta.uid(one): one for one in [*await roll.parts(), *await roll.revisions()]}
        async with witness(stage, roll.kind, REVISIONS) as seen, roll.healing():
            trap = replicas.trap(1, freeze)
            await roll.turn_to("two")
            frozen = await trap
            trap = replicas.trap(2, freeze)
            for writes in (3, 1, 2):
                other = await trap
                assert other is not frozen
                # Set before the other wakes: no process gets further than that.
                trap, asked = replicas.trap(writes, freeze), frozen.asked
                frozen.signal(signal.SIGCONT)
                # It has found out that its time is up, and asks to be the one again.
                await replicas.until(partial(has_asked, frozen, asked + 2))
                frozen = other
            await trap
            for replica in replicas.replicas:
                replica.signal(signal.SIGCONT)
            await until_everywhere(stage, roll, "two", ("a",), len(names))
            await roll.until_revisions("two")
            await seen.has_seen(*await roll.parts(), *await roll.revisions())

    assert replicas.strays == []
    assert {write.by for write in replicas.writes} == set(replicas.replicas)
    assert disruptions(seen, list(start.values())) == dict.fromkeys(names, 1)
    check_promises(seen.history, start, newest="two")


def has_asked(replica: Replica, times: int) -> bool:
    return replica.asked >= times


@check("MC-7")
async def test_replicas_that_are_killed_and_added_in_the_middle_disturb_no_child_twice(
    stage: Stage, tmp_path: Path
) -> None:
    """Three shards, four parents that roll together, and the next writer is killed, again and again."""
    roll, names = Roll(stage), ("p", "q", "r", "s")
    parts = {f"{name}-{number}" for name in names for number in range(3)}
    async with team(stage, tmp_path, shards=3) as replicas:
        await stage.given_kind("Part")
        await roll.given_controller(generateSelector=True)
        for name in names:
            wanted = [f"{name}-{number}" for number in range(3)]
            await stage.given_parent(name, spec={"parts": wanted, "template": {"image": "one"}})
        async with roll.healing():
            await until_everywhere(stage, roll, "one", names, len(parts))
        start = {meta.uid(one): one for one in [*await roll.parts(), *await roll.revisions()]}
        async with witness(stage, roll.kind, REVISIONS) as seen, roll.healing():
            trap = replicas.trap(1, kill)
            for name in names:
                await stage.client.patch(stage.parent(name), {"spec": {"template": {"image": "two"}}})
            for writes in (5, 3, 0):
                dead = await trap
                # Set before another one starts, which takes a while.
                trap = replicas.trap(writes, kill) if writes else trap
                assert dead.process is not None
                await dead.process.wait()
                await replicas.add()
            await until_everywhere(stage, roll, "two", names, len(parts))
            await seen.has_seen(*await roll.parts(), *await roll.revisions())

    assert replicas.strays == []
    assert disruptions(seen, list(start.values())) == dict.fromkeys(parts, 1)
    check_promises(seen.history, start, newest="two")


async def until_everywhere(stage: Stage, roll: Roll, image: str, names: Sequence[str], parts: int) -> None:
    """Wait until all parts of these parents are of an image, and every parent says so."""

    def is_done(parents: Sequence[Made]) -> bool:
        said = [updated(one) for one in parents if meta.name(one) in names]
        return all(
            one is not None and one["status"] == "True" for one in said
        ) and all(one["status"].get("observedGeneration") == meta.generation(one) for one in parents)  # fmt: skip

    await stage.until_listed(
        "Part",
        lambda those: [one["spec"]["image"] for one in those] == [image] * parts,
        roll.kind[0],
        timeout=180,
    )
    await stage.until_listed("Thing", is_done, f"{stage.group}/v1", timeout=180)
