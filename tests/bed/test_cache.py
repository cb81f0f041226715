"""The cache gives out whole entries only."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bed.cache import cache_folder, remembered


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))


def test_an_entry_is_made_once_however_many_ask() -> None:
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "program").write_text("whole")

    with ThreadPoolExecutor(8) as threads:
        entries = set(threads.map(lambda _: remembered("thing", "v1", make), range(8)))

    assert len(made) == 1
    assert [(entry / "program").read_text() for entry in entries] == ["whole"]


def test_a_failed_making_leaves_nothing_and_can_be_tried_again() -> None:
    def fail(folder: Path) -> None:
        (folder / "program").write_text("half")
        raise RuntimeError("no disk")

    with pytest.raises(RuntimeError):
        remembered("thing", "v1", fail)

    assert [one.name for one in (cache_folder() / "thing").iterdir()] == [".lock"]
    entry = remembered("thing", "v1", lambda folder: (folder / "program").touch())
    assert (entry / "program").is_file()


def test_another_key_is_another_entry() -> None:
    first = remembered("thing", "v1", lambda folder: None)
    second = remembered("thing", "v2", lambda folder: None)

    assert first != second


@pytest.mark.parametrize(
    ("named", "home", "expected"),
    [
        ("/a/b", "/c", "/a/b"),
        (None,   "/c", "/c/lamina"),
        (None,   None, "/home/somebody/.cache/lamina"),
    ],
)  # fmt: skip
def test_the_cache_is_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, named: str | None, home: str | None, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for variable, value in (("LAMINA_CACHE", named), ("XDG_CACHE_HOME", home)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)

    assert cache_folder() == Path(expected)
