"""What is rolled out, asked of a running control plane: get, watch, revisions, rollback, explain."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.wire import Api
from tests.cli.conftest import Lamina
from tests.cli.test_up_and_down import api_of
from tests.scenarios.story import free_port

HOOKS = """
import lamina

@lamina.sync(
    "ctl.example.com/v1/sets", children={"v1/configmaps": lamina.Update("RollingInPlace")},
    revision_fields=["spec.colour"], revisions_kept=5,
)
def rolls(parent):
    spec = parent["spec"]
    for place in range(2):
        yield {"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": spec["colour"]},
               "metadata": {"name": f"{parent['metadata']['name']}-{place}", "labels": {"app": "x"}}}

@lamina.sync("ctl.example.com/v1/singles")
def plain(parent):
    return []
"""
GROUP = "/apis/ctl.example.com/v1/namespaces/default"
SETS = f"{GROUP}/sets"


def definition(plural: str, kind: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": schema,
    }
    return {
        "metadata": {"name": f"{plural}.ctl.example.com"},
        "spec": {
            "group": "ctl.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """A control plane whose hooks roll two ConfigMaps for every Set, and nothing for a Single."""
    command = Lamina(tmp_path_factory.mktemp("home"))
    file = command.home / "hooks.py"
    file.write_text(HOOKS)
    command.said["LAMINA_METRICS_ADDRESS"] = f"127.0.0.1:{free_port()}"
    command("up", "--detach", "--ephemeral", "--port", "0", "--hooks", str(file))
    server = api(command)
    for plural, kind in (("sets", "Set"), ("singles", "Single")):
        made = server.post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(plural, kind)
        )
        assert made.code == 201
        eventually_sync(partial(is_served, server, plural))
    yield command
    command("down")


def is_served(server: Api, plural: str) -> bool:
    return server.get(f"{GROUP}/{plural}").code == 200


def api(lamina: Lamina) -> Api:
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    return api_of(Path(running["kubeconfig"]), lamina.home)


def given_set(lamina: Lamina, name: str, *colours: str) -> None:
    """Have a set that has been each of these colours, one after the other."""
    server = api(lamina)
    for colour in colours:
        body = {
            "apiVersion": "ctl.example.com/v1",
            "kind": "Set",
            "metadata": {"name": name},
            "spec": {"colour": colour, "selector": {"matchLabels": {"app": "x"}}},
        }
        path = f"{SETS}/{name}?fieldManager=test&force=true"
        assert server.patch(path, body, content="application/apply-patch+yaml").code in (200, 201)
        both = [colour, colour]
        eventually_sync(lambda: colours_of(server, name), both.__eq__)
        eventually_sync(lambda: owner_status(lamina, name)["state"] == "Healthy")


def colours_of(server: Api, name: str) -> list[str]:
    found = [server.get(f"/api/v1/namespaces/default/configmaps/{name}-{place}") for place in range(2)]
    return [one.json.get("data", {}).get("colour", "") for one in found]


def owner_status(lamina: Lamina, name: str) -> dict[str, Any]:
    found = json.loads(lamina("get", f"set/{name}", "-o", "json").stdout)
    return dict(found[0]) if found else {"state": ""}


def test_get_prints_the_revision_and_the_targets_of_owners(lamina: Lamina) -> None:
    given_set(lamina, "seen", "red")

    told = owner_status(lamina, "seen")
    shown = lamina("get", "sets", "-n", "default").stdout.splitlines()

    assert {name: one["revision"] for name, one in told["targets"].items()} == {
        "ConfigMap seen-0": 1,
        "ConfigMap seen-1": 1,
    }
    assert (told["kind"], told["revision"]) == ("Set", 1)
    assert shown[0].split() == ["NAMESPACE", "NAME", "REVISION", "UPDATED", "AVAILABLE", "STATUS", "MESSAGE"]
    assert any(line.split()[:6] == ["default", "set/seen", "1", "2/2", "2/2", "Healthy"] for line in shown)
    assert "No owners found" in lamina("get", "-n", "elsewhere").stderr
    assert json.loads(lamina("get", "-n", "elsewhere", "-o", "json").stdout) == []


def test_metrics_of_the_families_are_served_at_the_configured_address(lamina: Lamina) -> None:
    given_set(lamina, "counted", "red")

    with urlopen(f"http://{lamina.said['LAMINA_METRICS_ADDRESS']}/metrics", timeout=60) as page:
        told = page.read().decode()

    name = 'controller="CompositeController-rolls"'
    for count in (
        f'controller_runtime_reconcile_total{{{name},result="success"}}',
        f'workqueue_adds_total{{{name},name="CompositeController-rolls"}}',
        f'lamina_objects_written_total{{{name},kind="ConfigMap",operation="created"}}',
        'metacontroller_sync_requests_total{code="200",controller_name="rolls",controller_type="CompositeController"',
    ):
        (line,) = [one for one in told.splitlines() if one.startswith(count)]
        assert float(line.rpartition(" ")[2]) >= 1


def test_an_owner_whose_children_do_not_roll_is_listed_without_a_number(lamina: Lamina) -> None:
    api(lamina).post(
        f"{GROUP}/singles",
        {
            "apiVersion": "ctl.example.com/v1",
            "kind": "Single",
            "metadata": {"name": "one"},
            "spec": {"selector": {"matchLabels": {"app": "y"}}},
        },
    )

    line = lamina("get", "single/one").stdout.splitlines()[1]

    assert line.split()[:6] == ["default", "single/one", "-", "-", "-", "Healthy"]
    assert "has no revisions" in lamina("rollback", "single/one", code=1).stderr
    nothing = "single default/one has no revisions: none of its child kinds has a rolling update strategy"
    assert nothing in lamina("revisions", "list", "single/one").stderr
    assert json.loads(lamina("revisions", "list", "single/one", "-o", "json").stdout) == []
    assert nothing in lamina("revisions", "diff", "single/one", code=1).stderr


def test_revisions_are_listed_and_compared(lamina: Lamina) -> None:
    given_set(lamina, "past", "red", "green", "blue")

    listed = json.loads(lamina("revisions", "list", "set/past", "-o", "json").stdout)
    shown = lamina("revisions", "list", "set/past").stdout.splitlines()

    assert [(one["revision"], one["role"]) for one in listed] == [
        (3, "wanted"), (2, "idle"), (1, "idle"),
    ]  # fmt: skip
    assert listed[0]["snapshot"] == {"spec": {"colour": "blue"}}
    assert shown[0].split() == ["REVISION", "ROLE", "TARGETS", "AGE", "NAME"]
    assert all(re.fullmatch(r"\d+[smh]\w*", line.split()[3]) for line in shown[1:]), shown
    assert all(one["created"] for one in listed)
    assert [line.split()[:3] for line in shown[1:]] == [
        ["3", "wanted", "2"],
        ["2", "idle", "0"],
        ["1", "idle", "0"],
    ]
    assert lamina("revisions", "diff", "set/past").stdout == "spec.colour: 'green' became 'blue'\n"
    two = ("revisions", "diff", "set/past", "--from", "1", "--to", "2")
    (change,) = json.loads(lamina(*two, "-o", "json").stdout)
    assert (change["path"], change["before"], change["after"]) == (["spec", "colour"], "red", "green")
    refused = lamina("revisions", "diff", "set/past", "--to", "9", code=1).stderr
    assert "set default/past has no revision 9: the available revisions are 1, 2, 3" in refused
    assert "hint: show them with `lamina revisions list set/past`" in refused


def test_rollback_writes_the_old_snapshot_and_the_usual_rollout_follows(lamina: Lamina) -> None:
    given_set(lamina, "back", "red", "green")
    server = api(lamina)

    rehearsed = json.loads(lamina("rollback", "set/back", "--dry-run", "-o", "json").stdout)
    assert rehearsed["stages"][0]["actions"][0]["words"] == "replace set default/back"
    (change,) = rehearsed["changes"]
    assert (change["path"], change["before"], change["after"]) == (["spec", "colour"], "green", "red")
    shown = lamina("rollback", "set/back", "--dry-run").stdout
    assert "roll back to revision 1" in shown
    assert shown.endswith("\nspec.colour: 'green' became 'red'\n")
    assert server.get(f"{SETS}/back").json["spec"]["colour"] == "green"

    assert lamina("rollback", "set/back").stdout == "rolling back set default/back to revision 1\n"

    eventually_sync(lambda: colours_of(server, "back") == ["red", "red"])
    eventually_sync(lambda: owner_status(lamina, "back")["revision"] == 3)
    assert "nothing to do" in lamina("rollback", "set/back", "--to-revision", "3").stderr


def test_explain_says_why_an_object_deployment_goes_no_further(lamina: Lamina) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    probe = {
        "selector": {"kind": {"group": "", "kind": "ConfigMap"}},
        "probes": [{"fieldsEqual": {"fieldA": ".data.key", "fieldB": ".metadata.name"}}],
    }
    template = {"phases": [{"name": "p1", "objects": [{"object": settings}]}], "availabilityProbes": [probe]}
    body = {
        "apiVersion": "package-operator.run/v1alpha1",
        "kind": "ObjectDeployment",
        "metadata": {"name": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {"metadata": {"labels": {"app": "shop"}}, "spec": template},
        },
    }
    objects = "/apis/package-operator.run/v1alpha1/namespaces/default"
    assert api(lamina).post(f"{objects}/objectdeployments", body).code == 201
    eventually_sync(lambda: api(lamina).get(f"{objects}/objectdeployments/shop").json.get("status", {}), bool)
    (listed,) = api(lamina).get(f"{objects}/objectsets").json["items"]

    because = 'Phase "p1" failed: ConfigMap default/settings: ".data.key" missing'
    for target, found in (
        ("od/shop", f"objectdeployment: Latest ObjectSet is still progressing: {because}"),
        (f"os/{listed['metadata']['name']}", f"objectset: {because}"),
    ):
        eventually_sync(partial(explained, lamina, target), found.__eq__)
        (told,) = json.loads(lamina("explain", target, "-o", "json").stdout)
        assert (told["controller"], told["because"]) == tuple(found.split(": ", 1))
        assert told["stages"] == []


def explained(lamina: Lamina, target: str) -> str:
    return lamina("explain", target).stdout.strip()


def test_explain_prints_the_next_plan_and_calls_the_hooks(lamina: Lamina) -> None:
    given_set(lamina, "why", "red")
    hooks = ("--hooks", str(lamina.home / "hooks.py"))

    (told,) = json.loads(lamina("explain", "set/why", *hooks, "-o", "json").stdout)

    assert told["controller"] == "CompositeController-rolls"
    assert told["stages"] == []
    assert lamina("explain", "set/why", *hooks).stdout.startswith("CompositeController-rolls: ")
    lacks = lamina("explain", "set/why", code=1).stderr
    assert "was given no hooks file" in lacks
    assert "`lamina explain --hooks FILE`" in lacks
    assert (
        "does not exist, or no controller reconciles it"
        in lamina("explain", "set/none", *hooks, code=1).stderr
    )
    unserved = lamina("explain", "cat/none", code=1).stderr
    assert "the server does not serve a kind 'cat'" in unserved
    assert "`kubectl api-resources`, or on a server of `lamina up` with" in unserved


def test_watch_does_not_wait_for_an_owner_that_does_not_exist(lamina: Lamina) -> None:
    unknown = "does not exist, or no family rolls it out"
    assert unknown in lamina("get", "set/unknown", code=1).stderr
    assert lamina("get", "set/unknown", "-o", "json", code=1).stdout == "[]\n"
    assert unknown in lamina("watch", "set/unknown", "--until", "healthy", code=1).stderr
    assert lamina("watch", "set/unknown", "--until", "deleted").stdout == ""
    listed = "Pending, Progressing, Healthy, Degraded, Paused, Aborting, Aborted, Deleting, Archived, Unknown or deleted"
    refused = lamina("watch", "set/unknown", "--until", "setled", code=2).stderr
    assert f"expected {listed}, got 'setled'" in refused
    assert listed in " ".join(lamina("watch", "--help").stdout.split())


@pytest.mark.parametrize(
    ("command", "target", "code", "because"),
    [
        ("get",            "set/",   1, "expected KIND or KIND/NAME, got 'set/'"),
        ("get",            "/x",     1, "expected KIND or KIND/NAME, got '/x'"),
        ("watch",          "set/a/b", 1, "expected KIND or KIND/NAME, got 'set/a/b'"),
        ("explain",        "set",    1, "expected KIND/NAME, got 'set'"),
        ("rollback",       "set",    1, "expected KIND/NAME, got 'set'"),
        ("revisions list", "set",    1, "expected KIND/NAME, got 'set'"),
        ("rollback --to-revision 1 -n nowhere", "set/a", 1, "select a namespace with -n"),
        ("revisions diff --from 0", "set/a", 2, "0 is not in the range x>=1"),
        ("rollback --to-revision 0", "set/a", 2, "Invalid value for '--to-revision': 0 is not in the range x>=1"),
        ("get --context nope", "set/a", 1, "the contexts are lamina"),
    ],
)  # fmt: skip
def test_an_invalid_target_is_refused_with_the_expected_form(
    lamina: Lamina, command: str, target: str, code: int, because: str
) -> None:
    refused = lamina(*command.split(), target, "-o", "json", code=code)

    assert because in refused.stderr
    assert refused.stdout == ""


def test_watch_ends_when_its_owner_is_deleted(lamina: Lamina) -> None:
    given_set(lamina, "leaving", "red")
    watching = subprocess.Popen(
        [sys.executable, "-m", "lamina", "watch", "set/leaving", "--until", "paused", "-o", "json"],
        env=lamina.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert first["state"] == "Healthy"
    api(lamina).delete(f"{SETS}/leaving")

    told, wrong = watching.communicate(timeout=120)

    last = json.loads(told.splitlines()[-1])
    assert last["state"] == "deleted"
    assert last.keys() == first.keys(), "all lines have the same fields"
    assert watching.returncode == 1
    assert "set default/leaving was deleted before it was Paused" in wrong


@pytest.mark.parametrize("output", ["text", "json"])
def test_watch_prints_a_line_whenever_something_changes(lamina: Lamina, output: str) -> None:
    name = f"watched-{output}"
    given_set(lamina, name, "red")
    watching = subprocess.Popen(
        [sys.executable, "-m", "lamina", "watch", f"set/{name}", "-o", output],
        env=lamina.environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    try:
        first = watching.stdout.readline()
        if output == "text":
            assert first.split()[:2] == ["NAMESPACE", "NAME"]
            assert watching.stdout.readline().split()[:6] == [
                "default",
                f"set/{name}",
                "1",
                "2/2",
                "2/2",
                "Healthy",
            ]
        else:
            assert json.loads(first)["state"] == "Healthy"

        given_set(lamina, name, "green")
        api(lamina).delete(f"{SETS}/{name}")

        lines = []
        for line in watching.stdout:
            lines.append(line)
            if "deleted" in line:
                break
        assert len(lines) == len(set(lines)), "nothing is said twice"
        settled = [line for line in lines if "Healthy" in line]
        assert settled and ("2/2" in settled[-1] or json.loads(settled[-1])["revision"] == 2)
    finally:
        watching.terminate()
        watching.wait(timeout=120)
        watching.stdout.close()
