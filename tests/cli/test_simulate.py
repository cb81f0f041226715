"""`lamina simulate`, with a file for a state and against a server; nothing is ever written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from lamina.cli.commands.simulate import Outside, simulate_cluster
from lamina.client.client import Client
from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.control_plane.load_stages import load_stages
from lamina.families.registry import chosen
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj
from lamina.simulation.cluster.kinds import POD
from lamina.simulation.scenario import Simulation
from lamina.testing import Cluster
from lamina.testing.builders import custom, deployment
from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_up_simulate import has_account, started

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:2"}]}
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet" / "web.yaml"
SHOP = Path(__file__).parents[2] / "examples" / "objectset" / "shop.yaml"
NOTHING = "apiVersion: v1\nkind: List\nitems: []\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "state.yaml").write_text(NOTHING)
    (tmp_path / "failures.yaml").write_text('images: [{image: "web:2", fails: crash}]\n')
    (tmp_path / "items.yaml").write_text("apiVersion: v1\nkind: List\nitems: [1]\n")
    (tmp_path / "nameless.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: c-}\n")
    return tmp_path


def test_a_change_is_played_without_any_server(lamina: Lamina, files: Path) -> None:
    done = lamina("simulate", str(files / "web.yaml"), "--state", str(files / "state.yaml"))

    assert done.stdout.splitlines()[-1] == "ok  deployment default/web is Healthy"


@pytest.mark.parametrize(
    ("image", "code", "end"),
    [
        ("nginx:1", 0, "ok  objectdeployment default/shop is Healthy, 4 of 4 on revision 1: "),
        ("nginx:bad", 2, "FAILED  objectdeployment default/shop is Degraded, 3 of 4 on revision 1: "),
    ],
)
def test_an_object_deployment_is_played_without_any_server(
    lamina: Lamina, files: Path, image: str, code: int, end: str
) -> None:
    (files / "shop.yaml").write_text(SHOP.read_text().replace("nginx:1", image))
    (files / "failures.yaml").write_text('images: [{image: "nginx:bad", fails: crash}]\n')

    done = lamina(
        "simulate", str(files / "shop.yaml"), "--state", str(files / "state.yaml"),
        "--failures", str(files / "failures.yaml"), code=code,
    )  # fmt: skip

    assert done.stdout.splitlines()[-1].startswith(end)


def fleet_of(count: int) -> list[Obj]:
    """Return clusters, and a placement that selects them all."""
    group = "cluster.open-cluster-management.io"
    return [
        custom(f"{group}/v1beta2", "ManagedClusterSet", "fleet", namespace=None),
        custom(f"{group}/v1beta2", "ManagedClusterSetBinding", "fleet", spec={"clusterSet": "fleet"}),
        custom(f"{group}/v1beta1", "Placement", "everywhere", spec={}),
        *(
            custom(f"{group}/v1", "ManagedCluster", f"c{number}", namespace=None,
                   labels={f"{group}/clusterset": "fleet"}, spec={"hubAcceptsClient": True})
            for number in range(count)
        ),
    ]  # fmt: skip


def test_what_happens_to_many_at_once_is_one_line(lamina: Lamina, files: Path) -> None:
    (files / "fleet.yaml").write_text(json.dumps({"kind": "List", "items": fleet_of(5)}))

    done = lamina("simulate", str(files / "fleet.yaml"), "--state", str(files / "state.yaml"))

    told = done.stdout.splitlines()
    assert "0:00:00.0  managedcluster c0 and 4 more managedclusters: Managed cluster is available" in told
    assert told[-1] == "ok  managedcluster c0 and 4 more managedclusters are Healthy"
    assert len(told) < 14


def test_no_cluster_exceeds_its_deadline_in_the_example_with_the_default_readiness(
    lamina: Lamina, files: Path
) -> None:
    (files / "fleet.yaml").write_text(json.dumps({"kind": "List", "items": fleet_of(40)}))

    done = lamina("simulate", str(files / "fleet.yaml"), str(EXAMPLE), "--state", str(files / "state.yaml"))

    assert "ok  manifestworkreplicaset default/web is Healthy, 40 of 40 on revision 1" in done.stdout
    assert "not healthy within" not in done.stdout


def test_a_deadline_that_is_too_short_is_named_beside_what_readiness_takes(
    lamina: Lamina, files: Path
) -> None:
    (files / "fleet.yaml").write_text(json.dumps({"kind": "List", "items": fleet_of(2)}))

    done = lamina(
        "simulate", str(files / "fleet.yaml"), str(EXAMPLE), "--state", str(files / "state.yaml"),
        "--ready-after", "20s",
    )  # fmt: skip

    assert "not healthy within 15s" in done.stdout
    assert re.search(r"progressing: simulated to be healthy after 2\d\.\d s", done.stdout)


def test_what_does_not_end_well_says_so_by_its_exit_code(lamina: Lamina, files: Path) -> None:
    done = lamina(
        "simulate", str(files / "web.yaml"), "--state", str(files / "state.yaml"),
        "--failures", str(files / "failures.yaml"), "-o", "json", code=2,
    )  # fmt: skip

    told = json.loads(done.stdout)
    assert (told["healthy"], told["seconds"]) == (False, 3600)
    assert [(one["object"], one["healthy"]) for one in told["results"]] == [("deployment default/web", False)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.yaml", "--state", "state.yaml"), "cannot read nowhere.yaml"),
        (("-", "--state", "-"), "standard input can be read only once"),
        (
            ("web.yaml", "--state", "state.yaml", "--for", "long"),
            "--for: expected a duration such as 30s",
        ),
        (
            ("web.yaml", "--state", "state.yaml", "--for", "-5m"),
            "--for: expected a duration such as 30s",
        ),
        (
            ("web.yaml", "--state", "state.yaml", "--ready-after", "x"),
            "--ready-after: expected a duration",
        ),
        (("--state", "state.yaml", "--rollback", "deploymentt/web"), "does not serve a kind 'deploymentt'"),
        (("--state", "state.yaml", "--rollback", "deployment/web"), "no family rolls it out"),
        (("--state", "state.yaml", "--delete", "deployment/web"), "deployment default/web not found"),
        (("--state", "failures.yaml"), "expected manifests, got a document without kind"),
        (("--state", "items.yaml"), "expected manifests, got int"),
        (("nameless.yaml", "--state", "state.yaml"), "a ConfigMap with a generateName cannot be applied"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(
    lamina: Lamina, files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(files)

    done = lamina("simulate", *arguments, code=1)

    assert said in done.stderr


class ReadOnly:
    """A way to a server that refuses every write, and every watch."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        assert method == "GET", f"a simulation must not {method} {path}"
        assert not streams, f"a simulation follows nothing, and not {path}"
        self.asked.append(path)
        return await self._inner.request(method, path, query=query, headers=headers, body=body, guard=guard)

    async def close(self) -> None:
        await self._inner.close()


async def test_a_copy_of_a_cluster_is_listed_and_nothing_is_written(cluster: Cluster) -> None:
    await cluster.given(deployment("web"))
    await cluster.pass_time(minutes=1)
    before = cluster.embedded.store.version
    way = ReadOnly(cluster.embedded.client()._transport)

    def play(kinds: Kinds, objects: Iterable[Obj], outside: Outside) -> Simulation:
        played = Simulation(
            families=chosen("all"), kinds=kinds, objects=objects, stages=load_stages(), call=outside.call,
            fetch=outside.fetch, now=cluster.clock.now(),
        )  # fmt: skip
        played.apply(deployment("web", image="web:2"))
        played.run(timedelta(hours=1))
        return played

    played = await simulate_cluster(Client(way), (), play)

    assert {one["spec"]["containers"][0]["image"] for one in played.cluster.listed(POD)} == {"web:2"}
    assert [one.healthy for one in played.final_states()] == [True]
    assert "/apis/apps/v1/deployments" in way.asked
    assert len(way.asked) == len(set(way.asked))
    assert cluster.embedded.store.version == before


def test_a_change_is_played_against_a_running_server(lamina: Lamina, files: Path) -> None:
    api = started(lamina)
    eventually_sync(lambda: has_account(api))
    web = "/apis/apps/v1/namespaces/default/deployments"
    assert api.post(web, json.loads(json.dumps(deployment("web", replicas=1)))).code == 201
    seen = eventually_sync(
        lambda: api.get(f"{web}/web").json, lambda found: found["status"].get("readyReplicas") == 1
    )

    done = lamina("simulate", str(files / "web.yaml"), "--all")

    assert "create replicaset default/web-" in done.stdout
    assert api.get(f"{web}/web").json["spec"] == seen["spec"]


def test_a_change_is_played_in_the_time_of_its_server(lamina: Lamina, files: Path) -> None:
    """A wound clock stamped the objects: deadlines count from its time, not from the system time."""
    started(lamina, "--families", "none", "--simulate", "controllers", "--speed", "0")
    lamina("clock", "wind", "2d")
    lamina("kubectl", "create", "deployment", "web", "--image=web:1")
    lamina("clock", "wind", "1s")
    shown = lamina("kubectl", "get", "deployment", "web", "-o", "yaml").stdout
    (files / "same.yaml").write_text(shown)

    failures = files / "unready.yaml"
    failures.write_text('images: [{image: "web:1", fails: unready}]')
    done = lamina("simulate", str(files / "same.yaml"), "--failures", str(failures), "-o", "json", code=2)

    told = [
        one["after"]
        for one in json.loads(done.stdout)["timeline"]
        if one["object"] == "deployment default/web"
    ]
    assert any(500 < after <= 601 for after in told)


def test_a_change_and_the_way_back_are_played_on_what_real_agents_said(lamina: Lamina, files: Path) -> None:
    started(lamina, "--clusters", "2")
    lamina("kubectl", "apply", "-f", str(EXAMPLE.with_name("placement.yaml")), "-f", str(EXAMPLE))
    lamina("watch", "mwrs/web", "--until", "healthy")
    (files / "good.yaml").write_text(EXAMPLE.read_text().replace("nginx:1", "nginx:2"))

    changed = lamina("simulate", str(files / "good.yaml"))
    back = lamina("simulate", "--rollback", "mwrs/web", "--to-revision", "1")
    (files / "read.yaml").write_text(lamina("kubectl", "get", "mwrs", "-o", "yaml").stdout)
    read = lamina(
        "simulate", str(files / "good.yaml"), "--state", str(files / "read.yaml"), "-o", "json", code=2
    )

    well = "ok  manifestworkreplicaset default/web is Healthy, 2 of 2 on revision"
    assert f"{well} 2: " in changed.stdout.splitlines()[-1]
    assert "FAILED" not in back.stdout
    assert f"{well} 1: " in back.stdout.splitlines()[-1]
    # Read as one version and applied as another it is one object, which here has no placement.
    (result,) = json.loads(read.stdout)["results"]
    assert result["because"] == "placement everywhere not found; existing works are left unchanged"
