"""`lamina chaos` and `lamina clock`, as somebody types them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lamina.cli.amounts import as_length, length, share
from lamina.cli.troubles import sentence
from lamina.errors import SettingsError
from lamina.faults import Cut, Expire, Fault, Refuse, Silence, Slow, Stale
from tests.bed.patience import eventually
from tests.cli.conftest import Lamina
from tests.cli.test_simulating import started


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Silence(), "requests get no answer"),
        (Silence(after=True, verbs=("create",)), "create requests get no answer, though they are carried out"),
        (Slow(seconds=2, verbs=("list", "watch")), "list and watch requests are answered 2s late"),
        (Refuse(code=429, rate=0.2), "20% of requests are answered 429"),
        (Refuse(code=500, after=True, times=3), "requests are answered 500, though they are carried out, 3 times"),
        (Refuse(resources=("pods", "pods/status"), times=1), "requests for pods, pods/status are answered 503, once"),
        (Refuse(path="/apis/*", users=("jane",)), "requests at /apis/* by jane are answered 503"),
        (Cut(), "watches that are open end"),
        (Cut(events=1), "watches end after 1 event"),
        (Cut(events=5, rate=0.5), "50% of watches end after 5 events"),
        (Expire(), "watch and list requests that go on where they were are answered 410"),
        (Stale(), "get and list and watch requests show the cluster as it was"),
        (Stale(seconds=30, verbs=("list",)), "list requests are 30s behind"),
        (Stale(versions=3, verbs=("get",)), "get requests are 3 versions behind"),
    ],
)  # fmt: skip
def test_a_fault_is_said_in_words(fault: Fault, said: str) -> None:
    assert sentence(fault) == said


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1h30m", 5400), ("2d", 172800), ("1d2h3m", 93780), ("200ms", 0.2), ("5", 5)],
)
def test_lengths_of_time_are_read_and_said(text: str, seconds: float) -> None:
    assert length(text, "TIME") == seconds
    assert length(as_length(seconds), "TIME") == seconds


@pytest.mark.parametrize("text", ["", "soon", "0s", "-5s", "nan", "inf", "1000000h", "1d-2h", "d2h", "1dd"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="TIME: expected a length of time such as 30s, 10m or 1d"):
        length(text, "TIME")


def test_shares_are_read() -> None:
    assert (share("20%", "x"), share("0.2", "x"), share("100%", "x")) == (0.2, 0.2, 1.0)
    for text in ("0", "200%", "some"):
        with pytest.raises(SettingsError, match="--rate: expected a share such as 20% or 0.2"):
            share(text, "--rate")


def broken(lamina: Lamina) -> list[dict[str, Any]]:
    return list(json.loads(lamina("chaos", "show", "-o", "json").stdout))


def test_both_kinds_of_trouble_are_made_shown_and_taken_back(lamina: Lamina) -> None:
    api = started(lamina, "--nodes", "2", "--families", "none")
    eventually(lambda: api.get("/api/v1/nodes/sim-1").code == 200)
    assert "nothing is broken" in lamina("chaos", "show").stderr

    made = lamina("chaos", "refuse", "503", "--verbs", "create", "--resources", "secrets", "-o", "json")
    assert json.loads(made.stdout)["id"] == "refuse-1"
    assert lamina("chaos", "fail", "web:2", "--share", "20%").stdout == "fail-1: 20% of pods of web:2 crash\n"
    assert lamina("chaos", "fail", "db", "--how", "unready").stdout == "fail-2: pods of db are not ready\n"
    lamina("chaos", "node-down", "sim-1")

    secret = {"metadata": {"name": "s"}}
    assert api.post("/api/v1/namespaces/default/secrets", secret).code == 503
    node = eventually(lambda: api.get("/api/v1/nodes/sim-1").json, lambda found: "taints" in found["spec"])
    assert node["metadata"]["annotations"]["sim/not-ready"] == "true"
    shown = lamina("chaos", "show").stdout
    assert shown.splitlines()[0].split() == ["ID", "WHAT", "MET"]
    assert [one["id"] for one in broken(lamina)] == ["refuse-1", "fail-1", "fail-2", "node-down-sim-1"]
    assert broken(lamina)[0]["met"] == 1

    lamina("chaos", "stop", "refuse-1", "fail-1")
    assert [one["id"] for one in broken(lamina)] == ["fail-2", "node-down-sim-1"]
    mended = lamina("chaos", "stop").stderr
    assert mended.splitlines() == [
        "mended fail-2: pods of db are not ready",
        "mended node-down-sim-1: node sim-1 is silent",
    ]
    assert broken(lamina) == []


def test_what_makes_no_sense_is_said(lamina: Lamina) -> None:
    started(lamina, "--simulate", "off")

    assert "there is no node 'x'; the nodes are none" in lamina("chaos", "node-down", "x", code=1).stderr
    assert 'there is no verb "lists"' in lamina("chaos", "slow", "1s", "--verbs", "lists", code=1).stderr
    assert "400<=x<=599" in lamina("chaos", "refuse", "200", code=2).stderr
    assert "nothing that is broken is called 'x'" in lamina("chaos", "stop", "x", code=1).stderr
    assert "TIME: expected a length of time" in lamina("clock", "wind", "soon", code=1).stderr
    assert "N: expected a number from 0 to 1000000" in lamina("clock", "speed", "nan", code=1).stderr
    assert "TIME: expected a day at most" in lamina("chaos", "slow", "25h", code=1).stderr
    for option in ("--verbs", "--resources", "--users", "--path"):
        assert f"{option} names nothing" in lamina("chaos", "silence", option, " ,", code=1).stderr
    never = lamina("chaos", "cut-watches", "--verbs", "list", code=1).stderr
    assert "--verbs: this fault never meets a request to list" in never
    named = lamina("chaos", "refuse", "503", "--resources", "deployments.apps", code=1).stderr
    assert '--resources: no request is for "deployments.apps"' in named
    assert "IMAGE names nothing" in lamina("chaos", "fail", " ", code=1).stderr
    assert (
        "TIME: expected 3660d at most, which are ten years" in lamina("clock", "wind", "4000d", code=1).stderr
    )
    both = lamina("chaos", "stale", "1s", "--versions", "2", code=1).stderr
    assert "stale takes TIME or --versions" in both


def test_all_that_is_said_of_a_fault_reaches_the_server(lamina: Lamina) -> None:
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


def test_a_silent_server_is_mended_and_can_be_stopped(lamina: Lamina) -> None:
    started(lamina, "--families", "none")
    lamina("chaos", "silence")
    assert [one["id"] for one in broken(lamina)] == ["silence-1"]
    lamina("chaos", "stop")

    lamina("chaos", "silence")
    assert "stopped" in lamina("down").stderr


def test_time_is_shown_wound_and_paced(lamina: Lamina) -> None:
    started(lamina, "--simulate", "off", "--speed", "0", "--clusters", "east")
    before = json.loads(lamina("clock", "show", "-o", "json").stdout)
    assert before["speed"] == 0

    assert "ahead  23h59m" in lamina("clock", "wind", "1d").stdout
    assert "speed  60" in lamina("clock", "speed", "60").stdout

    assert json.loads(lamina("clock", "show", "-o", "json").stdout)["now"] > before["now"]
    assert "speed  60" in lamina("clock", "show", "--context", "east").stdout
    refused = lamina("clock", "wind", "1m", "--context", "east", code=1).stderr
    assert "all clusters of a server have one clock: it is wound at the server's own address" in refused


@pytest.mark.parametrize("text", ["fast", "-1", "1e9"])
def test_a_speed_that_is_none_is_refused(lamina: Lamina, text: str) -> None:
    said = lamina("up", "--speed", text, "--ephemeral", code=1).stderr

    assert f"'{text}' is no speed" in said
    assert "How fast time passes for objects" in said
