"""The commands of the README work, and print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.kubectl import kubectl_command
from tests.docs.pages import make_up

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
_THEIRS = ("LAMINA_", "XDG_", "KUBECONFIG")


def block(heading: str) -> list[tuple[str, str]]:
    """Return the commands of the first console block below a heading, each with the output printed below it."""
    section = README.split(f"## {heading}\n", 1)[1]
    text = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert text is not None
    steps: list[tuple[str, str]] = []
    for line in text.group(1).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            command, output = steps[-1]
            steps[-1] = (command, f"{output}{line}\n")
    return steps


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a user who has just run `make up`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(kubectl_command())
    for name in ("examples",):
        (tmp_path / name).symlink_to(ROOT / name)
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(_THEIRS)},
        "HOME": str(tmp_path),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    lamina, typed = [sys.executable, "-m", "lamina"], make_up().split()[1:]
    subprocess.run([*lamina, *typed, "--port", "0"], env=environ, check=True, capture_output=True, timeout=60)
    yield environ
    subprocess.run([*lamina, "down"], env=environ, check=False, capture_output=True, timeout=180)


def test_what_to_try_next_works_and_prints_what_it_says(home: dict[str, str]) -> None:
    shell = shutil.which("bash")
    assert shell is not None
    for command, expected in block("What to try next"):
        if command.startswith("alias"):
            continue
        line = f'lamina() {{ "{sys.executable}" -m lamina "$@"; }}; {command}'
        done = subprocess.run(
            [shell, "-c", line],
            cwd=home["HOME"],
            env=home,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if expected:
            # The age of an object depends on the speed of the test.
            pattern = re.sub(r"\\ +(\d+s)", r" +\\d+s", re.escape(expected.strip()).replace("1s", "\\d+s"))
            assert re.search(pattern, done.stdout), f"{command}\n{done.stdout}{done.stderr}"


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_link_of_a_change_leads_to_a_file() -> None:
    """Changes are collected in the changelog, so their links start at the root."""
    for change in sorted((ROOT / "changes").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", change.read_text()):
            assert (ROOT / target).exists(), f"{change.name} links to {target}"


def test_every_page_of_the_documentation_is_linked_from_another() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    }

    assert {page for page in (ROOT / "docs").rglob("*.md") if page.resolve() not in linked} == set()


def test_every_target_the_readme_names_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"(?:`|\$ )make ([a-z0-9]+)", README)) <= targets
