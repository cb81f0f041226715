"""Flags win over the environment, which wins over the file."""

from pathlib import Path

import pytest

from lamina.errors import SettingsError
from lamina.settings import Settings, data_home, load, parse_seconds


def test_nothing_said_gives_the_defaults(tmp_path: Path) -> None:
    assert load({}, {"HOME": str(tmp_path)}) == Settings()


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".config" / "lamina" / "lamina.toml"
    file.parent.mkdir(parents=True)
    file.write_text('history = "1m"\nport = 1\nlog = "info"\n')
    environ = {"HOME": str(tmp_path), "LAMINA_PORT": "2", "LAMINA_LOG": "debug"}

    settings = load({"log": "error", "history": None}, environ)

    assert (settings.history, settings.port, settings.log) == (60.0, 2, "error")


def test_hooks_files_may_be_several(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    both = (tmp_path / "a.py", tmp_path / "b.py")

    assert load({"hooks": [str(file) for file in both]}, home).hooks == both
    assert load({}, {**home, "LAMINA_HOOKS": ",".join(map(str, both))}).hooks == both


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("3", ("cluster1", "cluster2", "cluster3")),
        ("0", ()),
        ("east, west,east", ("east", "west")),
        (2, ("cluster1", "cluster2")),
        (["east", "west"], ("east", "west")),
    ],
)
def test_clusters_are_counted_or_named(said: object, names: tuple[str, ...], tmp_path: Path) -> None:
    assert load({"clusters": said}, {"HOME": str(tmp_path)}).clusters == names


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"port": "http"}, "the command line: invalid port: 'http'"),
        ({"port": "70000"}, "invalid port"),
        ({"history": "soon"}, "invalid history: 'soon'"),
        ({"history": "-1s"}, "invalid history"),
        ({"log": "loud"}, "invalid log: 'loud'"),
        ({"simulate": "all"}, "invalid simulate: 'all'"),
        ({"nodes": "-1"}, "invalid nodes"),
        ({"manifest_limit": "0"}, "invalid manifest limit: '0'"),
        ({"scheduler": "perhaps"}, "invalid scheduler: 'perhaps'"),
        ({"metrics_address": "nowhere"}, "invalid metrics address: 'nowhere'"),
        ({"metrics_address": "localhost:70000"}, "invalid metrics address"),
        ({"clusters": "a,East"}, '"East" is not a valid cluster name: a lowercase RFC 1123 label'),
        ({"clusters": "1001"}, "clusters: expected 0 to 1000, got 1001"),
        ({"clusters": "-1"}, '"-1" is not a valid cluster name'),
        ({"colour": "red"}, "unknown setting colour"),
    ],
)
def test_nonsense_names_the_setting_and_where_it_was_said(
    flags: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        load(flags, {"HOME": str(tmp_path)})

    assert refused.value.hint


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "lamina" / "lamina.toml"
    file.parent.mkdir()
    file.write_text("port = = 1")

    with pytest.raises(SettingsError, match=r"lamina\.toml"):
        load({}, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})


def test_home_follows_the_users_data_folder() -> None:
    assert data_home({"XDG_DATA_HOME": "/x"}) == Path("/x/lamina")
    assert data_home({"HOME": "/h"}) == Path("/h/.local/share/lamina")


@pytest.mark.parametrize(
    ("text", "seconds"), [("20s", 20), ("5m", 300), ("1h", 3600), ("250ms", 0.25), (7, 7), ("7", 7)]
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_seconds(text) == seconds
