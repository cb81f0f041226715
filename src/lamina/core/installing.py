"""
Whether a cluster has a definition of ours already, decided from what it has.

Stating all of them anew at every start would change nothing, and take most of
the time that a start takes.
"""

from __future__ import annotations

from typing import Any, Final

from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj

MARK: Final = "lamina/definition"
"""The annotation that says which edition of a definition was stated: what has been left out of one since shows in it."""


def marked(definition: Obj) -> Made:
    """Return a definition that says which edition of it this is."""
    metadata = meta.metadata(definition)
    annotations = {**meta.annotations(definition), MARK: digest(definition)[:16]}
    return {**definition, "metadata": {**metadata, "annotations": annotations}}


def is_there(found: Obj, wanted: Obj) -> bool:
    """Say whether a definition that was found is this edition of it, and says all that this one says."""
    return meta.annotations(found).get(MARK) == meta.annotations(wanted).get(MARK) and _says(found, wanted)


def _says(found: Any, wanted: Any) -> bool:
    """Say whether everything wanted is there; a server may have filled in more."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and _says(found[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_says, found, wanted))
    return bool(found == wanted)
