"""What the command line shows of a rollout, while it progresses and after it is aborted."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lamina.runtime.metrics.prometheus import Metrics
from tests.scenarios.manifestwork.stage import TIMEOUT, Stage, progressive
from tests.unit.families.manifestwork.fleet import BAD, HUB, OK1, OK2

pytestmark = pytest.mark.asyncio(loop_scope="session")

OWNER = "manifestworkreplicaset/app"


class Terminal:
    """A user at a terminal, in the namespace of the story."""

    def __init__(self, stage: Stage, kubeconfig: Path) -> None:
        self._stage, self._kubeconfig = stage, kubeconfig

    async def __call__(self, *words: str) -> str:
        """Say something to lamina, and return what it says."""
        where = ("-n", self._stage.namespace, "--kubeconfig", str(self._kubeconfig))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lamina", *words, *where,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, trouble = await process.communicate()
        assert process.returncode == 0, trouble.decode()
        return said.decode().replace(self._stage.suffix, "")

    async def read(self, *words: str) -> Any:
        return json.loads(await self(*words, "-o", "json"))


@pytest.fixture
def terminal(stage: Stage, kubeconfig: Path) -> Terminal:
    return Terminal(stage, kubeconfig)


async def test_who_is_where_and_why_nothing_moves(stage: Stage, terminal: Terminal) -> None:
    async with stage.running():
        await stage.given(OK1, 3, progressive(maxConcurrency=1))
        await stage.until_done()
        stage.spokes.phases = {"c1": "working"}
        await stage.want(OK2)
        await stage.until(lambda now: now.revs["c1"] == "2" and now.summary["progressing"] == 1)
        await stage.settled()

        (told,) = await terminal.read("get", OWNER)
        assert (told["revision"], told["state"]) == (2, "Progressing")
        assert {name: one["revision"] for name, one in told["targets"].items()} == {"c1": 2, "c2": 1, "c3": 1}
        assert (told["updated"], told["available"]) == (1, 2)
        assert told["message"] == "waiting for c1 (progressing: working)"
        assert [place["state"] for place in told["targets"].values()] == ["Progressing", "Pending", "Pending"]
        assert all(place["since"] for place in told["targets"].values())

        shown = await terminal("get", OWNER)
        assert "waiting for c1 (progressing: working)" in shown
        assert "TARGET" in shown
        assert "waiting for c1 (progressing: working)" in await terminal("explain", OWNER)
        assert "No owners found" not in await terminal("get")


async def test_what_an_abort_looks_like_and_the_way_on(stage: Stage, terminal: Terminal) -> None:
    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        await stage.want(BAD)
        await stage.until(lambda now: now.revs["c2"] == "bad")
        await stage.settled()
        stage.pass_time(66)
        now = await stage.until_aborted()

        (told,) = await terminal.read("get", "mwrs/app")
        assert (told["revision"], told["state"]) == (1, "Aborted")
        assert told["message"] == now.message()
        assert {one["revision"] for one in told["targets"].values()} == {1}

        followed = await terminal("watch", "mwrs/app", "--until", "aborted")
        assert followed.lower().count("aborted") == 2, "a state and a sentence, and then it ends"

        listed = await terminal.read("revisions", "list", OWNER)
        assert [(one["revision"], one["role"], len(one["targets"])) for one in listed] == [
            (2, "wanted", 0),
            (1, "stable", 4),
        ]
        assert "'1' became 'bad'" in await terminal("revisions", "diff", OWNER)

        assert "to revision 1" in await terminal("rollback", OWNER)
        now = await stage.until_done()
        assert now.history == [(2, "bad"), (3, "1")]
        (told,) = await terminal.read("get", OWNER)
        assert (told["revision"], told["state"]) == (3, "Healthy")


async def test_what_happens_to_rollouts_is_counted(stage: Stage) -> None:
    metrics = Metrics()
    stage.meters = metrics.of
    hub = f'controller="{HUB.name}"'
    app = f'{hub},name="app",namespace="{stage.namespace}"'

    async with stage.running():
        await stage.given(OK1, 4)
        await stage.until_done()
        assert f'lamina_owner_targets{{{app},state="Healthy"}} 4.0' in metrics.text().decode()
        await stage.want(BAD)
        await stage.until(lambda now: now.revs["c2"] == "bad")
        await stage.settled()
        stage.pass_time(66)
        await stage.until_aborted()
        told = metrics.text().decode()
    assert stage.parity.has_compared, "the writes are compared with a simulation's, too"

    for reason, kind, often in (
        ("NewRevisionCreated", "Normal", 2),
        ("NewManifestWorkAvailable", "Normal", 1),
        ("ProgressDeadlineExceeded", "Warning", 1),
        ("RolloutAborted", "Warning", 1),
    ):
        assert f'lamina_events_total{{{hub},reason="{reason}",type="{kind}"}} {often:.1f}' in told
    assert f'lamina_objects_written_total{{{hub},kind="ManifestWork",operation="created"}} 4.0' in told


async def test_a_rollout_is_followed_as_it_happens(stage: Stage, kubeconfig: Path) -> None:
    async with stage.running():
        await stage.given(OK1, 2)
        await stage.until_done()
        where = ("-n", stage.namespace, "--kubeconfig", str(kubeconfig), "-o", "json")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lamina", "watch", OWNER, *where, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            first = await _line(process.stdout)
            assert (first["state"], first["revision"]) == ("Healthy", 1)
            stage.spokes.phases = {"c1": "working", "c2": "working"}
            await stage.want(OK2)
            await _until(process.stdout, "Progressing", 2)
            stage.spokes.phases = {}
            stage.reconcile_everything()
            await _until(process.stdout, "Healthy", 2)
        finally:
            process.terminate()
            await process.wait()


async def _until(stream: asyncio.StreamReader, state: str, revision: int) -> None:
    """Read on until that is printed; the lines before it depend on timing."""
    async with asyncio.timeout(3 * TIMEOUT):
        told: Any = {}
        while (told.get("state"), told.get("revision")) != (state, revision):
            told = await _line(stream)


async def _line(stream: asyncio.StreamReader) -> Any:
    async with asyncio.timeout(3 * TIMEOUT):
        return json.loads(await stream.readline())
