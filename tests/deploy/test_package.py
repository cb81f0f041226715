"""The install steps of the Containerfile, in an empty environment, and what is installed then."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina import __version__
from lamina.deploy.pod import USER
from tests.bed.kubectl import kubectl_command
from tests.docs.pages import ROOT

UV = Path(sys.executable).with_name("uv")
_PINNED = re.compile(r"^(\S+==\S+)[^\\\n]*\\\n((?:    --hash=\S+(?: \\)?\n?)+)", re.M)


def pinned(lock: str) -> set[tuple[str, str]]:
    """Return the packages of a lock file with their digests; on which platforms they are needed may differ."""
    text = (ROOT / lock).read_text()
    found = {(name, digests.strip()) for name, digests in _PINNED.findall(text)}
    assert len(found) == len(re.findall(r"^\S+==", text, re.M))
    return found


def test_the_runtime_lock_is_a_part_of_the_lock() -> None:
    runtime = pinned("requirements-runtime.lock")

    assert runtime < pinned("requirements.lock"), "run `make lock`"
    names = {name.partition("==")[0] for name, _ in runtime}
    declared = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert declared is not None
    wanted = {name.lower() for name in re.findall(r'"([A-Za-z0-9-]+)>=', declared[1])}
    assert wanted <= names
    assert not names & {"pytest", "mypy", "uv", "ruff"}


def test_the_containerfile_runs_the_script_and_ends_as_the_user_of_the_chart() -> None:
    text = (ROOT / "Containerfile").read_text()

    assert re.findall(r"^RUN (.*)$", text, re.M) == ["sh tools/install.sh /opt/lamina"]
    assert re.findall(r"^USER (.*)$", text, re.M) == [f"{USER}:{USER}"]
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", text, re.M) for word in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    assert [name for name in copied if f"!{name}" not in ignored] == []


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of an environment that the script made from a copy of what the Containerfile copies."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "tools").mkdir()
    for name in (
        "pyproject.toml",
        "requirements.lock",
        "requirements-runtime.lock",
        "README.md",
        "LICENSE",
        "tools/install.sh",
    ):
        shutil.copy(ROOT / name, source / name)
    environ = {**without_python(), "UV": str(UV), "PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", str(source / "tools" / "install.sh"), str(folder / "lamina")],
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(source)
    yield folder / "lamina"


def without_python() -> dict[str, str]:
    """Return the environment without what leads to this checkout or to its Python."""
    ours = ("PYTHON", "VIRTUAL_ENV", "LAMINA_", "XDG_DATA", "XDG_CONFIG", "KUBECONFIG", "COV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def run(installed: Path, home: Path, *words: str) -> str:
    path = f"{installed / 'bin'}:{home / 'bin'}:{os.environ['PATH']}"
    environ = {**without_python(), "HOME": str(home), "PATH": path, "LAMINA_PORT": "0"}
    done = subprocess.run(
        [installed / "bin" / "lamina", *words],
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_installed_command_needs_no_checkout(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "--version") == f"lamina {__version__}\n"
    assert run(installed, tmp_path, "crds").count("kind: CustomResourceDefinition") > 10
    assert "image: x:1" in run(installed, tmp_path, "manifests", "--image", "x:1")
    packages = {
        path.name.partition("-")[0] for path in installed.glob("lib/python*/site-packages/*.dist-info")
    }
    assert "lamina" in packages
    assert not packages & {"pytest", "mypy", "ruff", "hypothesis"}


def test_the_installed_command_runs_the_story_of_the_readme(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(kubectl_command())
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for path in (ROOT / "examples" / "fleet").glob("*.yaml"):
        # A machine under load takes longer than 15 seconds, which would abort the rollout.
        (fleet / path.name).write_text(path.read_text().replace("15s", "10m"))
    try:
        run(installed, tmp_path, "up", "--detach", "--clusters", "5")
        run(installed, tmp_path, "kubectl", "apply", "-f", str(fleet))
        watched = run(installed, tmp_path, "watch", "mwrs/web", "--until", "healthy")
        shown = run(installed, tmp_path, "get", "mwrs/web")
    finally:
        run(installed, tmp_path, "down")

    assert "5/5" in watched
    assert [shown.count(f"cluster{number} ") for number in range(1, 6)] == [1] * 5


def test_the_wheel_has_the_package_and_the_licence_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [str(UV), "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(ROOT)],
        check=True,
        env=without_python(),
    )

    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"lamina-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"lamina", f"lamina-{__version__}.dist-info"}
    assert f"lamina-{__version__}.dist-info/licenses/LICENSE" in names
    assert not any("__pycache__" in name or "/tests/" in name for name in names)
