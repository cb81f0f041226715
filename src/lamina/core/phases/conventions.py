"""What a family decides for all objects of its phases: marks, field managers, and the words of messages."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from lamina.objects import meta
from lamina.objects.types import Obj


class Conventions(Struct, frozen=True, kw_only=True):
    """The names under which a family writes objects of phases, and those of its own kinds in messages."""

    manager: str
    """The field manager of all revisions: only one shared manager removes fields that a revision no longer has."""
    former_managers: tuple[str, ...] = ()
    """Field managers of earlier releases, whose fields become those of the manager."""
    revision: str
    """An annotation: the number of the revision that wrote an object last."""
    mark: str
    """A label with the value `True`, on all objects."""
    owners: str = ""
    """An annotation: the owners of an object of another cluster."""
    inherited_labels: tuple[str, ...] = ()
    """Labels of an owner that its objects get."""
    tolerated_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that stay on an object that has them with this value, until another revision writes it."""
    owner: str
    """What messages call the owner of all phases, as `deployment`."""
    cluster_owner: str
    """The kind of owner that may contain cluster-scoped objects."""

    def written_by(self, live: Obj) -> int:
        """Return the number of the revision that wrote an object last, 0 where no revision did."""
        try:
            return int(meta.annotations(live).get(self.revision) or 0)
        except ValueError:
            return 0

    def is_marked(self, live: Obj) -> bool:
        return meta.labels(live).get(self.mark) == "True"
