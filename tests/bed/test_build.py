"""Keys of artefacts, and what goes before the cache."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from tests.bed.build import APISERVER, E2E, FAMILIES, KUBECTL_34, KUBECTL_35, built


def test_a_key_changes_with_the_sources_and_with_the_flags(tmp_path: Path) -> None:
    module = tmp_path / "module"
    shutil.copytree(KUBECTL_35.module, module)
    copied = dataclasses.replace(KUBECTL_35, module=module)
    assert copied.key() == KUBECTL_35.key()

    with (module / "main.go").open("a") as source:
        source.write("\n// changed\n")

    assert copied.key() != KUBECTL_35.key()
    assert dataclasses.replace(KUBECTL_35, stamped=False).key() != KUBECTL_35.key()
    assert KUBECTL_34.key() != KUBECTL_35.key()


def test_every_module_is_pinned_by_a_sum() -> None:
    modules = {
        artefact.module for family in ("real", "kubectl", "helm", "e2e") for artefact in FAMILIES[family]
    }

    assert all((module / "go.sum").is_file() for module in modules)


def test_the_suite_is_compiled_and_not_run() -> None:
    assert E2E.arguments()[:3] == ("test", "-c", "-vet=off")


def test_programs_named_by_envtest_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "kube-apiserver"
    given.touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert built(APISERVER) == given
