"""All families there are, and those that somebody chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from msgspec import Struct

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
    manifest_limit: int = 512_000
    """How many bytes of manifests a work may have."""


USUAL = Manner()


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
            manifest_limit=manner.manifest_limit,
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
