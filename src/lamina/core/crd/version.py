"""
Whether a cluster has the current version of a definition already.

Applying all definitions at every start would change nothing, and take most of the time
that a start takes.
"""

from __future__ import annotations

from typing import Any, Final

from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj

MARK: Final = "lamina/definition"
"""The annotation with the hash of a definition, which also changes when a field is dropped."""


def marked(definition: Obj) -> Made:
    """Return a definition with its hash as an annotation."""
    metadata = meta.metadata(definition)
    annotations = {**meta.annotations(definition), MARK: digest(definition)[:16]}
    return {**definition, "metadata": {**metadata, "annotations": annotations}}


def is_there(found: Obj, wanted: Obj) -> bool:
    """Say whether the found definition has the same hash, and all that the wanted one has."""
    return meta.annotations(found).get(MARK) == meta.annotations(wanted).get(MARK) and _includes(
        found, wanted
    )


def _includes(found: Any, wanted: Any) -> bool:
    """Say whether the found value has all of the wanted one; a server adds defaults."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and _includes(found[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_includes, found, wanted))
    return bool(found == wanted)
