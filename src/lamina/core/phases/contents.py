"""The objects that a revision contains, and the clusters that have them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from lamina.core.phases.manifest import ObjectKey


class Contents(Struct, frozen=True):
    """
    The objects of a revision, each with the place that names its cluster; empty for the cluster of the revision.

    They are incomplete where a part of the spec is missing or cannot be read.
    """

    places: Mapping[ObjectKey, str]
    is_complete: bool = True

    def place(self, key: ObjectKey) -> str | None:
        """Return the place of an object; one that is listed without namespace is found by its name."""
        if key in self.places or key.namespace:
            return self.places.get(key)
        same = (one for one in self.places if one._replace(namespace="") == key)
        return next((self.places[one] for one in same), None)

    def may_contain(self, key: ObjectKey, place: str, controlled: Collection[ObjectKey]) -> bool:
        """
        Say whether the revision has an object that another one controls at a place.

        Another place may be another cluster, or not. Where the revision lists the object as `controlled`,
        too, these are two objects: one object has one controller.
        """
        if not self.is_complete:
            return True
        own = self.place(key)
        return own is not None and (own == place or key not in controlled)
