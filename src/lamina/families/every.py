"""All families there are, and those that somebody chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lamina.core.family import Family
from lamina.errors import SettingsError
from lamina.families.metacontroller.controller import Options
from lamina.families.metacontroller.family import family as metacontroller
from lamina.objects.selectors import EVERYTHING, LabelSelector

EVERY: Mapping[str, Callable[[LabelSelector], Family]] = {
    "metacontroller": lambda selector: metacontroller(Options(selector=selector))
}
"""Each family by the name it is chosen by, for the controllers that somebody's labels select."""


def chosen(names: str, selector: LabelSelector = EVERYTHING) -> tuple[Family, ...]:
    """
    Return the families of these names, comma-separated; `all` and `none` mean what they say.

    Where controllers are objects themselves, `selector` says which of them run.
    """
    if names == "none":
        return ()
    wanted = list(EVERY) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in EVERY]
    if unknown:
        raise SettingsError(
            f"there is no family {unknown[0]!r}", hint=f"the families are {', '.join(EVERY)}; or all, or none"
        )
    return tuple(EVERY[name](selector) for name in wanted)
