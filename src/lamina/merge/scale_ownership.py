"""
Ownership of the replicas field between an object and its Scale subresource.

A Scale has the owners of the object's replicas field as its managers. A write
to the Scale is tracked like any other, and the result is mapped back.

An updater is identified by its version too, and that of a Scale differs from
the object's: an updater of the object that keeps the replicas gets a second
entry when they are mapped back. kube-apiserver does so too, and merges the two
when it next decodes them.
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
    """Return the managedFields of a Scale; `paths` has the path of the replicas in each version of the object."""
    owners = Owners()
    for identity, entry in stored_owners(stored).items():
        path = paths.get(entry.api_version)
        if path is not None and fieldset.has(entry.fields, path):
            owners[_in_scale(identity)] = Entry(SCALE, _REPLICAS, entry.time)
    return owners.as_json()


def object_owners(
    stored: list[Made], scaled: list[Made], paths: Mapping[str, Sequence[str]], api_version: str
) -> list[Made]:
    """Return the managedFields of an object whose Scale has the managedFields `scaled`, mapped to `api_version`."""
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
