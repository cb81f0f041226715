"""`lamina chaos` and `lamina clock`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_up_simulate import started


def broken(lamina: Lamina) -> list[dict[str, Any]]:
    return list(json.loads(lamina("chaos", "show", "-o", "json").stdout))


def test_faults_of_requests_pods_and_nodes_are_added_listed_and_removed(lamina: Lamina) -> None:
    api = started(lamina, "--nodes", "2", "--families", "none")
    eventually_sync(lambda: api.get("/api/v1/nodes/sim-1").code == 200)
    assert "no faults are active" in lamina("chaos", "show").stderr

    made = lamina("chaos", "refuse", "503", "--verbs", "create", "--resources", "secrets", "-o", "json")
    assert json.loads(made.stdout)["id"] == "refuse-1"
    assert lamina("chaos", "fail", "web:2", "--share", "20%").stdout == "fail-1: 20% of pods of web:2 crash\n"
    assert lamina("chaos", "fail", "db", "--how", "unready").stdout == "fail-2: pods of db are not ready\n"
    lamina("chaos", "node-down", "sim-1")

    secret = {"metadata": {"name": "s"}}
    assert api.post("/api/v1/namespaces/default/secrets", secret).code == 503
    node = eventually_sync(
        lambda: api.get("/api/v1/nodes/sim-1").json, lambda found: "taints" in found["spec"]
    )
    assert node["metadata"]["annotations"]["sim/not-ready"] == "true"
    shown = lamina("chaos", "show").stdout
    assert shown.splitlines()[0].split() == ["ID", "FAULT", "HITS"]
    assert [one["id"] for one in broken(lamina)] == ["refuse-1", "fail-1", "fail-2", "node-down-sim-1"]
    assert broken(lamina)[0]["met"] == 1

    lamina("chaos", "stop", "refuse-1", "fail-1")
    assert [one["id"] for one in broken(lamina)] == ["fail-2", "node-down-sim-1"]
    removed = lamina("chaos", "stop").stderr
    assert removed.splitlines() == [
        "removed fail-2: pods of db are not ready",
        "removed node-down-sim-1: node sim-1 is unreachable",
    ]
    assert broken(lamina) == []


def test_invalid_arguments_are_refused_with_the_reason(lamina: Lamina) -> None:
    started(lamina, "--simulate", "off")

    assert "there is no node 'x'; the nodes are none" in lamina("chaos", "node-down", "x", code=1).stderr
    assert 'unknown verb "lists"' in lamina("chaos", "slow", "1s", "--verbs", "lists", code=1).stderr
    assert "400<=x<=599" in lamina("chaos", "refuse", "200", code=2).stderr
    assert "there is no fault 'x'" in lamina("chaos", "stop", "x", code=1).stderr
    assert "TIME: expected a duration" in lamina("clock", "wind", "soon", code=1).stderr
    assert "N: expected a number from 0 to 1000000" in lamina("clock", "speed", "nan", code=1).stderr
    assert "TIME: expected at most a day" in lamina("chaos", "slow", "25h", code=1).stderr
    for option in ("--verbs", "--resources", "--users", "--path"):
        assert f"{option} is empty" in lamina("chaos", "silence", option, " ,", code=1).stderr
    never = lamina("chaos", "cut-watches", "--verbs", "list", code=1).stderr
    assert "--verbs: this fault does not apply to list" in never
    named = lamina("chaos", "refuse", "503", "--resources", "deployments.apps", code=1).stderr
    assert '--resources: no request is for "deployments.apps"' in named
    assert "IMAGE is empty" in lamina("chaos", "fail", " ", code=1).stderr
    assert "TIME: expected 3660d (ten years) at most" in lamina("clock", "wind", "4000d", code=1).stderr
    both = lamina("chaos", "stale", "1s", "--versions", "2", code=1).stderr
    assert "stale takes TIME or --versions" in both


def test_every_option_of_a_fault_reaches_the_server(lamina: Lamina) -> None:
    started(lamina, "--simulate", "off")

    lamina(
        "chaos", "refuse", "429", "--retry-after", "7", "--after", "--verbs", "get, list", "--resources", "pods,secrets",
        "--path", "/api/*", "--users", "jane,system:*", "--rate", "20%", "--times", "3", "--seed", "9",
    )  # fmt: skip
    lamina("chaos", "stale", "30s")
    lamina("chaos", "cut-watches", "--after-events", "5")

    refuse, stale, cut = broken(lamina)
    assert {key: refuse[key] for key in refuse if key not in ("id", "what", "sort", "met")} == {
        "fault": "refuse", "code": 429, "retryAfter": 7, "after": True, "verbs": ["get", "list"],
        "resources": ["pods", "secrets"], "path": "/api/*", "users": ["jane", "system:*"], "rate": 0.2,
        "times": 3, "seed": 9,
    }  # fmt: skip
    assert (stale["seconds"], cut["events"]) == (30, 5)


def test_a_silenced_server_accepts_the_removal_of_the_fault_and_can_be_stopped(lamina: Lamina) -> None:
    started(lamina, "--families", "none")
    lamina("chaos", "silence")
    assert [one["id"] for one in broken(lamina)] == ["silence-1"]
    lamina("chaos", "stop")

    lamina("chaos", "silence")
    assert "stopped" in lamina("down").stderr


def test_time_is_shown_wound_and_paced(lamina: Lamina) -> None:
    started(lamina, "--simulate", "controllers", "--families", "none", "--speed", "0", "--clusters", "east")
    before = json.loads(lamina("clock", "show", "-o", "json").stdout)
    assert before["speed"] == 0

    assert "ahead  23h59m" in lamina("clock", "wind", "1d").stdout
    assert "speed  60" in lamina("clock", "speed", "60").stdout

    assert json.loads(lamina("clock", "show", "-o", "json").stdout)["now"] > before["now"]
    assert "speed  60" in lamina("clock", "show", "--context", "east").stdout
    refused = lamina("clock", "wind", "1m", "--context", "east", code=1).stderr
    assert "all clusters of a server have one clock: it is wound at the server's own address" in refused


@pytest.mark.parametrize("text", ["fast", "-1", "1e9"])
def test_an_invalid_speed_is_refused(lamina: Lamina, text: str) -> None:
    said = lamina("up", "--speed", text, "--ephemeral", code=1).stderr

    assert f"invalid speed: '{text}'" in said
    assert "Speed of the clock" in said
