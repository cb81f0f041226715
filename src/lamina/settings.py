"""
Every setting, its default and its sentence of help.

Flags win over environment variables (`LAMINA_HISTORY` for `history`), which win
over the file `lamina.toml` in the user's configuration folder.
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
from lamina.objects.names import label

_CLUSTERS = 1000
"""How many clusters there may be beside the first, if they are counted."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a process is told at its start. Nothing else reads the environment."""

    data: Path | None = _setting(
        None, "Folder that keeps the server's state. Default: under the user's data folder."
    )
    ephemeral: bool = _setting(False, "Keep no state: everything is forgotten at the end.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(7443, "Port to listen on; 0 takes any free one.")
    kubeconfig: Path | None = _setting(None, "Where to write the kubeconfig. Default: beside the state.")
    history: float = _setting(300.0, "How long old versions are kept for watches and paged lists (20s, 5m).")
    simulate: str = _setting(
        "pods",
        "What is simulated: off (an API server alone), controllers (workloads make pods), "
        "pods (and pods run on simulated nodes).",
    )
    stages: Path | None = _setting(
        None, "File of stages that simulated pods go through. Default: those that come with the program."
    )
    nodes: int = _setting(1, "How many simulated nodes there are.")
    speed: float = _setting(
        1.0,
        "How fast time passes for objects: 60 makes a minute of every second, 0 stands still. A million at most.",
    )
    families: str = _setting(
        "all",
        "Which families run, comma-separated (metacontroller, manifestwork), or all, or none. With simulate off, none.",
    )
    scheduler: bool = _setting(
        True,
        "Choose clusters for Placements; if not, another scheduler writes the decisions.",
    )
    manifest_limit: int = _setting(
        512_000, "How many bytes all manifests of a ManifestWork may have together."
    )
    feature_gates: str = _setting(
        "",
        "What is left out or not: ManifestWorkReplicaSet and CleanUpCompletedManifestWork, "
        "each =true or =false, comma-separated.",
    )
    hooks: tuple[Path, ...] = _setting(
        (), "Python files whose hooks run beside the families; comma-separated in the environment."
    )
    clusters: tuple[str, ...] = _setting(
        (), "Clusters beside the first: how many (cluster1, cluster2, ...), or their names, comma-separated."
    )
    metrics_address: str = _setting(
        "0",
        "Where what the families do is counted, at /metrics: HOST:PORT, :PORT on every interface; 0 for nowhere.",
    )
    log: str = _setting("warning", "Least level of log lines: debug, info, warning or error.")
    log_format: str = _setting("text", "How log lines look: text or json.")


def home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder that holds everything of this user's that is not told to be elsewhere."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return Path(base) / "lamina"


def load(flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that flags, environment and file add up to; raises SettingsError for what makes no sense."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config"
    chosen: dict[str, Any] = {}
    known = {one.name: one for one in dataclasses.fields(Settings)}
    for source, values in (
        ("lamina.toml", _file(Path(base) / "lamina" / "lamina.toml")),
        ("the environment", _environment(known, environ)),
        ("the command line", {name: value for name, value in flags.items() if value is not None}),
    ):
        for name, value in values.items():
            if name not in known:
                raise SettingsError(
                    f"{source}: there is no setting {name}", hint=f"settings are {', '.join(known)}"
                )
            chosen[name] = _parse(name, value, source)
    return Settings(**chosen)


def checked(**values: Any) -> Settings:
    """Return settings of these values, the rest at their defaults; raises SettingsError for what makes no sense."""
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
    """Return a value as the setting holds it."""
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
                return duration(value)
            case "log":
                return _one_of(value, ("debug", "info", "warning", "error"))
            case "log_format":
                return _one_of(value, ("text", "json"))
            case _:
                return str(value)
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"{source}: {value!r} is no {name.replace('_', ' ')}", hint=_hint(name)) from None


def _address(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if text not in ("", "0") and not (colon and 0 <= int(port) <= 65535):
        raise ValueError
    return text


def _clusters(value: Any, source: str) -> tuple[str, ...]:
    """Return the names of clusters, of which a number stands for the first so many of the usual ones."""
    if isinstance(value, int) or (isinstance(value, str) and value.strip().isdecimal()):
        count = int(value)
        if not 0 <= count <= _CLUSTERS:
            raise SettingsError(
                f"{source}: clusters: {count} is not from 0 to {_CLUSTERS}", hint=_hint("clusters")
            )
        return tuple(f"cluster{number}" for number in range(1, count + 1))
    wanted = value.split(",") if isinstance(value, str) else value
    found = tuple(dict.fromkeys(str(name).strip() for name in wanted if str(name).strip()))
    for name in found:
        if problems := label(name):
            raise SettingsError(
                f'{source}: clusters: "{name}" is no name for a cluster: {problems[0]}',
                hint=_hint("clusters"),
            )
    return found


def _one_of(value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError
    return str(value)


def _hint(name: str) -> str:
    return next(str(one.metadata["help"]) for one in dataclasses.fields(Settings) if one.name == name)


def duration(value: Any) -> float:
    """Return the seconds of a duration such as `20s` or `5m`; a bare number is seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        text = str(value).strip()
        unit = next((unit for unit in ("ms", "s", "m", "h", "d") if text.endswith(unit)), "")
        seconds = float(text.removesuffix(unit)) * (_UNITS[unit] if unit else 1.0)
    if not 0 < seconds < 1e9:
        raise ValueError(value)
    return seconds
