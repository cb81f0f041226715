"""`lamina simulate` given odd things: folders, hooks of its own, what ends badly anyway, and an interrupt."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lamina.cli.commands.simulate import Outside, simulate_cluster
from lamina.client.client import Client
from lamina.client.transport.base import Response
from lamina.errors import Forbidden
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj
from lamina.testing import Cluster
from lamina.testing.builders import deployment
from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_simulate import NOTHING, WEB, ReadOnly

CATSET = Path(__file__).parents[2] / "examples" / "catset"
STUCK = """
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: stuck, namespace: default}
spec: {placementRefs: [{name: nowhere}], manifestWorkTemplate: {}}
"""
ENDLESS = """
from pathlib import Path
import lamina

@lamina.sync("ctl.example.com/v1/catsets", children={"v1/pods": "OnDelete"})
def catset(parent: lamina.Obj) -> lamina.Response:
    Path(__file__).with_name("called").touch()
    return lamina.Response(children=[], resync_after=1)
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "state.yaml").write_text(NOTHING)
    (tmp_path / "stuck.yaml").write_text(STUCK)
    return tmp_path


def test_every_manifest_in_a_folder_is_applied(lamina: Lamina, files: Path) -> None:
    folder = files / "folder"
    folder.mkdir()
    (folder / "b.yml").write_text(WEB)
    (folder / "a.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    )
    (folder / "notes.txt").write_text("this is not YAML: [")

    done = lamina("simulate", "-f", "folder", "--state", "state.yaml")

    assert done.stdout.splitlines()[:2] == [
        "0:00:00.0  configmap default/a: it is new",
        "0:00:00.0  deployment default/web: it is new",
    ]


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("{apiVersion: v1, kind: ConfigMap, metadata: x}", "odd.yaml: metadata: expected a map, got 'x'"),
        (
            "{apiVersion: v1, kind: ConfigMap}",
            "odd.yaml: expected manifests, got a document without metadata",
        ),
        ("{apiVersion: 1, kind: ConfigMap, metadata: {}}", "odd.yaml: apiVersion: expected text, got 1"),
        (
            "{apiVersion: v1, kind: Nope, metadata: {name: x}}",
            "odd.yaml: no matches for kind Nope in version v1",
        ),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: A}}", 'odd.yaml: ConfigMap "A" is invalid'),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said_with_its_file(
    lamina: Lamina, files: Path, manifest: str, said: str
) -> None:
    (files / "odd.yaml").write_text(manifest)

    assert said in lamina("simulate", "odd.yaml", "--state", "state.yaml", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to-revision", "1"), "--to-revision needs --rollback KIND/NAME"),
        (("--delete", "namespace/kube-system"), "this namespace may not be deleted"),
        (("-f", "."), ".: the folder has no file with suffix .json, .yaml, .yml"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    lamina: Lamina, files: Path, tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))

    assert said in lamina("simulate", *arguments, "--state", str(files / "state.yaml"), code=1).stderr


def test_a_change_that_changes_nothing_says_so(lamina: Lamina, files: Path) -> None:
    done = lamina("simulate", "web.yaml", "web.yaml", "--state", "state.yaml")

    assert "0:00:00.0  deployment default/web: nothing of it changes" in done.stdout.splitlines()


def test_where_there_is_nothing_that_is_said(lamina: Lamina, files: Path) -> None:
    done = lamina("simulate", "--state", "state.yaml")

    assert done.stdout == "no owners found, and no changes given\n"


def test_what_ends_badly_without_the_change_too_is_not_held_against_it(lamina: Lamina, files: Path) -> None:
    lamina("simulate", "--state", "stuck.yaml", code=2)
    lamina("simulate", "stuck.yaml", "--state", "stuck.yaml", code=2)

    done = lamina("simulate", "web.yaml", "--state", "stuck.yaml")
    told = json.loads(lamina("simulate", "web.yaml", "--state", "stuck.yaml", "-o", "json").stdout)

    assert "FAILED (also without the change)  manifestworkreplicaset default/stuck is " in done.stdout
    assert [(one["object"], one["healthy"], one["anyway"]) for one in told["results"]] == [
        ("manifestworkreplicaset default/stuck", False, True),
        ("deployment default/web", True, False),
    ]
    assert told["healthy"]


def test_controllers_that_a_file_of_hooks_declares_are_there(lamina: Lamina, files: Path) -> None:
    done = lamina(
        "simulate", str(CATSET / "kinds.yaml"), str(CATSET / "web.yaml"), "--state", "state.yaml",
        "--hooks", str(CATSET / "hooks.py"),
    )  # fmt: skip

    assert "ok  catset default/web is Healthy, 3 of 3 on revision 1" in done.stdout


def test_an_interrupt_ends_it_however_much_time_is_left_to_play(lamina: Lamina, files: Path) -> None:
    (files / "endless.py").write_text(ENDLESS)
    running = lamina.start(
        "simulate", str(CATSET / "kinds.yaml"), str(CATSET / "web.yaml"), "--state", "state.yaml",
        "--hooks", "endless.py", "--for", "3000d",
    )  # fmt: skip
    eventually_sync(lambda: (files / "called").exists())

    running.send_signal(signal.SIGINT)

    _, said = running.communicate(timeout=60)
    assert (running.returncode, said.strip()) == (130, "")


class Hiding(ReadOnly):
    """A transport to a server on which the user may not list workloads."""

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path in ("/apis/apps/v1/deployments", "/api/v1/pods"):
            raise Forbidden("you may not list these")
        return await super().request(method, path, **more)


async def test_who_may_not_see_everything_is_told_what_is_missing(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.given(deployment("web"))

    def play(kinds: Kinds, objects: Iterable[Obj], outside: Outside) -> int:
        assert outside.fetch is not None
        asked = (kinds.find("apps/v1", "Deployment"), kinds.find("v1", "Pod"))
        for _ in range(2):
            found = [outside.fetch(kind) for kind in asked if kind is not None]
        return sum(map(len, found))

    way = Hiding(cluster.embedded.client()._transport)

    assert await simulate_cluster(Client(way), (), play) == 0
    assert capsys.readouterr().err == (
        "warning: listing these in all namespaces is forbidden, and they are simulated as if there were none:"
        " deployments, pods\n\n"
    )
    assert await simulate_cluster(cluster.embedded.client(), (), play) >= 1
    assert capsys.readouterr().err == ""


def test_a_kind_of_ones_own_may_be_called_a_list(files: Path, lamina: Lamina) -> None:
    (files / "allow.yaml").write_text(
        "{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}, spec: {}}"
    )

    told = lamina("simulate", "allow.yaml", "--state", "state.yaml", code=1)

    assert "no matches for kind AllowList" in told.stderr
