"""Controllers that are killed after any of their writes: what follows after a restart is what would have been."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.objectset.record import Record
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_archived,
    is_finished,
    owners,
    revision_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

_MOST = 40
"""More writes than any of these scenarios has."""


async def after_every_write(
    stage: Stage,
    begin: Callable[[int], Awaitable[None]],
    end: Callable[[int, Record], Awaitable[None]],
) -> int:
    """
    Play a scenario once for each of its writes: the controllers are killed before that write, and started again.

    `begin` changes something while no controller runs, and `end` runs until the scenario is over; both get
    a number for the names of their objects. Returns how many writes the scenario has.
    """
    for writes in range(_MOST):
        await begin(writes)
        async with stage.recording() as record:
            was_killed = await stage.crash(writes)
            async with stage.running():
                await end(writes, record)
        if not was_killed:
            return writes
    raise AssertionError(f"it has more than {_MOST} writes")


def lifetimes(record: Record, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return which of these objects were created and deleted, in order."""
    return [
        (one.what, one.name)
        for one in record.changes
        if one.name in names and one.obj["kind"] == "ConfigMap" and one.what != "MODIFIED"
    ]


@check("OS-51")
async def test_a_handover_that_is_killed_anywhere_goes_on_where_it_was(stage: Stage) -> None:
    def sets(number: int) -> tuple[str, str, str, str]:
        return f"v1-{number}", f"v2-{number}", f"child-1-{number}", f"child-2-{number}"

    async def begin(number: int) -> None:
        first, second, one, two = sets(number)
        async with stage.running():
            await stage.given_set(
                first,
                stage.phase("phase-1", stage.config_map(one, key="v1")),
                stage.phase("phase-2", stage.config_map(two, key="v1")),
            )
            await stage.until_set(first)
            await stage.settled()
        await stage.given_set(
            second,
            stage.phase("phase-1", stage.config_map(one, healthy=False, key="v2")),
            stage.phase("phase-2", stage.config_map(two, key="v2")),
            previous=[first],
        )

    async def end(number: int, record: Record) -> None:
        first, second, one, two = sets(number)
        await stage.until_set(
            first, lambda now: controlled(now) == [two] and has_condition(now, "InTransition")
        )
        await stage.until_set(second, lambda now: controlled(now) == [one])
        await stage.settled()
        assert owners(await stage.live(one)) == {first: False, second: True}
        assert owners(await stage.live(two)) == {first: True}
        await stage.edit(stage.object_ref(two), {"data": {"key": "drift"}})
        await stage.until_object(two, lambda now: now["data"] == {"key": "v1"})

        await stage.heal(one)
        await stage.until_set(second)
        await stage.until_set(first, lambda now: controlled(now) == [])
        for name in (one, two):
            after = await stage.live(name)
            assert (after["data"], revision_of(after), controller(after)) == ({"key": "v2"}, "2", second)
        await record.caught_up()
        assert lifetimes(record, (one, two)) == []

    assert await after_every_write(stage, begin, end) >= 4


@check("OS-51")
async def test_a_first_rollout_that_is_killed_anywhere_creates_each_object_once(stage: Stage) -> None:
    async def begin(number: int) -> None:
        names = [f"cm-{number}-{one}" for one in "abc"]
        await stage.given_set(
            f"v-{number}",
            stage.phase("p1", *(stage.config_map(name) for name in names[:2])),
            stage.phase("p2", stage.config_map(names[2])),
        )

    async def end(number: int, record: Record) -> None:
        names = [f"cm-{number}-{one}" for one in "abc"]
        found = await stage.until_set(f"v-{number}")
        await stage.settled()
        await record.caught_up()
        assert controlled(found) == names
        assert sorted(lifetimes(record, names)) == [("ADDED", name) for name in names]

    assert await after_every_write(stage, begin, end) >= 6


@check("OS-51")
async def test_an_archival_that_is_killed_anywhere_ends_the_same(stage: Stage) -> None:
    async def begin(number: int) -> None:
        one, two = f"cm-a-{number}", f"cm-b-{number}"
        async with stage.running():
            await stage.given_set(
                f"v-{number}",
                stage.phase("p1", stage.config_map(one)),
                stage.phase("p2", stage.config_map(two)),
            )
            await stage.until_set(f"v-{number}")
            await stage.settled()
        await stage.edit(stage.object_ref(one), {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.set_state(f"v-{number}", "Archived")

    async def end(number: int, record: Record) -> None:
        one, two = f"cm-a-{number}", f"cm-b-{number}"
        await stage.until_object(one, meta.is_deleting)
        assert await stage.object(two) is None
        found = await stage.until_set(
            f"v-{number}", lambda now: condition(now, "Archived") == ("False", "ArchivalInProgress")
        )
        assert not has_condition(found, "Available")

        await stage.edit(stage.object_ref(one), {"metadata": {"finalizers": None}})
        found = await stage.until_set(
            f"v-{number}", lambda now: is_archived(now) and not meta.finalizers(now)
        )
        await stage.settled()
        assert controlled(found) == []
        await record.caught_up()
        assert lifetimes(record, (one, two)) == [("DELETED", two), ("DELETED", one)]

    assert await after_every_write(stage, begin, end) >= 3


@check("OS-51")
async def test_an_update_of_a_deployment_that_is_killed_anywhere_ends_the_same(stage: Stage) -> None:
    def names(number: int) -> tuple[str, str, str]:
        return f"kept-{number}", f"old-{number}", f"new-{number}"

    async def begin(number: int) -> None:
        kept, old, new = names(number)
        async with stage.running():
            phases = (
                stage.phase("p1", stage.config_map(kept, key="v1")),
                stage.phase("p2", stage.config_map(old)),
            )
            await stage.given_deployment(f"web-{number}", *phases)
            await stage.until_rolled_out(f"web-{number}", 1)
        phases = stage.phase("p1", stage.config_map(kept, key="v2")), stage.phase("p2", stage.config_map(new))
        await stage.want(f"web-{number}", *phases)

    async def end(number: int, record: Record) -> None:
        kept, old, new = names(number)
        first, second = await stage.until_rolled_out(f"web-{number}", 2)
        await stage.until_deployment(
            f"web-{number}", lambda now: condition(now, "Progressing") == ("False", "Idle")
        )
        assert is_archived(first)
        assert is_finished(second)
        assert (await stage.live(kept))["data"] == {"key": "v2"}
        assert owners(await stage.live(kept)) == {meta.name(second): True}
        await record.caught_up()
        assert lifetimes(record, (kept, old, new)) == [("ADDED", new), ("DELETED", old)]

    assert await after_every_write(stage, begin, end) >= 8
