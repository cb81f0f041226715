"""
What the conditions go through, row by row: no watch sees them in another order.

A row is what PlacementVerified, ManifestworkApplied, Progressing and
PlacementRolledOut say, the current revision, the wanted one, and when it was aborted.
"""

from collections.abc import Sequence

import pytest

from tests.bed.scenarios import check
from tests.scenarios.manifestwork.stage import Stage, progressive
from tests.unit.families.manifestwork.fleet import OK1, OK2, SLOW

pytestmark = pytest.mark.asyncio(loop_scope="session")

Row = tuple[tuple[str, ...], str, str, str]

CREATED = ("T AsExpected", "F Processing", "T NewRevisionCreated", "F Progressing")
FOUND = ("T AsExpected", "F Processing", "T FoundNewRevision", "F Progressing")
SO_FAR = ("T AsExpected", "T AsExpected", "T FoundNewRevision", "F Progressing")
DONE = ("T AsExpected", "T AsExpected", "F NewManifestWorkAvailable", "T Complete")
LATE = ("T AsExpected", "F NotAsExpected", "F ProgressDeadlineExceeded", "F RolloutDegraded")
ABORTING = ("T AsExpected", "F NotAsExpected", "F ProgressDeadlineExceeded", "F Progressing")
ABORTED = ("T AsExpected", "F NotAsExpected", "F RolloutAborted", "F RolloutDegraded")
NOTHING = ("-", "-", "-", "-")


def check_order(rows: Sequence[Row], expected: Sequence[Row]) -> None:
    """Check that rows are some of those expected, in their order, and that the last is the last."""
    rest = iter(expected)
    assert all(row in rest for row in rows), (list(rows), list(expected))
    assert rows[-1] == expected[-1]


@check("MW-28")
async def test_a_new_replica_set(stage: Stage) -> None:
    await stage.place("place", {0: ["c1", "c2", "c3", "c4"]})
    async with stage.recording() as rows, stage.running():
        await stage.given(OK1, 4)
        now = await stage.until_done()

    one = now.update
    check_order(rows, [(NOTHING, "", "", ""), (CREATED, "", one, ""), (DONE, one, one, "")])
    assert len(rows) == 3


@check("MW-29")
async def test_an_undo(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK2, 4, progressive(minSuccessTime="60s", progressDeadline="None"))
        for _ in range(2):
            await stage.settled()
            stage.pass_time(66)
        two = (await stage.until_done()).update
        await stage.want(OK1)
        for _ in range(3):
            await stage.settled()
            stage.pass_time(66)
        one = (await stage.until_done()).update
        async with stage.recording() as rows:
            await stage.want(OK2)
            for _ in range(3):
                await stage.settled()
                stage.pass_time(66)
            await stage.until_done()

    check_order(
        rows,
        [
            (DONE, one, one, ""),
            (FOUND, one, two, ""),
            (SO_FAR, one, two, ""),
            (FOUND, one, two, ""),
            (DONE, two, two, ""),
        ],
    )
    assert (SO_FAR, one, two, "") in rows


@check("MW-30")
async def test_a_deadline_that_passes_and_no_way_back_is_wanted(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4, progressive(failureStrategy=""))
        one = (await stage.until_done()).update
        async with stage.recording() as rows:
            await stage.want(SLOW)
            await stage.until(lambda now: now.revs["c2"] == "slow")
            await stage.settled()
            stage.pass_time(66)
            await stage.until(lambda now: now.said("Progressing")[1] == "ProgressDeadlineExceeded")
            now = await stage.settled()

    check_order(rows, [(DONE, one, one, ""), (CREATED, one, now.update, ""), (LATE, one, now.update, "")])
    assert now.revs == {"c1": "slow", "c2": "slow", "c3": "1", "c4": "1"}
    assert now.message() == "2 of 4 clusters not healthy within 60s, 0 tolerated: " + ", ".join(
        f"{stage.cluster(name)} (progressing: working)" for name in ("c1", "c2")
    )


@check("MW-31")
async def test_an_abort(stage: Stage) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        one = (await stage.until_done()).update
        async with stage.recording() as rows:
            await stage.want(SLOW)
            await stage.until(lambda now: now.revs["c2"] == "slow")
            await stage.settled()
            stage.pass_time(66)
            now = await stage.until_aborted()

    two, at = now.update, now.aborted
    assert at
    check_order(
        rows,
        [
            (DONE, one, one, ""),
            (CREATED, one, two, ""),
            (ABORTING, one, two, at),
            (ABORTED, one, two, at),
        ],
    )
    assert (ABORTING, one, two, at) in rows
