"""`lamina plan`: what an apply of manifests would do, before it is made; nothing is ever written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.cli.dry_run_apply import Applied, AppliedAs, ApplyFlags, dry_run_apply
from lamina.cli.output.print_preview import AppliedPreview, preview_data, previews_text
from lamina.core.rollout.preview import ChangeKind, Preview, TargetChange
from lamina.errors import Conflict, SpecError
from lamina.merge.client_side import annotated
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.testing import Cluster
from lamina.testing.builders import config_map, deployment
from lamina.testing.waiting import eventually_sync
from tests.bed.wire import Api
from tests.cli.conftest import Lamina
from tests.cli.test_owners import api, definition, given_set, is_served

HOOKS = """
import lamina

@lamina.sync(
    "ctl.example.com/v1/sets", revision_fields=["spec.colour"], revisions_kept=5,
    children={"v1/configmaps": lamina.Update("RollingInPlace"), "v1/secrets": lamina.Update("InPlace")},
)
def rolls(parent):
    spec, name = parent["spec"], parent["metadata"]["name"]
    labels = spec["selector"]["matchLabels"]
    for place in range(spec.get("count", 2)):
        yield {"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": spec["colour"]},
               "metadata": {"name": f"{name}-{place}", "labels": labels}}
    if spec.get("key"):
        yield {"apiVersion": "v1", "kind": "Secret", "data": {"key": spec["key"]},
               "metadata": {"name": name, "labels": labels}}

@lamina.sync("ctl.example.com/v1/singles", children=["v1/configmaps"])
def plain(parent):
    return []
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet"
GROUP = "work.open-cluster-management.io"
CORE = "/api/v1/namespaces/default"
WRITTEN = (
    f"{CORE}/configmaps", f"{CORE}/secrets", "/apis/ctl.example.com/v1/sets", "/apis/ctl.example.com/v1/singles",
    "/apis/metacontroller.k8s.io/v1alpha1/controllerrevisions", f"/apis/{GROUP}/v1/manifestworks",
    f"/apis/{GROUP}/v1alpha1/manifestworkreplicasets", "/apis/apps/v1/controllerrevisions",
    "/apis/package-operator.run/v1alpha1/objectdeployments", "/apis/package-operator.run/v1alpha1/objectsets",
)  # fmt: skip
"""The collections that an apply of the manifests below, or the rollout that follows, would write to."""


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """A control plane with three clusters, an example rolled out to them, and a hook that rolls ConfigMaps for Sets."""
    command = Lamina(tmp_path_factory.mktemp("home"))
    file = command.home / "hooks.py"
    file.write_text(HOOKS)
    command("up", "--detach", "--ephemeral", "--port", "0", "--clusters", "3", "--hooks", str(file))
    server = api(command)
    for plural, kind in (("sets", "Set"), ("singles", "Single")):
        server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(plural, kind))
        eventually_sync(partial(is_served, server, plural))
    command("kubectl", "wait", "managedclusters", "--all", "--timeout=60s",
            "--for=condition=ManagedClusterConditionAvailable")  # fmt: skip
    command("kubectl", "apply", "-f", str(EXAMPLE))
    command("watch", "mwrs/web", "--until", "healthy")
    yield command
    command("down")


def set_of(name: str, colour: str, **spec: Any) -> Made:
    return {
        "apiVersion": "ctl.example.com/v1",
        "kind": "Set",
        "metadata": {"name": name},
        "spec": {"colour": colour, "selector": {"matchLabels": {"app": "x"}}, **spec},
    }


def owned_by(name: str) -> dict[str, Any]:
    """Return the part of a Set's spec that selects children of its own."""
    return {"selector": {"matchLabels": {"app": name}}}


def written(lamina: Lamina, *manifests: Made) -> str:
    """Write manifests to a file of their own, and return its path."""
    file = lamina.home / f"manifests-{len(list(lamina.home.iterdir()))}.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return str(file)


def planned(lamina: Lamina, *arguments: str) -> list[dict[str, Any]]:
    """Return a preview as data, and check that nothing was written for it."""
    server = api(lamina)
    before = versions(server)
    found = lamina("plan", *arguments, "--hooks", str(lamina.home / "hooks.py"), "-o", "json").stdout
    assert versions(server) == before
    return list(json.loads(found))


def versions(server: Api) -> dict[str, str]:
    """Return the resourceVersion of every object that a preview could have written, by its uid."""
    found = [server.get(path) for path in WRITTEN]
    assert {one.code for one in found} == {200}
    metadata = [obj["metadata"] for one in found for obj in one.json["items"]]
    return {one["uid"]: one["resourceVersion"] for one in metadata}


def changes(preview: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (one["step"], one["target"], one["change"], one["revision"], one["toRevision"])
        for one in preview["changes"]
    ]


# Owners


def test_a_new_owner_would_create_its_targets(lamina: Lamina) -> None:
    (found,) = planned(lamina, "-f", written(lamina, set_of("fresh", "red", **owned_by("fresh"))))

    assert changes(found) == [
        (0, "ConfigMap fresh-0", "create", 0, 1),
        (0, "ConfigMap fresh-1", "create", 0, 1),
    ]
    assert (found["namespace"], found["name"]) == ("default", "fresh")
    assert (found["applied"], found["rolledOut"], found["revision"]) == ("created", True, 1)
    assert api(lamina).get(f"{CORE}/configmaps/fresh-0").code == 404


def test_an_edit_is_shown_step_by_step_from_one_revision_to_the_next(lamina: Lamina) -> None:
    given_set(lamina, "edited", "red")
    file = written(lamina, set_of("edited", "green"))
    hooks = ("--hooks", str(lamina.home / "hooks.py"))

    lines = lamina("plan", "-f", file, "--force-conflicts", *hooks).stdout.splitlines()
    (found,) = planned(lamina, "-f", file)

    assert lines[0].startswith(
        "set/edited in namespace default configured (dry run), revision 2: moving ConfigMap "
    )
    assert lines[1].split() == ["STEP", "TARGET", "CHANGE", "REVISION", "MESSAGE"]
    assert [line.split() for line in lines[2:]] == [
        ["1", "ConfigMap", "edited-0", "update", "1", "->", "2"],
        ["2", "ConfigMap", "edited-1", "update", "1", "->", "2"],
    ]
    assert changes(found) == [
        (1, "ConfigMap edited-0", "update", 1, 2),
        (2, "ConfigMap edited-1", "update", 1, 2),
    ]


def test_the_preview_of_an_edit_is_what_the_apply_does(lamina: Lamina) -> None:
    given_set(lamina, "kept", "red")
    file = written(lamina, set_of("kept", "blue", count=1, key="a2V5", **owned_by("x")))
    (found,) = planned(lamina, "-f", file)
    lamina("kubectl", "apply", "-f", file)
    server = api(lamina)

    eventually_sync(lambda: server.get(f"{CORE}/configmaps/kept-1").code == 404)
    eventually_sync(lambda: server.get(f"{CORE}/configmaps/kept-0").json["data"]["colour"] == "blue")
    eventually_sync(lambda: server.get(f"{CORE}/secrets/kept").code == 200)
    assert changes(found) == [
        (1, "ConfigMap kept-0", "update", 1, 2),
        (0, "ConfigMap kept-1", "delete", 1, 0),
        (0, "Secret kept", "create", 0, 2),
    ]


def test_an_orphan_in_the_same_manifests_would_be_adopted(lamina: Lamina) -> None:
    """The controller would find it, although a dry run did not store it."""
    orphan = config_map("takes-0", {"colour": "red"}, labels={"app": "takes"})
    file = written(lamina, json.loads(json.dumps(orphan)), set_of("takes", "red", **owned_by("takes")))

    plain, found = planned(lamina, "-f", file)

    assert (plain["rolledOut"], plain["because"], plain["changes"]) == (False, "not rolled out by Lamina", [])
    assert plain.keys() == found.keys()
    assert (0, "ConfigMap takes-0", "adopt", 0, 1) in changes(found)


def test_clusters_would_move_at_the_pace_of_the_strategy(lamina: Lamina) -> None:
    file = lamina.home / "web.yaml"
    file.write_text((EXAMPLE / "web.yaml").read_text().replace("nginx:1", "nginx:2"))

    (found,) = planned(lamina, str(file))

    assert changes(found) == [
        (1, "cluster1", "update", 1, 2),
        (1, "cluster2", "update", 1, 2),
        (2, "cluster3", "update", 1, 2),
    ]
    assert found["changes"][0]["message"] == "waits to be moved to revision 2"


def object_deployment(name: str, *names: str, data: str) -> Made:
    """An ObjectDeployment with a phase for each of these ConfigMaps."""
    phases = [
        {
            "name": f"p{place}",
            "objects": [
                {
                    "object": {
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": one}, "data": {"key": data},
                    }
                }
            ],
        }
        for place, one in enumerate(names)
    ]  # fmt: skip
    return {
        "apiVersion": "package-operator.run/v1alpha1",
        "kind": "ObjectDeployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"phases": phases}},
        },
    }


def test_a_new_revision_of_an_object_deployment_takes_over_creates_and_deletes(lamina: Lamina) -> None:
    (new,) = planned(
        lamina, "-f", written(lamina, object_deployment("shop", "settings", "shop-1", data="one"))
    )
    assert changes(new) == [
        (1, "p0/ConfigMap default/settings", "create", 0, 1),
        (2, "p1/ConfigMap default/shop-1", "create", 0, 1),
    ]
    lamina(
        "kubectl", "apply", "-f", written(lamina, object_deployment("shop", "settings", "shop-1", data="one"))
    )
    lamina("watch", "od/shop", "--until", "healthy")

    (found,) = planned(
        lamina, "-f", written(lamina, object_deployment("shop", "settings", "shop-2", data="two"))
    )

    assert changes(found) == [
        (1, "p0/ConfigMap default/settings", "update", 1, 2),
        (2, "p1/ConfigMap default/shop-2", "create", 0, 2),
        (0, "ConfigMap default/shop-1", "delete", 1, 0),
    ]


def test_manifests_as_they_are_change_nothing(lamina: Lamina) -> None:
    """A folder, of which two objects are not rolled out."""
    lines = lamina("plan", "-f", str(EXAMPLE)).stdout.splitlines()

    assert lines[:2] == [
        "managedclustersetbinding/global in namespace default unchanged (dry run), not rolled out by Lamina",
        "placement/everywhere in namespace default unchanged (dry run), not rolled out by Lamina",
    ]
    assert lines[2].startswith(
        "manifestworkreplicaset/web in namespace default unchanged (dry run), revision 1: "
    )
    assert "nothing would change" in lines[2]
    assert len(lines) == 3


def test_an_owner_without_revisions_is_previewed_without_numbers(lamina: Lamina) -> None:
    single = {**set_of("alone", "red", **owned_by("alone")), "kind": "Single"}

    (found,) = planned(lamina, "-f", written(lamina, single))

    assert (found["rolledOut"], found["revision"], found["changes"]) == (True, 0, [])


def test_yaml_is_the_same_data(lamina: Lamina) -> None:
    found = yaml.safe_load(lamina("plan", "-f", str(EXAMPLE), "-o", "yaml").stdout)

    assert found == planned(lamina, "-f", str(EXAMPLE))


def test_a_namespace_is_taken_from_the_flag_where_a_manifest_has_none(lamina: Lamina) -> None:
    file = written(lamina, set_of("there", "red", **owned_by("there")))

    (found,) = planned(lamina, "-f", file, "-n", "kube-public")

    assert found["namespace"] == "kube-public"


# Text


def test_an_error_that_the_controller_would_report_is_below_the_headline() -> None:
    applied = Applied(set_of("a", "red"), AppliedAs.CREATED)
    wrong = Preview(owner=applied.obj, goal=2, changes=(), failure=SpecError("spec.colour: there is no red"))
    leaving = TargetChange(
        target="ConfigMap a-0", kind=ChangeKind.RELEASE, revision=1, step=1, message="it differs"
    )
    moving = Preview(owner=applied.obj, goal=2, changes=(leaving,))

    lines = previews_text([AppliedPreview(applied, wrong), AppliedPreview(applied, moving)]).splitlines()

    assert lines == [
        "set/a created (dry run), revision 2: nothing would change",
        "reports an error: spec.colour: there is no red",
        "",
        "set/a created (dry run), revision 2",
        "STEP   TARGET          CHANGE    REVISION   MESSAGE",
        "1      ConfigMap a-0   release   1          it differs",
    ]
    assert preview_data(AppliedPreview(applied, wrong))["failure"] == "spec.colour: there is no red"


# Errors


@pytest.mark.parametrize(
    ("manifest", "flags", "said"),
    [
        (
            {**set_of("a", "red"), "kind": "Sett"},
            "",
            ("no matches for kind Sett in version ctl.example.com/v1", "apply its CustomResourceDefinition first"),
        ),
        (set_of("a", "red"), "-n nowhere", ('namespaces "nowhere" not found', "create the namespace first")),
        ({**set_of("a", "red"), "metadata": {}}, "", ("a Set without a name", "set metadata.name")),
        (
            {**set_of("a", "red"), "metadata": {"name": 5}},
            "",
            ("Set: metadata.name: expected text, got 5", "put it in quotes"),
        ),
        (
            {**set_of("a", "red"), "spec": {}},
            "",
            ("set default/a: spec.selector: expected a label selector", "set it to the labels of its children"),
        ),
        (
            {**set_of("a", "red"), "metadata": {"name": "a", "labels": {"a": "-"}}},
            "",
            ('Set.ctl.example.com "a" is invalid: metadata.labels: Invalid value: "-"',),
        ),
    ],
)  # fmt: skip
def test_an_error_names_the_file_the_object_the_field_and_the_remedy(
    lamina: Lamina, manifest: Made, flags: str, said: tuple[str, ...]
) -> None:
    file = written(lamina, manifest)
    hooks = ("--hooks", str(lamina.home / "hooks.py"))

    refused = lamina("plan", "-f", file, *flags.split(), *hooks, code=1)

    assert refused.stdout == ""
    assert refused.stderr.startswith(f"error: {file}: ")
    for one in said:
        assert one in refused.stderr


@pytest.mark.parametrize("name", ["web", "other"])
def test_an_unknown_field_is_named_without_the_rest_of_the_object(lamina: Lamina, name: str) -> None:
    file = lamina.home / "typo.yaml"
    file.write_text((EXAMPLE / "web.yaml").read_text().replace("- name: every", "- nam: every").replace(
        "metadata: {name: web, namespace: default}\nspec:\n  pl", f"metadata: {{name: {name}}}\nspec:\n  pl"
    ))  # fmt: skip

    refused = lamina("plan", "-f", str(file), code=1).stderr

    assert refused.startswith(f"error: {file}: manifestworkreplicaset default/{name}: ")
    assert refused.endswith('strict decoding error: unknown field "spec.placementRefs[0].nam"\n')
    assert len(refused) < 400


def test_fields_of_another_manager_are_taken_over_with_a_flag(lamina: Lamina) -> None:
    given_set(lamina, "shared", "red")
    file = written(lamina, set_of("shared", "green"))

    refused = lamina("plan", "-f", file, "--server-side", code=1).stderr
    (found,) = planned(lamina, "-f", file, "--server-side", "--force-conflicts")

    assert 'conflict with "test"' in refused and ".spec.colour" in refused
    assert "hint: take the fields over with --force-conflicts" in refused
    assert [one["change"] for one in found["changes"]] == ["update", "update"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected manifests, got none"),
        (("-f", "nowhere.yaml"), "cannot read nowhere.yaml: No such file or directory"),
        (("-f", "-", "-f", "-"), "standard input can be read only once"),
        (("-f", "broken.yaml"), "broken.yaml is not valid YAML"),
        (("-f", "other.yaml"), "other.yaml: expected manifests, got a document without kind"),
        (("-f", "empty.yaml"), "expected manifests, got files without objects"),
        (("-f", "set.yaml"), "set.yaml: set default/a: sync hook rolls/sync is a function in a file"),
    ],
)
def test_a_file_that_cannot_be_planned_is_refused(
    lamina: Lamina, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(lamina.home)
    Path("broken.yaml").write_text("{")
    Path("other.yaml").write_text("a: b")
    Path("empty.yaml").write_text("---\n")
    Path("set.yaml").write_text(yaml.safe_dump(set_of("a", "red")))

    assert lamina("plan", *arguments, code=1).stderr.startswith(f"error: {said}")


# Dry runs


async def test_a_dry_run_is_a_three_way_merge_and_stores_nothing(cluster: Cluster) -> None:
    web = json.loads(json.dumps(deployment("web")))
    web["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    await cluster.client.create(annotated(web))
    await cluster.client.patch(meta.ref(web), {"metadata": {"labels": {"by": "another"}}})
    before = cluster.embedded.store.version

    without = json.loads(json.dumps(deployment("web", image="web:2")))
    found = await dry_run_apply(cluster.client, without, ApplyFlags())

    containers = found.obj["spec"]["template"]["spec"]["containers"]
    assert [(one["name"], one["image"]) for one in containers] == [("main", "web:2")]
    assert found.obj["metadata"]["labels"] == {"by": "another"}
    assert found.how is AppliedAs.CONFIGURED
    assert (await dry_run_apply(cluster.client, web, ApplyFlags())).how is AppliedAs.UNCHANGED
    assert cluster.embedded.store.version == before


async def test_an_object_that_was_applied_on_the_server_side_is_applied_so_again(cluster: Cluster) -> None:
    await cluster.client.apply(config_map("settings", {"a": "1", "b": "1"}), manager="kubectl")
    await cluster.client.apply(config_map("settings", {"c": "1"}), manager="other")
    contested = config_map("settings", {"c": "2"})

    found = await dry_run_apply(cluster.client, config_map("settings", {"a": "2"}), ApplyFlags())
    forced = await dry_run_apply(cluster.client, contested, ApplyFlags(force=True))

    assert found.obj["data"] == {"a": "2", "c": "1"}
    assert forced.obj["data"] == {"c": "2"}
    with pytest.raises(Conflict):
        await dry_run_apply(cluster.client, contested, ApplyFlags())
