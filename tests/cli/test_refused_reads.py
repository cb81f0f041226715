"""What the command line says where it may not read everything: a 403 is never taken for an empty answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.core.model.controller import Watch, no_keys, only
from lamina.core.model.queries import Answer, Follow, Listed, Refused
from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.runtime.controller.snapshot import Snapshot
from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.in_process import run_here
from tests.cli.test_owners import HOOKS as ROLLS
from tests.cli.test_owners import api, definition, given_set

WORKS = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/default/manifestworkreplicasets"
REPLICA_SET: dict[str, Any] = {
    "apiVersion": "work.open-cluster-management.io/v1alpha1",
    "kind": "ManifestWorkReplicaSet",
    "metadata": {"name": "web"},
    "spec": {
        "placementRefs": [{"name": "all"}],
        "manifestWorkTemplate": {
            "workload": {
                "manifests": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": "a", "namespace": "default"},
                    }
                ]
            }
        },
    },
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "package-operator.run/v1alpha1",
    "kind": "ObjectDeployment",
    "metadata": {"name": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {
                "availabilityProbes": [],
                "phases": [
                    {
                        "name": "one",
                        "objects": [
                            {
                                "object": {
                                    "apiVersion": "v1",
                                    "kind": "ConfigMap",
                                    "metadata": {"name": "settings"},
                                }
                            }
                        ],
                    }
                ],
            },
        },
    },
}


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """A control plane whose hooks roll two ConfigMaps for every Set, and two clusters with a work each."""
    command = Lamina(tmp_path_factory.mktemp("home"))
    file = command.home / "hooks.py"
    file.write_text(ROLLS)
    command("up", "--detach", "--ephemeral", "--port", "0", "--clusters", "2", "--hooks", str(file))
    server = api(command)
    made = server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("sets", "Set"))
    assert made.code == 201
    eventually_sync(lambda: server.get("/apis/ctl.example.com/v1/namespaces/default/sets").code == 200)
    given_set(command, "a", "red")
    for path, body in {
        "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/default/managedclustersetbindings": {
            "apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "global"},
            "spec": {"clusterSet": "global"},
        },
        "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placements": {
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "metadata": {"name": "all"},
            "spec": {},
        },
        WORKS: REPLICA_SET,
        "/apis/package-operator.run/v1alpha1/namespaces/default/objectdeployments": DEPLOYMENT,
    }.items():
        posted = server.post(path, body)
        assert posted.code == 201, posted.json
    for target in ("mwrs/web", "od/shop"):
        eventually_sync(partial(state, command, target), "Healthy".__eq__)
    yield command
    command("down")


def state(lamina: Lamina, target: str) -> str:
    (found,) = json.loads(lamina("get", target, "-o", "json").stdout)
    return str(found["state"])


@contextmanager
def refusing(lamina: Lamina, **options: str) -> Iterator[None]:
    """Have the server answer 403 to the requests that these options of `lamina chaos refuse` select."""
    selected = [part for name, value in options.items() for part in (f"--{name}", value)]
    run_here(lamina, "chaos", "refuse", "403", *selected)
    try:
        yield
    finally:
        run_here(lamina, "chaos", "stop")


# The controllers of the server itself have listed before; a fault ends no watch of theirs.


def test_targets_that_may_not_be_read_are_unknown_and_not_counted(lamina: Lamina) -> None:
    with refusing(lamina, verbs="list,watch", resources="manifestworks"):
        shown = run_here(lamina, "get", "mwrs/web")
        (told,) = json.loads(run_here(lamina, "get", "mwrs/web", "-o", "json").stdout)
        revisions = run_here(lamina, "revisions", "list", "mwrs/web")
        status = run_here(lamina, "status", "mwrs/web").stdout
        watched = run_here(lamina, "watch", "mwrs/web", "--until", "healthy").stdout

    because = "cannot list manifestworks.work.open-cluster-management.io in all namespaces: "
    assert [line.split()[:6] for line in shown.stdout.splitlines()[1:2]] == [
        ["default", "manifestworkreplicaset/web", "1", "?", "?", "Healthy"]
    ]
    assert f"warning: {because}" in shown.stderr
    rows = [line.split()[:4] for line in shown.stdout.splitlines()[4:]]
    assert rows == [["cluster1", "?", "?", "Unknown"], ["cluster2", "?", "?", "Unknown"]]
    assert (told["updated"], told["available"], told["revision"]) == (None, None, 1)
    assert told["targets"]["cluster1"]["message"].startswith(because)
    assert [line.split()[:3] for line in revisions.stdout.splitlines()[1:]] == [["1", "wanted", "?"]]
    assert status.startswith("manifestworkreplicaset default/web is Healthy, ? updated, ? available")
    assert watched.splitlines()[-1].split()[2:6] == ["1", "?", "?", "Healthy"]


@pytest.mark.parametrize(
    ("target", "resources", "named"),
    [
        ("mwrs/web", "manifestworkreplicasets", "manifestworkreplicasets.work.open-cluster-management.io"),
        ("od/shop", "objectdeployments", "objectdeployments.package-operator.run"),
        ("set/a", "sets", "sets.ctl.example.com"),
        ("set/a", "compositecontrollers", "compositecontrollers.metacontroller.k8s.io"),
    ],
)
def test_owners_that_may_not_be_read_are_not_absent(
    lamina: Lamina, target: str, resources: str, named: str
) -> None:
    word = target.partition("/")[0]
    with refusing(lamina, verbs="list,watch", resources=resources):
        refusals = [
            run_here(lamina, *command, code=1).stderr
            for command in (
                ("get", target),
                ("get", word, "-n", "default"),
                ("get", word, "-o", "json"),
                ("watch", target, "--until", "healthy"),
                ("status", target),
                ("revisions", "list", target),
                ("rollback", target),
                ("explain", target),
            )
        ]
        everything = run_here(lamina, "get", "-n", "default", code=1)

    for refusal in refusals:
        assert f"cannot list {named}" in refusal
        assert "does not exist" not in refusal
    assert "No owners found" not in "".join(refusals)
    # What may be read is shown.
    kept = "objectdeployment/shop" if word != "od" else "manifestworkreplicaset/web"
    assert kept in everything.stdout
    assert f"there may be more owners: cannot list {named}" in everything.stderr


def test_revisions_that_may_not_be_read_are_not_numbered_from_one(lamina: Lamina) -> None:
    for target, resources in (("mwrs/web", "controllerrevisions"), ("set/a", "controllerrevisions")):
        with refusing(lamina, verbs="list,watch", resources=resources):
            row = run_here(lamina, "get", target).stdout.splitlines()[1].split()
            refused = run_here(lamina, "rollback", target, code=1).stderr

        assert row[2:5] == ["?", "?", "?"]
        assert "the revisions of" in refused and "cannot list controllerrevisions" in refused


def test_objects_that_may_not_be_read_are_unknown(lamina: Lamina) -> None:
    with refusing(lamina, verbs="list,watch", resources="configmaps"):
        deployment = run_here(lamina, "get", "od/shop", "-n", "default")
        parent = json.loads(run_here(lamina, "get", "set/a", "-o", "json").stdout)[0]

    assert deployment.stdout.splitlines()[1].split()[3:6] == ["?", "?", "Healthy"]
    assert "Unknown" in deployment.stdout.splitlines()[4]
    assert "cannot list configmaps in namespace default: " in deployment.stderr
    assert {one["state"] for one in parent["targets"].values()} == {"Unknown"}
    assert (parent["updated"], parent["available"]) == (None, None)


def test_a_namespace_is_asked_alone(lamina: Lamina) -> None:
    everywhere = "/apis/package-operator.run/v1alpha1/objectdeployments"
    with refusing(lamina, verbs="list,watch", path=everywhere):
        assert "objectdeployment/shop" in run_here(lamina, "get", "od", "-n", "default").stdout
        assert "objectdeployment/shop" in run_here(lamina, "get", "od/shop", "-n", "default").stdout
        watched = run_here(lamina, "watch", "od/shop", "--until", "healthy")
        refused = run_here(lamina, "get", "od", code=1).stderr
        listed = run_here(lamina, "revisions", "list", "od/shop").stdout

    assert "Healthy" in watched.stdout
    assert "cannot list objectdeployments.package-operator.run in all namespaces" in refused
    assert "select a namespace with -n" in refused
    assert "wanted" in listed


def test_kinds_that_are_in_no_namespace_are_not_needed_for_one(lamina: Lamina) -> None:
    with refusing(lamina, verbs="list,watch", resources="clusterobjectdeployments,clusterobjectsets"):
        found = run_here(lamina, "get", "-n", "default").stdout
        everywhere = run_here(lamina, "get", code=1).stderr
    with refusing(lamina, verbs="list,watch", resources="compositecontrollers"):
        unknown = run_here(lamina, "get", "-n", "default", code=1).stderr

    assert "objectdeployment/" in found
    assert "cannot list clusterobjectdeployments" in everywhere
    assert "cannot list compositecontrollers" in unknown


def test_nothing_is_planned_from_what_may_not_be_read(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    edited = json.loads(json.dumps(REPLICA_SET))
    edited["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["data"] = {"a": "b"}
    file.write_text(json.dumps(edited))
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}))

    with refusing(lamina, verbs="list,watch", resources="manifestworks"):
        planned = run_here(lamina, "plan", str(file), code=1).stderr
        explained = run_here(lamina, "explain", "mwrs/web", code=1).stderr
    with refusing(lamina, verbs="list,watch", resources="compositecontrollers"):
        unknown = run_here(lamina, "plan", str(plain)).stdout

    because = "cannot list manifestworks.work.open-cluster-management.io in all namespaces"
    assert (
        f"what the edit of manifestworkreplicaset default/web would change is not known: {because}" in planned
    )
    assert f"would do is not known: {because}" in explained
    assert "it is not known whether Lamina rolls it out: cannot list compositecontrollers" in unknown


def test_plans_are_made_from_all_namespaces_where_they_may_be_listed(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    spec = {"colour": "blue", "selector": {"matchLabels": {"app": "x"}}}
    edited = {"apiVersion": "ctl.example.com/v1", "kind": "Set", "metadata": {"name": "a"}, "spec": spec}
    file.write_text(json.dumps(edited))
    hooks = ("--hooks", str(lamina.home / "hooks.py"))
    commands = [("explain", "set/a", *hooks), ("plan", str(file), *hooks)]

    whole = [run_here(lamina, *command) for command in commands]
    with refusing(lamina, verbs="list,watch", path="/api/v1/configmaps"):
        narrowed = [run_here(lamina, *command) for command in commands]

    for before, after in zip(whole, narrowed, strict=True):
        assert "warning" not in before.stderr
        assert "warning: cannot list configmaps in all namespaces: " in after.stderr
        assert "only those in namespace default are known" in after.stderr
        assert before.stdout == after.stdout


async def answers(lamina: Lamina) -> dict[str, Answer | str]:
    """Return what a snapshot for plans in one namespace answers of a ConfigMap in another one, and in any."""
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    client = Client(HttpTransport(read_kubeconfig(Path(running["kubeconfig"]))))
    found: dict[str, Answer | str] = {}
    try:
        snapshot = await Snapshot.of(client, "default", widens=True)
        kind = snapshot.kinds.find("v1", "ConfigMap")
        assert kind is not None
        anywhere = Follow(kind=kind, names=("far",))
        for name, follow in {
            "anywhere": anywhere,
            "refusable": replace(anywhere, refusable=True),
            "there": replace(anywhere, namespaces=("kube-public",)),
        }.items():
            try:
                found[name] = (await snapshot.ask([follow]))[follow]
            except Forbidden as error:
                found[name] = str(error)
        watch = Watch(selects=only("", "ConfigMap"), enqueue=no_keys)
        cached = (await snapshot.world([watch])).every(kind.group_kind)
        found["cached"] = Listed(tuple(one for one in cached if meta.name(one) == "far"))
    finally:
        await client.close()
    return found


def test_a_query_about_all_namespaces_is_not_answered_from_one(lamina: Lamina) -> None:
    path = "/api/v1/namespaces/kube-public/configmaps"
    made = api(lamina).post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far"}})
    assert made.code == 201
    try:
        whole = asyncio.run(answers(lamina))
        with refusing(lamina, verbs="list,watch", path="/api/v1/configmaps"):
            narrowed = asyncio.run(answers(lamina))
    finally:
        api(lamina).delete(f"{path}/far")

    for answer in (*whole.values(), narrowed["there"]):
        assert isinstance(answer, Listed) and len(answer.objects) == 1
    assert narrowed["cached"] == Listed(())
    assert isinstance(narrowed["refusable"], Refused)
    assert "cannot list configmaps in all namespaces" in str(narrowed["anywhere"])


GRAPHS = "/apis/kro.run/v1alpha1/resourcegraphdefinitions"
NOTES = "/apis/kro.run/v1alpha1/namespaces/default/notes"
GRAPH: dict[str, Any] = {
    "apiVersion": "kro.run/v1alpha1",
    "kind": "ResourceGraphDefinition",
    "metadata": {"name": "note"},
    "spec": {
        "schema": {"apiVersion": "v1alpha1", "kind": "Note", "spec": {"text": "string"}},
        "resources": [
            {
                "id": "config",
                "template": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "${schema.metadata.name}"},
                    "data": {"text": "${schema.spec.text}"},
                },
            }
        ],
    },
}
NOTE: dict[str, Any] = {"apiVersion": "kro.run/v1alpha1", "kind": "Note", "metadata": {"name": "note-1"}}


@pytest.fixture(scope="module")
def graph(lamina: Lamina) -> Lamina:
    """The same control plane, with a graph and an instance of it."""
    server = api(lamina)
    assert server.post(GRAPHS, GRAPH).code == 201
    eventually_sync(lambda: server.get(NOTES).code == 200)
    assert server.post(NOTES, {**NOTE, "spec": {"text": "a"}}).code == 201
    for target in ("note/note-1", "rgd/note"):
        eventually_sync(partial(state, lamina, target), "Healthy".__eq__)
    return lamina


def test_a_watch_counts_no_instances_that_may_not_be_listed(graph: Lamina) -> None:
    with refusing(graph, verbs="list,watch", resources="notes"):
        watched = run_here(graph, "watch", "rgd/note", "--until", "healthy").stdout
    known = run_here(graph, "watch", "rgd/note", "--until", "healthy").stdout

    assert watched.splitlines()[-1].split()[2:6] == ["1", "?", "?", "Healthy"]
    assert known.splitlines()[-1].split()[2:6] == ["1", "1/1", "1/1", "Healthy"]
