"""Gathers the view of one ResourceGraphDefinition: its revisions, the CRD that it generates, and what it compiles with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from lamina.core.crd.kinds import is_established
from lamina.core.model.memo import Memo, MemoStore
from lamina.core.model.world import World, derived
from lamina.errors import SpecError
from lamina.families.resourcegraph.api import DefinitionSpec, content, parse_definition
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.crd_cache import conflict, crd_ref, marks_of
from lamina.families.resourcegraph.definitions.indexes import by_crd, by_definition
from lamina.families.resourcegraph.hashes import content_hash, label_value, revision_name
from lamina.families.resourcegraph.labels import DEFINITION_REVISION, INPUT_REVISION
from lamina.families.resourcegraph.options import Options
from lamina.graph.compile import kinds_needed
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref

REVISION_INFIX = "rev"


class Revision(Struct, frozen=True, kw_only=True):
    """One revision of a definition, as its object has it."""

    obj: Obj
    number: int
    hash: str

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def created(self) -> str:
        return meta.metadata(self.obj).get("creationTimestamp") or ""

    @property
    def content(self) -> Made:
        return content(self.obj.get("spec") or {})


class ParsedRevision(NamedTuple):
    """The number of a revision, the hash of its content, and the kinds of its resources."""

    number: int
    hash: str
    kinds: tuple[tuple[str, str], ...]


def parse_revision(obj: Obj) -> ParsedRevision:
    """Return what follows from the spec of a revision; computed once per version of the object."""
    spec = obj.get("spec") or {}
    number = spec.get("revision")
    return ParsedRevision(
        number if isinstance(number, int) else 0, content_hash(content(spec)), kinds_needed(spec)
    )


def revision_of(obj: Obj) -> Revision:
    parsed = derived(parse_revision, obj)
    return Revision(obj=obj, number=parsed.number, hash=parsed.hash)


class View(Struct, frozen=True, kw_only=True):
    """
    What decides about a definition.

    `obj` is None where it is gone and revisions of it are left. `revisions` are its own
    and the orphans that it is to adopt, oldest first; `former` are those of an earlier
    definition of the same name, which the garbage collector deletes. `misnamed` are the uids
    of objects with the label of a revision, whose names do not have their numbers.
    """

    ref: Ref
    obj: Obj | None
    spec: DefinitionSpec | None
    error: str
    hash: str
    """The hash of the content."""
    revisions: tuple[Revision, ...]
    former: tuple[Obj, ...]
    crd_name: str
    crd: Obj | None
    kinds: Kinds
    marks: Mapping[str, str]
    revision_kind: Kind | None
    input_kind: Kind | None
    graphs: Graphs
    options: Options
    memo: Memo
    misnamed: frozenset[str] = frozenset()

    @property
    def definition(self) -> Obj:
        assert self.obj is not None, "a definition that is gone is decided about first"
        return self.obj

    @property
    def stated(self) -> DefinitionSpec:
        assert self.spec is not None, "a definition whose spec cannot be read is reported as invalid"
        return self.spec

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def content(self) -> Made:
        return content(self.definition.get("spec") or {})

    @property
    def is_published(self) -> bool:
        """Say whether the current revision has the content of the definition, and is not older than one that is lost."""
        current = self.current
        last = self.status.get("currentRevision") or 0
        return current is not None and current.hash == self.hash and current.number >= last

    @property
    def status(self) -> Obj:
        return self.definition.get("status") or {}

    @property
    def current(self) -> Revision | None:
        """Return the newest revision: it is the one that the definition was last published as."""
        return self.revisions[-1] if self.revisions else None

    def name_of(self, number: int) -> str:
        """Return the name of the revision with a number."""
        return revision_name(self.name, REVISION_INFIX, number)

    def numbered(self, number: int) -> Revision | None:
        return next((one for one in self.revisions if one.number == number), None)

    @property
    def kind(self) -> Kind | None:
        """Return the generated kind, once it is served and the CRD belongs to this definition."""
        if self.spec is None or self.crd is None or conflict(self.crd, self.name):
            return None
        return self.kinds.find(self.spec.schema.group_version, self.spec.schema.kind)

    @property
    def awaits_discovery(self) -> bool:
        """Say whether the kind is to be served by its CRD, and discovery does not have it yet."""
        if self.spec is None or self.crd is None or self.kind is not None or not is_established(self.crd):
            return False
        version, versions = self.spec.schema.api_version, (self.crd.get("spec") or {}).get("versions") or ()
        return any(one.get("name") == version and one.get("served") for one in versions)


def revisions_of(world: World, name: str, definition: Obj | None) -> Mapping[int, Obj]:
    """Return the revisions of a definition by number, with those that it is to adopt."""
    if not name:
        return {}
    owners = {"", meta.uid(definition) if definition is not None else ""}
    found = world.by_index(DEFINITION_REVISION, by_definition, label_value(name))
    numbers = ((one, (one.get("spec") or {}).get("revision")) for one in found if _owner(one) in owners)
    return {number: one for one, number in numbers if isinstance(number, int)}


def gather(
    world: World, ref: Ref, graphs: Graphs, options: Options, memos: MemoStore | None = None
) -> View | None:
    """Return the view of a definition; None where nothing is left of it."""
    obj = world.get(ref)
    labelled = world.by_index(DEFINITION_REVISION, by_definition, label_value(ref.name))
    named = [one for one in labelled if meta.name(one) == _name(ref, one)]
    if obj is None and not named:
        return None
    parsed = derived(parse_definition, obj) if obj is not None else None
    own = meta.uid(obj) if obj is not None else ""
    current = [one for one in named if _owner(one) in ("", own)]
    kinds = {kind for one in current for kind in derived(parse_revision, one).kinds}
    kinds.update(kinds_needed(obj.get("spec") or {}) if obj is not None else ())
    crd_name = next(iter(by_crd(obj)), "") if obj is not None else ""
    return View(
        ref=ref,
        obj=obj,
        spec=parsed if isinstance(parsed, DefinitionSpec) else None,
        error=str(parsed) if isinstance(parsed, SpecError) else "",
        hash=content_hash(content(obj.get("spec") or {})) if obj is not None else "",
        revisions=tuple(sorted(map(revision_of, current), key=lambda one: one.number)),
        former=tuple(one for one in named if _owner(one) not in ("", own)),
        crd_name=crd_name,
        crd=world.get(crd_ref(crd_name)) if crd_name else None,
        kinds=world.kinds,
        marks=marks_of(world, kinds),
        revision_kind=world.kinds.preferred(DEFINITION_REVISION),
        input_kind=world.kinds.preferred(INPUT_REVISION),
        graphs=graphs,
        options=options,
        memo=memos.next_pass(ref.kind, ref, own) if memos is not None else Memo(),
        misnamed=frozenset(meta.uid(one) for one in labelled if meta.name(one) != _name(ref, one)),
    )


def _name(ref: Ref, revision: Obj) -> str:
    return revision_name(ref.name, REVISION_INFIX, derived(parse_revision, revision).number)


def _owner(revision: Obj) -> str:
    """Return the uid of the definition that controls a revision, empty for an orphan."""
    controller = meta.controller_of(revision)
    return controller["uid"] if controller is not None else ""
