"""All families there are, and those that somebody chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.family import Family
from lamina.errors import SettingsError
from lamina.families.manifestwork.controller import Options as HubOptions
from lamina.families.manifestwork.family import family as manifestwork
from lamina.families.metacontroller.controller import Options
from lamina.families.metacontroller.family import family as metacontroller
from lamina.objects.selectors import EVERYTHING, LabelSelector


class Manner(Struct, frozen=True, kw_only=True):
    """
    How families run.

    Where controllers are objects themselves, `selector` says which of them run.
    `applies_as` is the name under which children are applied by the server, for
    families that can do without; `flush` is how long an owner is left alone at most.
    """

    selector: LabelSelector = EVERYTHING
    workers: int = 5
    applies_as: str = ""
    flush: timedelta = timedelta(minutes=30)
    schedules: bool = True
    """Whether clusters are chosen for placements; if not, another scheduler does that."""
    registers: bool = True
    """Whether clusters and their sets are looked after; if not, somebody else does that, too."""
    manifest_limit: int = 512_000
    """How many bytes of manifests a work may have."""
    replica_sets: bool = True
    """Whether ManifestWorkReplicaSets are rolled out; if not, nobody may write one."""
    cleans_up: bool = True
    """Whether ManifestWorks go once they were complete for as long as they say."""


USUAL = Manner()

GATES = {"ManifestWorkReplicaSet": "replica_sets", "CleanUpCompletedManifestWork": "cleans_up"}
"""What may be left out, by the names that it has elsewhere."""


def gated(manner: Manner, gates: str) -> Manner:
    """Return a manner with what is said of some gates: `NAME=true` or `NAME=false`, comma-separated."""
    said: dict[str, bool] = {}
    for one in filter(None, map(str.strip, gates.split(","))):
        name, _, value = one.partition("=")
        if name not in GATES or value.lower() not in ("true", "false"):
            raise SettingsError(
                f'expected {" or ".join(f"{gate}=true|false" for gate in GATES)}, got "{one}"',
                hint="several are divided by commas",
            )
        said[GATES[name]] = value.lower() == "true"
    return replace(manner, **said)


def _metacontroller(manner: Manner) -> Family:
    options = Options(
        selector=manner.selector,
        workers=manner.workers,
        server_side_apply=bool(manner.applies_as),
        field_manager=manner.applies_as,
        flush=manner.flush,
    )
    return metacontroller(options)


def _manifestwork(manner: Manner) -> Family:
    return manifestwork(
        HubOptions(
            workers=manner.workers,
            flush=manner.flush,
            schedules=manner.schedules,
            registers=manner.registers,
            manifest_limit=manner.manifest_limit,
            replica_sets=manner.replica_sets,
            cleans_up=manner.cleans_up,
        )
    )


EVERY: Mapping[str, Callable[[Manner], Family]] = {
    "metacontroller": _metacontroller,
    "manifestwork": _manifestwork,
}
"""Each family by the name it is chosen by."""


def chosen(names: str, manner: Manner = USUAL) -> tuple[Family, ...]:
    """Return the families of these names, comma-separated; `all` and `none` mean what they say."""
    if names == "none":
        return ()
    wanted = list(EVERY) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in EVERY]
    if unknown:
        raise SettingsError(
            f"there is no family {unknown[0]!r}", hint=f"the families are {', '.join(EVERY)}; or all, or none"
        )
    return tuple(EVERY[name](manner) for name in wanted)
