"""
The settings of `lamina up`, each with its default and its help text.

Flags take precedence over environment variables (`LAMINA_HISTORY` for `history`),
which take precedence over the file `lamina.toml` in the user's configuration folder.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamina.errors import SettingsError
from lamina.objects.durations import seconds_with_days
from lamina.objects.names import label

_MAX_CLUSTERS = 1000
"""The maximum number of clusters besides the first, if they are given as a number."""


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one process. Nothing else reads the environment."""

    data: Path | None = _setting(
        None, "Data folder: the server's state. Default: a folder below the user's data folder."
    )
    ephemeral: bool = _setting(False, "Keep the state in memory only.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(7443, "Port to listen on; 0 selects a free one.")
    kubeconfig: Path | None = _setting(None, "Kubeconfig to write. Default: in the data folder.")
    history: float = _setting(300.0, "Retention of old versions for watches and paged lists (20s, 5m).")
    simulate: str = _setting(
        "pods",
        "Level of simulation: off (API server only), controllers (workload controllers create pods), "
        "pods (pods run on simulated nodes).",
    )
    stages: Path | None = _setting(None, "Stages of simulated pods, as YAML. Default: built-in stages.")
    nodes: int = _setting(1, "Number of simulated nodes, 1000 at most.")
    speed: float = _setting(
        1.0, "Speed of the clock: 60 is a minute per second, 0 stops it; a million at most."
    )
    families: str = _setting(
        "all",
        "Families to run, comma-separated: metacontroller, manifestwork, objectset, resourcegraph; or all, or none. None with simulate off.",
    )
    scheduler: bool = _setting(
        True, "Schedule Placements; false if another scheduler writes PlacementDecisions."
    )
    manifest_limit: int = _setting(
        512_000, "Maximum total size of the manifests of a ManifestWork, in bytes."
    )
    feature_gates: str = _setting(
        "",
        "Feature gates, comma-separated: ManifestWorkReplicaSet, CleanUpCompletedManifestWork and "
        "CELOmitFunction, each =true or =false.",
    )
    hooks: tuple[Path, ...] = _setting(
        (), "Python files with hooks to run; comma-separated in the environment."
    )
    clusters: tuple[str, ...] = _setting(
        (), "Clusters besides the first: a number (cluster1, cluster2, ...), or names, comma-separated."
    )
    metrics_address: str = _setting(
        "0", "Address of /metrics for the families: HOST:PORT, :PORT for all interfaces, or 0 to disable it."
    )
    log: str = _setting("warning", "Minimum log level: debug, info, warning or error.")
    log_format: str = _setting("text", "Log format: text or json.")


def data_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return Lamina's folder below the user's data folder."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return Path(base) / "lamina"


def load(flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings from flags, environment and file; raises SettingsError for an unknown or invalid one."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config"
    found: dict[str, Any] = {}
    known = {one.name: one for one in dataclasses.fields(Settings)}
    for source, values in (
        ("lamina.toml", _file(Path(base) / "lamina" / "lamina.toml")),
        ("the environment", _environment(known, environ)),
        ("the command line", {name: value for name, value in flags.items() if value is not None}),
    ):
        for name, value in values.items():
            if name not in known:
                raise SettingsError(
                    f"{source}: unknown setting {name}", hint=f"the settings are {', '.join(known)}"
                )
            found[name] = _parse(name, value, source)
    return Settings(**found)


def validated(**values: Any) -> Settings:
    """Return settings with these values and defaults for the rest; raises SettingsError for an invalid value."""
    return Settings(**{name: _parse(name, value, "settings") for name, value in values.items()})


def _file(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from None


def _environment(known: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[key] for name in known if environ.get(key := f"LAMINA_{name.upper()}")}


def _parse(name: str, value: Any, source: str) -> Any:
    """Return a value in the type of its setting."""
    try:
        match name:
            case "data" | "kubeconfig" | "stages":
                return Path(value).expanduser().absolute()
            case "hooks":
                files = value.split(",") if isinstance(value, str) else value
                return tuple(Path(file).expanduser().absolute() for file in files if file)
            case "clusters":
                return _clusters(value, source)
            case "ephemeral" | "scheduler":
                return (
                    value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
                )
            case "port":
                port = int(value)
                if not 0 <= port <= 65535:
                    raise ValueError
                return port
            case "metrics_address":
                return _address(str(value))
            case "manifest_limit":
                limit = int(value)
                if limit < 1:
                    raise ValueError
                return limit
            case "nodes":
                nodes = int(value)
                if not 0 <= nodes <= 1000:
                    raise ValueError
                return nodes
            case "speed":
                speed = float(value)
                if not 0 <= speed <= 1_000_000:
                    raise ValueError
                return speed
            case "simulate":
                return _one_of(value, ("off", "controllers", "pods"))
            case "history":
                return parse_seconds(value)
            case "log":
                return _one_of(value, ("debug", "info", "warning", "error"))
            case "log_format":
                return _one_of(value, ("text", "json"))
            case _:
                return str(value)
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            f"{source}: invalid {name.replace('_', ' ')}: {value!r}", hint=_hint(name)
        ) from None


def _address(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if text not in ("", "0") and not (colon and 0 <= int(port) <= 65535):
        raise ValueError
    return text


def _clusters(value: Any, source: str) -> tuple[str, ...]:
    """Return the names of clusters; a number N stands for cluster1 to clusterN."""
    if isinstance(value, int) or (isinstance(value, str) and value.strip().isdecimal()):
        count = int(value)
        if not 0 <= count <= _MAX_CLUSTERS:
            raise SettingsError(
                f"{source}: clusters: expected 0 to {_MAX_CLUSTERS}, got {count}", hint=_hint("clusters")
            )
        return tuple(f"cluster{number}" for number in range(1, count + 1))
    listed = value.split(",") if isinstance(value, str) else value
    found = tuple(dict.fromkeys(str(name).strip() for name in listed if str(name).strip()))
    for name in found:
        if problems := label(name):
            raise SettingsError(
                f'{source}: clusters: "{name}" is not a valid cluster name: {problems[0]}',
                hint=_hint("clusters"),
            )
    return found


def _one_of(value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError
    return str(value)


def _hint(name: str) -> str:
    return next(str(one.metadata["help"]) for one in dataclasses.fields(Settings) if one.name == name)


def parse_seconds(value: Any) -> float:
    """Return the seconds of a duration such as `20s`, `5m` or `1d12h`; a bare number is seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        seconds = seconds_with_days(str(value))
    if not 0 < seconds < 1e9:
        raise ValueError(value)
    return seconds
