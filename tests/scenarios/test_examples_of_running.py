"""The examples about processes: which controllers run where, which replica takes over, and the metrics."""

import asyncio
import gzip
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp

from lamina.clock import WallClock
from lamina.control_plane.install import build_manager, install
from lamina.families.registry import FamilyOptions, chosen
from lamina.objects.selectors import parse_label_selector
from lamina.runtime.hooks.client import HookClient
from tests.scenarios.story import EXAMPLES, Story, free_port, telling
from tests.scenarios.test_examples import said, webhook


async def test_target_label_selector_leaves_other_controllers_alone() -> None:
    reused = EXAMPLES / "update-strategy"
    red = chosen("all", FamilyOptions(selector=parse_label_selector("team=red")))
    told = telling("target-label-selector", hooks=False, families="none")
    async with told as story, webhook("update-strategy") as port:
        await install(story.client, red)
        await Story(reused, story.client).apply("kinds.yaml")
        await story.apply("controllers.yaml", "greetings.yaml", instead=(":8080", f":{port}"))
        calls = HookClient()
        manager = build_manager(story.client, red, WallClock(), calls)
        running = asyncio.create_task(manager.run())
        try:
            await manager.ready()
            assert not any("blue" in name for name in manager.names)
            await story.until_names("ConfigMap", ["rose"])
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await calls.close()


async def test_leader_election_has_the_second_take_over_when_the_first_dies() -> None:
    reused = EXAMPLES / "namespace-list-v2"
    terms = ("--lease-duration", "2s", "--renew-deadline", "1s", "--retry-period", "200ms")
    async with telling("leader-election", hooks=False, families="none") as story:
        shared = Story(reused, story.client)
        await shared.apply("kinds.yaml")
        command = (
            "-m",
            "lamina",
            "run",
            str(reused / "hooks.py"),
            "--kubeconfig",
            str(story.kubeconfig),
            *terms,
        )
        async with AsyncExitStack() as running:
            first = await running.enter_async_context(process(*command))
            await until_logged(first, "Successfully acquired lease")
            second = await running.enter_async_context(process(*command))
            await until_logged(second, "Attempting to acquire leader lease")
            await shared.apply("places.yaml")
            await said(story, "default", {"names": "harbour"}, "places")

            first.kill()

            await until_logged(second, "Successfully acquired lease")
            place = {"name": "quay", "labels": {"place": "yes"}}
            await story.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": place})
            await said(story, "default", {"names": "harbour\nquay"}, "places")


async def test_prometheus_monitoring_counts_what_hooks_are_asked() -> None:
    reused = EXAMPLES / "namespace-list-v2"
    metrics, health = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    async with telling("prometheus-monitoring", hooks=False, families="none") as story:
        shared = Story(reused, story.client)
        await shared.apply("kinds.yaml", "places.yaml")
        command = ("-m", "lamina", "run", str(reused / "hooks.py"), "--kubeconfig", str(story.kubeconfig))
        where = ("--metrics-address", metrics, "--health-probe-bind-address", health)
        async with process(*command, *where), aiohttp.ClientSession() as session:
            await said(story, "default", {"names": "harbour"}, "places")
            async with session.get(f"http://{metrics}/metrics") as answer:
                counted = await answer.text()
            async with session.get(f"http://{health}/readyz") as answer:
                assert answer.status == 200

    lines = [line for line in counted.splitlines() if line.startswith("metacontroller_sync_requests_total{")]
    assert any('code="200"' in line and 'url="hook:namespaces/sync"' in line for line in lines)


async def test_pprof_profiling_says_what_tasks_wait_for_and_what_costs_time() -> None:
    reused, where = EXAMPLES / "namespace-list-v2", f"127.0.0.1:{free_port()}"
    async with telling("pprof-profiling", hooks=False, families="none") as story:
        shared = Story(reused, story.client)
        await shared.apply("kinds.yaml", "places.yaml")
        command = ("-m", "lamina", "run", str(reused / "hooks.py"), "--kubeconfig", str(story.kubeconfig))
        async with process(*command, "--pprof-address", where), aiohttp.ClientSession() as session:
            await said(story, "default", {"names": "harbour"}, "places")
            async with session.get(f"http://{where}/debug/pprof/goroutine") as answer:
                tasks = await answer.text()
            async with session.get(f"http://{where}/debug/pprof/profile?seconds=0.2") as answer:
                profile = gzip.decompress(await answer.read())

    assert "Worker.run" in tasks
    assert b"nanoseconds" in profile


@asynccontextmanager
async def process(*words: str) -> AsyncIterator[Process]:
    """Run a program of ours until the end of the block."""
    started = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=asyncio.subprocess.PIPE)
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def until_logged(process: Process, words: str) -> None:
    """Wait until a process says something."""
    assert process.stderr is not None
    async with asyncio.timeout(120):
        while words not in (line := (await process.stderr.readline()).decode()):
            assert line, f"it ended without saying {words}"
