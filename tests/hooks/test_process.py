"""Hooks in a child process: a misbehaving hook does not affect others."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.core.model.queries import Call
from lamina.errors import HookError, SettingsError
from lamina.hooks import supervisor
from lamina.hooks.supervisor import Hooks
from lamina.logs import Log
from lamina.runtime.hooks.client import HookClient
from lamina.testing.waiting import eventually

START = """
import asyncio, os, sys, time
import lamina

def child(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

"""
QUIET = Log()


class Loud(Log):
    """Records log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def error(self, event: str, **keys: Any) -> None:
        self.said.append(f"{event}: {keys.get('because', '')}")

    warning = info = error

    def bind(self, **keys: Any) -> Any:
        return self


def written(folder: Path, *functions: str, name: str = "hooks.py") -> Path:
    """Write a hooks file with functions declared for things, one after the other."""
    declared = "".join(
        f'@lamina.sync("ex.com/v1/things", children=["v1/configmaps"])\n{one.strip()}\n\n'
        for one in functions
    )
    path = folder / name
    path.write_text(START + declared)
    return path


@asynccontextmanager
async def calling(*paths: Path, log: Log = QUIET) -> AsyncIterator[tuple[Hooks, Callable[..., Any]]]:
    """Run hooks files, and yield a function that calls them as the families do."""
    hooks = Hooks(paths, log)
    await hooks.start()
    calls = HookClient(local=hooks.find)

    async def call(name: str, purpose: str = "sync", seconds: float = 10.0, **said: Any) -> Any:
        body = json.dumps({"parent": {}, "children": {}, "related": {}, "finalizing": False, **said}).encode()
        asked = Call(url=f"hook:{name}/{purpose}", body=body, seconds=seconds, purpose=purpose)
        return json.loads((await calls.call(asked)).body)

    try:
        yield hooks, call
    finally:
        await hooks.close()
        await calls.close()


async def test_a_function_is_called_with_the_words_of_a_webhook(tmp_path: Path) -> None:
    file = written(tmp_path, "def echo(parent): return lamina.Response(status=parent)")

    async with calling(file) as (hooks, call):
        assert [one["metadata"]["name"] for one in hooks.manifests] == ["echo"]
        assert await call("echo", parent={"a": 1}) == {"children": [], "status": {"a": 1}}


async def test_a_call_after_the_end_starts_no_process(tmp_path: Path) -> None:
    file = written(tmp_path, "def echo(parent): return lamina.Response(status=parent)")

    async with calling(file) as (hooks, call):
        await hooks.close()

        with pytest.raises(HookError, match=r"sync hook echo could not be called: hooks.py is closed"):
            await call("echo")


async def test_what_a_hook_prints_is_no_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = written(
        tmp_path,
        "def chatty(parent):\n print('hello'); os.write(1, b'there\\n'); os.system('echo friend'); return []",
    )

    async with calling(file) as (_, call):
        assert await call("chatty") == {"children": []}

    seen = capfd.readouterr()
    assert seen.out == ""
    assert sorted(seen.err.split()) == ["friend", "hello", "there"]


async def test_a_hook_that_raises_says_where_and_the_next_call_is_answered(tmp_path: Path) -> None:
    file = written(tmp_path, "def picky(parent):\n return [child(parent['name'])]")

    async with calling(file) as (_, call):
        with pytest.raises(HookError, match=r"sync hook picky raised KeyError: 'name' \(hooks.py line \d+\)"):
            await call("picky")
        assert (await call("picky", parent={"name": "a"}))["children"][0]["metadata"] == {"name": "a"}


async def test_a_hook_that_asks_for_time_is_called_later(tmp_path: Path) -> None:
    file = written(tmp_path, "def busy(parent): raise lamina.Later(7)")

    async with calling(file) as (_, call):
        with pytest.raises(HookError) as refused:
            await call("busy")
    assert refused.value.after == 7


async def test_calls_run_side_by_side(tmp_path: Path) -> None:
    """Each waits for the other: sequentially they would never end."""
    file = written(
        tmp_path,
        "def first(parent):\n open('A', 'w').close()\n while not os.path.exists('B'): time.sleep(0.01)\n return []",
        "def second(parent):\n open('B', 'w').close()\n while not os.path.exists('A'): time.sleep(0.01)\n return []",
        "async def third(parent):\n while not os.path.exists('B'): await asyncio.sleep(0.01)\n return []",
    )
    file.write_text(file.read_text() + f"\nos.chdir({str(tmp_path)!r})\n")

    async with calling(file) as (_, call):
        done = await asyncio.gather(call("third"), call("first"), call("second"))
    assert list(done) == [{"children": []}] * 3


async def test_a_hook_that_times_out_does_not_block_others(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "def slow(parent): time.sleep(1000)",
        "async def dozy(parent): await asyncio.sleep(1000)",
        "def quick(parent): return []",
    )

    async with calling(file) as (_, call):
        for name in ("slow", "dozy"):
            with pytest.raises(HookError, match=f"sync hook hook:{name}/sync took longer than 0.1s"):
                await call(name, seconds=0.1)
        assert await call("quick") == {"children": []}


async def test_when_too_many_calls_are_stuck_a_new_process_takes_over(tmp_path: Path) -> None:
    log = Loud()
    file = written(
        tmp_path,
        "def slow(parent): time.sleep(1000)",
        "def who(parent): return lamina.Response(status={'pid': os.getpid()})",
    )

    async with calling(file, log=log) as (_, call):
        before = (await call("who"))["status"]["pid"]
        stuck = [call("slow", seconds=0.2) for _ in range(supervisor.STUCK)]
        given_up = await asyncio.gather(*stuck, return_exceptions=True)
        after = (await call("who"))["status"]["pid"]

    assert all(isinstance(one, HookError) for one in given_up)
    assert before != after
    assert log.said == [f"hooks process restarted: {supervisor.STUCK} calls are stuck"]
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


@pytest.mark.parametrize(
    "end", ["os._exit(3)", "os.kill(os.getpid(), 9)", "__import__('ctypes').string_at(0)"]
)
async def test_a_process_that_dies_is_started_again(tmp_path: Path, end: str) -> None:
    file = written(tmp_path, f"def fatal(parent):\n {end}", "def fine(parent): return []")

    async with calling(file) as (_, call):
        with pytest.raises(
            HookError, match=r"sync hook fatal got no response: the process of hooks.py ended"
        ):
            await call("fatal")

        async def answer() -> Any:
            try:
                return await call("fine")
            except HookError as error:
                assert "started again shortly" in str(error)
                return None

        assert await eventually(answer, interval=0.05) == {"children": []}


async def test_nothing_stays_behind(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "def who(parent): return lamina.Response(status={'pid': os.getpid()})",
        "def slow(parent): time.sleep(1000)",
    )

    async with calling(file) as (_, call):
        pid = (await call("who"))["status"]["pid"]
        with pytest.raises(HookError):
            await call("slow", seconds=0.1)
        os.kill(pid, signal.SIGINT)
        assert (await call("who"))["status"]["pid"] == pid, "a key pressed at a terminal is not meant for it"

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_file_that_changes_is_loaded_anew_and_the_old_one_finishes(tmp_path: Path) -> None:
    flag = tmp_path / "go"
    waits = f"def who(parent):\n while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n return [child('old')]"
    file = written(tmp_path, waits, "def going(parent): return []")

    async with calling(file) as (hooks, call):
        changes = hooks.changes()
        slow = asyncio.create_task(call("who"))
        await call("going")
        written(tmp_path, "def who(parent): return [child('new')]")
        before, now = await anext(changes)

        assert [one["metadata"]["name"] for one in before] == ["who", "going"]
        assert [one["metadata"]["name"] for one in now] == ["who"]
        assert (await call("who"))["children"][0]["metadata"] == {"name": "new"}
        flag.touch()
        assert (await slow)["children"][0]["metadata"] == {"name": "old"}
        with pytest.raises(HookError, match="sync hook going does not run here"):
            await call("going")
        await changes.aclose()


async def test_a_file_that_no_longer_loads_changes_nothing(tmp_path: Path) -> None:
    log = Loud()
    file = written(tmp_path, "def fine(parent): return []")

    async with calling(file, log=log) as (hooks, call):
        changes = asyncio.ensure_future(anext(hooks.changes()))
        file.write_text(file.read_text() + "\n1 / 0\n")

        def reloaded() -> list[str]:
            hooks.reload()
            return log.said

        await eventually(reloaded, interval=0.05)
        assert await call("fine") == {"children": []}
        changes.cancel()
        await asyncio.gather(changes, return_exceptions=True)

    assert "the previous ones stay active" in log.said[0]
    assert "1 / 0" in log.said[0] and "ZeroDivisionError" in log.said[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import lamina\ndef broken(:\n", "SyntaxError"),
        ("raise ValueError('no')", "ValueError: no"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import os; os._exit(3)", "its process ended with code 3"),
        ("x = 1", "declares no controller: put @lamina.sync"),
        (
            'import lamina\n@lamina.sync("v1/pods")\ndef a(parent): return []\n'
            "@a.finalize\ndef b(parent): return []\n@a.customize\ndef c(parent): return []",
            "declares 'a' twice",
        ),
    ],
)
async def test_a_file_that_does_not_load_says_why(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(text)

    with pytest.raises(SettingsError) as refused:
        await Hooks([file], QUIET).start()

    assert "hooks.py" in str(refused.value) and complaint in str(refused.value)
    assert "importlib" not in str(refused.value), "only the user's own lines"


async def test_a_hook_put_on_top_of_another_takes_its_place_under_any_name(tmp_path: Path) -> None:
    file = written(tmp_path, "def thing(parent): return []")
    file.write_text(file.read_text() + "@thing.finalize\ndef leaving(parent): return True\n")

    async with calling(file) as (hooks, call):
        assert [list(one["spec"]["hooks"]) for one in hooks.manifests] == [["sync", "finalize"]]
        assert await call("thing", "finalize") == {"children": [], "finalized": True}


async def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere.py does not exist"):
        await Hooks([tmp_path / "nowhere.py"], QUIET).start()


async def test_two_files_cannot_declare_the_same(tmp_path: Path) -> None:
    one = written(tmp_path, "def same(parent): return []", name="one.py")
    two = written(tmp_path, "def same(parent): return []", name="two.py")

    with pytest.raises(SettingsError, match=r"both .*one.py and .*two.py declare same"):
        await Hooks([one, two], QUIET).start()


async def test_a_process_without_the_file_says_which_hook_it_lacks(tmp_path: Path) -> None:
    file = written(tmp_path, "def here(parent): return []")
    asked = Call(url="hook:gone/sync", body=b"{}", seconds=1, purpose="sync")

    async with calling(file) as (_, call):
        with pytest.raises(HookError, match=r"sync hook gone does not run here: no hook of .*hooks.py"):
            await call("gone")
    with pytest.raises(HookError, match="sync hook gone/sync is a function in a file, and this process"):
        await HookClient().call(asked)
