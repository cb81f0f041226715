"""All families there are, and those that somebody chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lamina.core.family import Family
from lamina.errors import SettingsError
from lamina.families.metacontroller.family import family as metacontroller

EVERY: Mapping[str, Callable[[], Family]] = {"metacontroller": metacontroller}
"""Each family by the name it is chosen by."""


def chosen(names: str) -> tuple[Family, ...]:
    """Return the families of these names, comma-separated; `all` and `none` mean what they say."""
    if names == "none":
        return ()
    wanted = list(EVERY) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in EVERY]
    if unknown:
        raise SettingsError(
            f"there is no family {unknown[0]!r}", hint=f"the families are {', '.join(EVERY)}; or all, or none"
        )
    return tuple(EVERY[name]() for name in wanted)
