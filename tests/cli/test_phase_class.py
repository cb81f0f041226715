"""`lamina run --phase-class`: the objects of a class on another cluster than its ObjectSetPhases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.cli.commands.run import run
from lamina.cli.options import run_flags
from lamina.cli.options.phase_class_flags import served_class
from lamina.client.kubeconfig.read import Access
from lamina.client.kubeconfig.write import write_kubeconfig
from lamina.errors import LaminaError, SettingsError
from lamina.families.registry import chosen
from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_agent import Servers
from tests.cli.test_up_and_down import api_of

GROUP = "/apis/package-operator.run/v1alpha1/namespaces/default"
TEXT = "/api/v1/namespaces/default/configmaps/text"


@pytest.fixture
def up(lamina: Lamina) -> Iterator[Servers]:
    servers = Servers(lamina)
    yield servers
    servers.stop()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    file = tmp_path / "target.kubeconfig"
    write_kubeconfig(file, Access(server="https://127.0.0.1:1", token="theirs"), name="there")
    return file


def flags(*arguments: str) -> run_flags.Flags:
    """Return what `lamina run` makes of its arguments."""
    return dict(run.make_context("run", list(arguments)).params)


def refusal(*arguments: str, families: str = "all", hooks: tuple[Path, ...] = ()) -> LaminaError:
    with pytest.raises(LaminaError) as refused:
        served_class(flags(*arguments), chosen(families), hooks)
    return refused.value


def test_without_a_class_the_families_run() -> None:
    assert served_class(flags(), chosen("all"), ()) is None


def test_a_class_is_served_by_its_controller_alone(target: Path) -> None:
    served = served_class(
        flags("--phase-class", "East.1", "--target-kubeconfig", str(target)), chosen("all"), ()
    )

    assert served is not None
    assert (served.name, served.target.server) == ("East.1", "https://127.0.0.1:1")
    assert [one.name for one in served.controllers] == ["objectsetphase-East.1"]
    assert [one.name for one in served.families] == ["objectset"]


@pytest.mark.parametrize(
    ("arguments", "complaint", "remedy"),
    [
        (["--phase-class", "east"], "--phase-class needs the cluster", "with --target-kubeconfig FILE"),
        (["--target-kubeconfig", "FILE"], "--target-kubeconfig has no effect", "with --phase-class NAME"),
        (["--target-context", "there"], "--target-context has no effect", "with --phase-class NAME"),
        (["--phase-class", "a/b", "--target-kubeconfig", "FILE"], '--phase-class: "a/b"', "63 letters"),
        (["--phase-class", "", "--target-kubeconfig", "FILE"], '--phase-class: ""', "63 letters"),
        (["--phase-class", "x" * 64, "--target-kubeconfig", "FILE"], "--phase-class: ", "63 letters"),
        (["--phase-class", "default", "--target-kubeconfig", "FILE"], "the class default is served", "another name"),
        (["--phase-class", "east", "--target-kubeconfig", "/none"], "/none", "with --target-kubeconfig FILE"),
        (
            ["--phase-class", "east", "--target-kubeconfig", "FILE", "--target-context", "moon"],
            "moon", "there",
        ),
    ],
)  # fmt: skip
def test_a_flag_that_is_wrong_is_named_with_what_to_do(
    arguments: list[str], complaint: str, remedy: str, target: Path
) -> None:
    error = refusal(*(str(target) if one == "FILE" else one for one in arguments))

    assert complaint in str(error)
    assert remedy in f"{error} {error.hint}"


def test_what_a_class_cannot_run_is_said(target: Path) -> None:
    both = ("--phase-class", "east", "--target-kubeconfig", str(target))

    assert "hooks.py" in str(refusal(*both, hooks=(Path("hooks.py"),)))
    error = refusal(*both, families="manifestwork")
    assert isinstance(error, SettingsError) and "add objectset" in (error.hint or "")


def test_each_class_has_leases_of_its_own() -> None:
    def lease(*arguments: str) -> str:
        return run_flags.lease_config(flags(*arguments), "here").name

    names = [
        lease(),
        lease("--phase-class", "east"),
        lease("--phase-class", "east-1"),
        lease("--phase-class", "East"),
        lease("--phase-class", "a_b"),
        lease("--phase-class", "east", "--lease-name", "other"),
    ]

    assert names[:2] == ["lamina", "lamina-east-phase-class"]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() and "_" not in name for name in names)


def test_a_target_that_does_not_let_it_in_is_named_with_its_flag(lamina: Lamina, up: Servers) -> None:
    hub = up("--simulate", "off")
    known = yaml.safe_load(hub.read_text())
    for one in known["users"]:
        one["user"] = {"token": "expired"}
    file = lamina.home / "expired"
    file.write_text(yaml.safe_dump(known))

    said = lamina(
        "run", "--phase-class", "east", "--target-kubeconfig", str(file), "--kubeconfig", str(hub), code=1
    ).stderr

    assert "error: the cluster of --target-kubeconfig, https://127.0.0.1:" in said and "Traceback" not in said
    assert "hint: check that it is running" in said


def object_set(phase_class: str) -> dict[str, Any]:
    text = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "text"}, "data": {"colour": "red"}}
    phase = {"name": "p", "class": phase_class, "objects": [{"object": text}]}
    return {
        "apiVersion": "package-operator.run/v1alpha1",
        "kind": "ObjectSet",
        "metadata": {"name": "v1"},
        "spec": {"lifecycleState": "Active", "phases": [phase]},
    }


def test_objects_of_the_class_are_on_the_target_and_go_with_their_set(
    lamina: Lamina, up: Servers, tmp_path: Path
) -> None:
    there_file = up("--families", "none", "--simulate", "controllers")
    hub_file = up("--families", "objectset", "--simulate", "controllers")
    folders = [tmp_path / "there", tmp_path / "hub"]
    for folder in folders:
        folder.mkdir()
    there, hub = api_of(there_file, folders[0]), api_of(hub_file, folders[1])
    process = lamina.start(
        "run", "--phase-class", "Hosted", "--target-kubeconfig", str(there_file), "--kubeconfig", str(hub_file),
    )  # fmt: skip
    assert process.stderr is not None
    try:
        started = "lamina serves the phases of class Hosted of https://"
        assert any(started in line for line in process.stderr)

        assert hub.post(f"{GROUP}/objectsets", object_set("Hosted")).code == 201
        eventually_sync(lambda: _available(hub.get(f"{GROUP}/objectsets/v1").json) == "True")
        assert there.get(TEXT).json["data"] == {"colour": "red"}
        assert hub.get(TEXT).code == 404

        there.delete(TEXT)
        eventually_sync(lambda: there.get(TEXT).code == 200)

        hub.delete(f"{GROUP}/objectsets/v1")
        eventually_sync(lambda: there.get(TEXT).code == 404)
        eventually_sync(lambda: hub.get(f"{GROUP}/objectsets/v1").code == 404)
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()


def _available(obj: dict[str, Any]) -> str:
    said = (obj.get("status") or {}).get("conditions") or ()
    return next((one["status"] for one in said if one["type"] == "Available"), "")
