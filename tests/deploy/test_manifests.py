"""`lamina manifests` prints an installation: what runs, with which rights, and what can be left out."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.app import App
from lamina.cli.commands.manifests import manifests
from lamina.cli.commands.rbac import rbac
from lamina.cli.commands.run import run
from lamina.errors import SettingsError
from lamina.families.registry import FamilyOptions, chosen
from lamina.objects.types import Made
from lamina.settings import Settings
from tests.deploy.rights import Right, of_kind, rights

IMAGE = "registry.example.com/lamina:1"
FAMILIES = ("metacontroller", "manifestwork", "objectset", "resourcegraph")


def printed(*arguments: str) -> list[Made]:
    done = CliRunner().invoke(manifests, ["--image", IMAGE, "-o", "json", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    items: list[Made] = json.loads(done.stdout)["items"]
    return items


def the(objects: list[Made], kind: str) -> Made:
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


def arguments_of(objects: list[Made]) -> list[str]:
    (container,) = the(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def only(*families: str) -> list[str]:
    return [word for one in FAMILIES if one not in families for word in ("--set", f"families.{one}=false")]


def test_the_image_is_required() -> None:
    with pytest.raises(SettingsError, match="no image is given") as refused:
        CliRunner().invoke(manifests, [], catch_exceptions=False)

    assert "--image" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("families.none=true", "unknown field `none`"),
        ("replicas=two", "Expected `int`, got `str` - at `$.replicas`"),
        ("webhook.port=0", "Expected `int` >= 1 - at `$.webhook.port`"),
        ("logFormat=xml", "at `$.logFormat`"),
        ("replicas", "expected NAME=VALUE, got 'replicas'"),
    ],
)
def test_a_wrong_value_is_named(setting: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        CliRunner().invoke(manifests, ["--image", IMAGE, "--set", setting], catch_exceptions=False)

    assert message in str(refused.value)


def test_values_of_files_are_merged_and_flags_come_last(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("replicas: 3\nwebhook: {port: 1000}\n")
    second.write_text("webhook: {enabled: true}\npodLabels: {team: red}\n")

    made = printed("-f", str(first), "-f", str(second), "--set", "replicas=4")

    deployment = the(made, "Deployment")["spec"]
    assert deployment["replicas"] == 4
    assert deployment["template"]["metadata"]["labels"]["team"] == "red"
    assert "--webhook-bind-address=:1000" in arguments_of(made)


def test_the_pod_has_the_least_privileges() -> None:
    pod = the(printed(), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == IMAGE
    assert container["resources"]["limits"] == {"memory": "1Gi"}


@pytest.mark.parametrize(
    "values",
    [
        [],
        [*only("metacontroller")],
        [*only("objectset"), "--set", "installCrds=false"],
        ["--set", "scheduler=false", "--set", "shards=3"],
        ["--set", "webhook.url=https://127.0.0.1:9443/hook"],
        ["--set", "webhook.enabled=false"],
    ],
)
def test_the_arguments_are_those_of_run(values: list[str]) -> None:
    made = printed(*values)

    command, *words = arguments_of(made)

    assert command == "run"
    assert run.make_context("run", words).params["lease_namespace"] == "lamina-system"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_that_is_left_out_has_no_rights_and_does_not_run(family: str) -> None:
    every, without = printed(), printed("--set", f"families.{family}=false")

    assert f"--families={','.join(one for one in FAMILIES if one != family)}" in arguments_of(without)
    assert rights(of_kind(without, "ClusterRole")) < rights(of_kind(every, "ClusterRole"))
    has_webhook = family != "manifestwork"
    assert any("--webhook" in one for one in arguments_of(without)) is has_webhook


def test_an_installation_without_extras_has_none() -> None:
    kinds = {one["kind"] for one in printed()}
    asked = printed(
        "--set", "alerts.enabled=true", "--set", "dashboard.enabled=true",
        "--set", "metrics.serviceMonitor.enabled=true",
    )  # fmt: skip
    least = printed(
        "--set", "replicas=1", "--set", "networkPolicy.enabled=false", "--set", "rbac.create=false"
    )

    extras = {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
    assert not kinds & extras
    assert extras <= {one["kind"] for one in asked}
    assert {one["kind"] for one in least} == {"Namespace", "ServiceAccount", "Service", "Deployment"}


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ([], ["--install", "--webhook", "--aggregate-roles"]),
        (["--set", "installCrds=false", "--set", "webhook.enabled=false"], ["--aggregate-roles"]),
        (["--set", "scheduler=false"], ["--install", "--webhook", "--no-scheduler", "--aggregate-roles"]),
        (["--set", "rbac.aggregateRoles=false"], ["--install", "--webhook"]),
        (
            ["--set", "upstreamLeases=false"],
            ["--install", "--webhook", "--aggregate-roles", "--no-upstream-lease"],
        ),
        (
            only("metacontroller", "resourcegraph"),
            ["--install", "--aggregate-roles", "--families", "metacontroller,resourcegraph"],
        ),
    ],
)
async def test_the_roles_are_those_that_rbac_prints(values: list[str], flags: list[str]) -> None:
    async with App(Settings(ephemeral=True, port=0, families="none", simulate="off")) as app:
        words = [
            *flags,
            "--account",
            "lamina-system/lamina",
            "--kubeconfig",
            str(app.kubeconfig),
            "-o",
            "json",
        ]
        done = await asyncio.to_thread(CliRunner().invoke, rbac, words)
    assert done.exit_code == 0, done.output
    theirs = json.loads(done.stdout)["items"]

    made = printed(*values)

    mine, wanted = by_role(made), by_role(theirs)
    assert mine.keys() >= wanted.keys()
    for role in mine.keys() | wanted.keys():
        assert {right for right in mine.get(role, set()) if right[1] != "leases"} == {
            right for right in wanted.get(role, set()) if right[1] != "leases"
        }, role
    # Those of the originals are granted by name in every namespace: which exist is not known beforehand.
    leases = {right for right in mine["Role", "lamina"] if right[1] == "leases"}
    assert leases == {right for right in wanted["Role", "lamina"] if right[1] == "leases"}
    named = {right[3] for right in mine["ClusterRole", "lamina"] if right[1:3] == ("leases", "update")}
    assert named == (set() if "--no-upstream-lease" in flags else upstream_names(flags))


def upstream_names(flags: list[str]) -> set[str]:
    names = flags[flags.index("--families") + 1] if "--families" in flags else "all"
    scheduled = "--no-scheduler" not in flags
    families = chosen(names, FamilyOptions(schedules=scheduled, registers=scheduled))
    return {lease.name for family in families for lease in family.upstream_leases}


def by_role(objects: list[Made]) -> dict[tuple[str, str], set[Right]]:
    roles = [one for one in objects if one["kind"] in ("Role", "ClusterRole")]
    return {(one["kind"], one["metadata"]["name"]): uncovered(rights(one["rules"])) for one in roles}


def uncovered(found: set[Right]) -> set[Right]:
    """Return rights without those on single objects that are granted on all."""
    return {right for right in found if not right[3] or (*right[:3], "") not in found}
