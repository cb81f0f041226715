"""The view of one instance: its definition and revisions, its input revisions, and its live children."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.admission import admitted, is_gated
from lamina.families.resourcegraph.definitions.view import revision_of
from lamina.families.resourcegraph.instances.children import input_stamp, rgd_stamp
from lamina.families.resourcegraph.instances.input_revisions import InputRevision
from lamina.families.resourcegraph.labels import API_VERSION, DEFINITION, is_suspended
from lamina.families.resourcegraph.options import InputStorage, Options
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.numbers import whole
from lamina.objects.types import GroupKind, Obj, Ref

HISTORY, CURRENT_INPUT, CURRENT_RGD = "inputRevisionHistory", "currentInputRevision", "currentRGDRevision"
OBSERVED_INPUT, OBSERVED_RGD = "observedInputRevision", "observedRGDRevision"
MANAGED_RESOURCES = "managedResources"
"""Fields of the status of an instance."""
MOST_LISTED = 100
"""How many resources the status lists."""


class Setup(Struct, frozen=True, kw_only=True):
    """What the controller of one definition's instances is made from; without a definition it only deletes."""

    definition: str
    """The name of the definition; empty where it is gone."""
    kind: GroupKind
    api_version: str
    children: tuple[tuple[str, str], ...] = ()
    """The apiVersion and kind of the children of its live revisions."""
    externals: tuple[tuple[str, str], ...] = ()
    """The apiVersion and kind of the external objects."""
    options: Options = Options()
    graphs: Graphs = field(default_factory=Graphs)

    @property
    def is_inline(self) -> bool:
        return self.options.input_storage is InputStorage.INLINE

    @property
    def definition_ref(self) -> Ref:
        return Ref(API_VERSION, DEFINITION.kind, "", self.definition)

    @property
    def child_kinds(self) -> frozenset[GroupKind]:
        return frozenset(GroupKind(version.rpartition("/")[0], kind) for version, kind in self.children)

    @property
    def needed_kinds(self) -> frozenset[GroupKind]:
        """Return the kinds whose schemas graphs are compiled with."""
        stated = (*self.children, *self.externals)
        return frozenset(GroupKind(version.rpartition("/")[0], kind) for version, kind in stated)


class View(Struct, frozen=True, kw_only=True):
    """Everything that decides about one instance."""

    setup: Setup
    obj: Obj
    kind: Kind
    kinds: Kinds
    definition: Obj | None
    revisions: Mapping[int, Obj]
    """The revisions of the definition that exist, by number."""
    inputs: tuple[InputRevision, ...]
    """The input revisions of the instance, oldest first."""
    is_inline: bool
    """Whether input revisions are entries of the instance's status, with their specs."""
    authored: frozenset[str]
    """The fields of the status that the author declares."""
    children: tuple[Obj, ...]
    """The live members of its ApplySet, of the kinds that are watched."""
    marks: Mapping[str, str]
    """The marks of the schemas of CRDs, by their names."""
    find: Callable[[Ref], Obj | None]
    """Returns a cached object."""
    has_lost_crd: Callable[[GroupKind], bool]
    """Says whether a kind that is not served had a CRD that is gone."""

    @property
    def options(self) -> Options:
        return self.setup.options

    @property
    def status(self) -> Obj:
        return self.obj.get("status") or {}

    @property
    def current(self) -> int:
        """Return the current revision of the definition; 0 where it has none."""
        return current_revision(self.definition)

    @property
    def hides_conditions(self) -> bool:
        """Say whether the author declares conditions, so that the built-in ones are not written."""
        if self.definition is not None:
            return "conditions" in self.authored
        known = [one.get("type") for one in conditions.of(self.obj)]
        return bool(known) and "InstanceManaged" not in known

    @property
    def is_suspended(self) -> bool:
        return is_suspended(meta.annotations(self.obj))

    @property
    def input_stamp(self) -> int:
        """Return the highest input revision that a child names as its own; 0 without children."""
        return max(self._input_stamps(), default=0)

    def started(self, most: int) -> int:
        """Return the input revision that was started last; a stamp above the highest that was issued is not one."""
        stamps = (one for one in self._input_stamps() if one <= most)
        return max(self.number(CURRENT_INPUT), *stamps, 0)

    def _input_stamps(self) -> Iterator[int]:
        return (input_stamp(one, meta.uid(self.obj)) for one in self.children)

    @property
    def rgd_stamp(self) -> int:
        """Return the highest revision of the definition that a child was made from; 0 without children."""
        return max(map(rgd_stamp, self.children), default=0)

    @property
    def is_gated(self) -> bool:
        """Say whether instances have to be admitted to the current revision."""
        current = self.revisions.get(self.current)
        return self.definition is not None and current is not None and is_gated(self.definition, current)

    @property
    def is_admitted(self) -> bool:
        """Say whether the instance has been admitted to the current revision."""
        current = self.revisions.get(self.current)
        return current is not None and meta.uid(self.obj) in admitted(current)

    @property
    def history_limit(self) -> int:
        spec = (self.definition or {}).get("spec") or {}
        stated = (spec.get("revisionManagement") or {}).get("historyLimit")
        return stated if isinstance(stated, int) else self.options.history_limit

    def hash_of(self, revision: int) -> str:
        """Return the hash of the content of a revision that exists."""
        return revision_of(self.revisions[revision]).hash

    def is_replaced(self, one: InputRevision) -> bool:
        """Say whether the revision of an input revision is gone, and other content has its number."""
        is_there = one.revision in self.revisions
        # Without a hash, nothing is known of the content.
        return is_there and one.revision_hash not in ("", self.hash_of(one.revision))

    def has_revision(self, one: InputRevision) -> bool:
        """Say whether the revision of an input revision exists."""
        return one.revision in self.revisions and not self.is_replaced(one)

    def number(self, name: str) -> int:
        """Return a number of the status; 0 where it has none, or where the author has a field of that name."""
        return 0 if name in self.authored else whole(self.status.get(name))


def current_revision(definition: Obj | None) -> int:
    """Return the number of the revision that a definition has published last; 0 where it has none."""
    return whole(((definition or {}).get("status") or {}).get("currentRevision"))
