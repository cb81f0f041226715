"""The standard error of the processes that run controllers: JSON throughout where that is asked for."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Lamina
from tests.cli.test_owners import GROUP, definition
from tests.cli.test_up_and_down import api_of

HOOKS = """
import os, sys
import lamina

print("loaded")

@lamina.sync("ctl.example.com/v1/sets", children={"v1/configmaps": "InPlace"}, generate_selector=True)
def maps(parent):
    print("called")
    os.write(2, b"twice\\n")
    raise ValueError("not today")
"""
FLEET = Path(__file__).parents[2] / "examples" / "fleet"
JSON = "--log-format", "json", "--log", "info"


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yield each line of standard error, which has to be a JSON object with an event and a level."""
    assert process.stderr is not None
    for line in process.stderr:
        found = json.loads(line)
        assert isinstance(found, dict) and found["event"] and found["level"] and found["timestamp"], line
        yield found


def until(said: Iterator[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    """Return the lines up to the first one of an event."""
    found = []
    for line in said:
        found.append(line)
        if line["event"] == event:
            return found
    raise AssertionError(f"no line {event!r} in {found}")


def stopped(process: subprocess.Popen[str], said: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Stop a process, and return the rest of its lines."""
    process.send_signal(signal.SIGTERM)
    rest = list(said)
    assert process.wait(timeout=120) == 0
    assert process.stderr is not None
    process.stderr.close()
    return rest


def make_set(kubeconfig: Path, home: Path) -> None:
    api = api_of(kubeconfig, home)
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("sets", "Set"))
    kind = {"apiVersion": "ctl.example.com/v1", "kind": "Set"}
    assert api.post(f"{GROUP}/sets", {**kind, "metadata": {"name": "a"}, "spec": {}}).code == 201


@pytest.mark.parametrize("command", ["up", "run"])
def test_every_line_is_json_the_banner_and_the_tracebacks_and_prints_of_hooks_included(
    lamina: Lamina, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)
    if command == "up":
        process = lamina.start("up", "--ephemeral", "--port", "0", "--hooks", str(file), *JSON)
    else:
        lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
        process = lamina.start("run", str(file), "--families", "metacontroller", *JSON)
    said = lines(process)
    before = until(said, "started")
    assert "loaded" in [one["text"] for one in before if one["event"] == "hook output"]
    assert before[-1]["server"].startswith("https://")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)

    make_set(Path(running["kubeconfig"]), lamina.home)
    seen = until(said, "hook raised")
    seen += until(said, "reconcile failed")

    raised = next(one for one in seen if one["event"] == "hook raised")
    assert raised["level"] == "error" and raised["file"] == str(file)
    assert raised["text"].startswith("Traceback") and "ValueError: not today" in raised["text"]
    assert "raised ValueError: not today" in seen[-1]["because"] and seen[-1]["level"] == "warning"
    seen += stopped(process, said)
    assert {"called", "twice"} <= {one["text"] for one in seen if one["event"] == "hook output"}
    assert "stopping" in [one["event"] for one in seen]


def test_an_error_that_ends_the_process_is_json_too(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "hooks.py"
    file.write_text("1 / 0\n")

    said = lamina("up", "--ephemeral", "--port", "0", "--hooks", str(file), *JSON, code=1).stderr

    line = [json.loads(line) for line in said.splitlines()][-1]
    assert line["level"] == "error" and "ZeroDivisionError" in line["event"]


def test_a_signal_is_answered_with_what_the_process_waits_for(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    process = lamina.start("run", "--families", "metacontroller", "--log", "error")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("lamina runs metacontroller on https://")

    process.send_signal(signal.SIGTERM)
    assert process.stderr.read() == "lamina stops\n"
    assert process.wait(timeout=120) == 0
    process.stderr.close()


def test_an_abort_and_a_controller_that_cannot_start_are_warnings(lamina: Lamina) -> None:
    process = lamina.start(
        "up", "--ephemeral", "--port", "0", "--clusters", "2", "--speed", "20",
        "--log-format", "json", "--log", "warning",
    )  # fmt: skip
    said = lines(process)
    until(said, "started")
    kind = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController"}
    spec = {
        "parentResource": {"apiVersion": "ctl.example.com/v1", "resource": "nowheres"},
        "hooks": {"sync": {"webhook": {"url": "http://hook/sync"}}},
    }
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), lamina.home)
    made = api.post(
        "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers",
        {**kind, "metadata": {"name": "lost"}, "spec": spec},
    )
    assert made.code == 201

    refused = until(said, "create error")[-1]
    assert (refused["level"], refused["object"]) == ("warning", "compositecontroller lost")
    assert refused["because"].startswith("Cannot create new controller: ")

    lamina("kubectl", "apply", "-f", str(FLEET))
    lamina("watch", "mwrs/web", "--until", "healthy")
    broken = lamina.home / "broken.yaml"
    broken.write_text((FLEET / "web.yaml").read_text().replace("nginx:1", "nginx:bad"))
    lamina("kubectl", "apply", "-f", str(broken))

    aborted = until(said, "rollout aborted")
    late = [one for one in aborted if one["event"] == "progress deadline exceeded"]
    assert {one["level"] for one in (*late, aborted[-1])} == {"warning"} and late
    assert aborted[-1]["object"] == "manifestworkreplicaset default/web"
    stopped(process, said)
