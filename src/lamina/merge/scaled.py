"""
Who owns the replicas, seen from an object and from its Scale.

A Scale has owners of its own: those of the object who own its number. Writing a
Scale is tracked like any other write, and what comes of it is carried back.

Who updates is known by the version it wrote in, and that of a Scale is another
than the object's: carried back, an updater of the object that keeps its number
has it in a second entry. The real server does that too, and forgets it when it
next reads the two, because to a reader they are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lamina.merge import fieldset
from lamina.merge.managed import APPLY, Entry, Identity, Owners, stored_owners
from lamina.objects.types import Made

SCALE: Final = "autoscaling/v1"
_REPLICAS: Final = fieldset.of(("f:spec", "f:replicas"))


def scale_owners(stored: list[Made], paths: Mapping[str, Sequence[str]]) -> list[Made]:
    """Return the managedFields of a Scale; `paths` is where each version of the object keeps its replicas."""
    owners = Owners()
    for identity, entry in stored_owners(stored).items():
        path = paths.get(entry.api_version)
        if path is not None and fieldset.has(entry.fields, path):
            owners[_in_scale(identity)] = Entry(SCALE, _REPLICAS, entry.time)
    return owners.as_json()


def object_owners(
    stored: list[Made], scaled: list[Made], paths: Mapping[str, Sequence[str]], api_version: str
) -> list[Made]:
    """Return the managedFields of an object whose Scale, seen in one of its versions, has the owners `scaled`."""
    left = {
        identity: entry
        for identity, entry in stored_owners(scaled).items()
        if fieldset.has(entry.fields, ("f:spec", "f:replicas"))
    }
    owners = Owners()
    for identity, entry in stored_owners(stored).items():
        path = paths.get(entry.api_version)
        if path is None:
            continue
        if identity not in left and fieldset.has(entry.fields, path):
            rest = fieldset.difference(entry.fields, fieldset.of(path))
            if rest:
                owners[identity] = entry.owning(rest)
        else:
            owners[identity] = entry
            if fieldset.has(entry.fields, path):
                left.pop(identity, None)
    for identity in left:
        owners[identity] = Entry(api_version, fieldset.of(paths[api_version]), "")
    return owners.as_json()


def _in_scale(identity: Identity) -> Identity:
    return identity if identity.operation == APPLY else identity._replace(api_version=SCALE)
