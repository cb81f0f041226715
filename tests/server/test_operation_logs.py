"""Log lines, as text and JSON."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from lamina.app import App
from lamina.logs import Log
from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.api.dispatch import Api
from lamina.server.http.request import Request
from lamina.server.identity import ADMIN
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.tls.certificates import Certificates
from tests.server.raw_http import CONFIG_MAPS, TOKEN, reach, serving


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_line_is_a_phrase_and_keys(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "text")
    log.info("revision recorded", object="default/web", because='moving "east" to 4', count=3, done=True)

    (line,) = capsys.readouterr().err.splitlines()
    stamp, _, rest = line.partition(" ")
    assert datetime.fromisoformat(stamp.removeprefix("timestamp=")).tzinfo == UTC
    assert rest == (
        'level=info event="revision recorded" object=default/web because="moving \\"east\\" to 4" count=3 done=true'
    )


def test_a_line_for_machines_is_json(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    log.warning("revision recorded", object="default/wüb", count=3, because="two\nlines")

    (line,) = capsys.readouterr().err.splitlines()
    response = json.loads(line)
    assert datetime.fromisoformat(response.pop("timestamp")).tzinfo == UTC
    assert response == {
        "level": "warning",
        "event": "revision recorded",
        "object": "default/wüb",
        "count": 3,
        "because": "two\nlines",
    }


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_lines_below_the_level_are_not_written(
    log: Log, capsys: pytest.CaptureFixture[str], level: str, written: list[str]
) -> None:
    log.configure(level, "json")
    for method in (log.debug, log.info, log.warning, log.error):
        method("said")

    assert [json.loads(line)["level"] for line in capsys.readouterr().err.splitlines()] == written


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_exception_is_written_in_one_line_with_its_traceback(
    log: Log, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    log.configure("warning", form)
    try:
        raise RuntimeError("on purpose")
    except RuntimeError:
        log.exception("request failed", path="/x")

    (line,) = capsys.readouterr().err.splitlines()
    assert "Traceback (most recent call last)" in line
    assert "RuntimeError: on purpose" in line
    assert "/x" in line


def test_keys_can_be_bound(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("debug", "json")
    bound = log.bind(controller="garbage").bind(object="a")
    for method in (bound.debug, bound.info, bound.warning, bound.error):
        method("said", object="b")
    try:
        raise RuntimeError
    except RuntimeError:
        bound.exception("said")

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["controller"], line["object"]) for line in lines] == [("garbage", "b")] * 4 + [
        ("garbage", "a")
    ]


def test_nothing_is_loaded_before_something_is_said() -> None:
    program = (
        "import sys\nfrom lamina.logs import log\nlog.info('nothing')\n"
        "assert 'structlog' not in sys.modules\nlog.error('something')\nassert 'structlog' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stderr.count("\n") == 1 and "event=something" in done.stderr


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_that_is_asked_ordinary_things_says_nothing(
    app: App, logged: Callable[[], str]
) -> None:
    async with await reach(app) as wire:
        for path in (
            "/version",
            CONFIG_MAPS,
            f"{CONFIG_MAPS}/none",
            "/nope",
            "/api/v1/namespaces?watch=1&timeoutSeconds=1",
        ):
            await wire.send_request("GET", path)
        await wire.send(b"nonsense\r\n\r\n")
        await wire.read_response()
    async with await reach(app) as wire:
        await wire.send(wire.request_bytes("GET", "/api/v1/namespaces?watch=1"))
        await wire.read_head()
        wire.abort()

    assert logged() == ""


@pytest.mark.asyncio(loop_scope="module")
async def test_our_own_mistake_is_logged_once_and_answered_without_its_traceback(
    certificates: Certificates, logged: Callable[[], str]
) -> None:
    def broken() -> bool:
        raise RuntimeError("a secret")

    store = MemoryStore()
    api: Api = assemble(store, lambda: datetime.now(UTC), Authenticator({TOKEN: ADMIN}), {"broken": broken})
    async with serving(api, certificates) as served, await served.connect() as wire:
        answer = await wire.send_request("GET", "/readyz")
        after = await wire.send_request("GET", "/version")
    inside = await api.handle(Request("GET", "/readyz", user=ADMIN))
    await store.close()

    assert (answer.status, answer.json["reason"]) == (500, "InternalError")
    assert answer.message == "Internal error occurred: see the server's log"
    assert "secret" not in answer.body.decode()
    assert (after.status, inside.status) == (200, 500)
    first, second = logged().splitlines()
    for line in (first, second):
        assert 'event="request failed" method=GET path=/readyz' in line
        assert line.count("RuntimeError: a secret") == 1
