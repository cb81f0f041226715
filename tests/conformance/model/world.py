"""
A plain dict that does what the API does.

ConfigMaps and Widgets, made of leaves. Every verb either changes the dict and
says what a server should answer, or says why it would refuse. There is no
storage, no wire and no schema here beyond a handful of rules, so that the whole
of it can be read and believed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tests.conformance.model.leaves import FINALIZERS, Leaves, Owner, Path

Kind = Literal["configmaps", "widgets"]
DEFAULTS: Leaves = {("spec", "color"): "red", ("spec", "replicas"): 1}
LARGEST = 10
BEFORE = Owner("before-first-apply", "Update")
"""Who owns everything that was there when somebody first applied to an object that nobody owned."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One object. `generation` is 0 for kinds that have none; `version` is what the server called this state."""

    kind: Kind
    name: str
    leaves: Leaves
    owners: dict[Path, frozenset[Owner]]
    generation: int
    ending: bool = False
    version: str = ""
    uid: str = ""

    @property
    def held(self) -> bool:
        """Whether a finalizer holds it."""
        return any(path[:2] == FINALIZERS for path in self.leaves)


class Change(NamedTuple):
    """What happened to one object: as it was, as it is, and the version of that if anybody was told."""

    before: Thing | None
    after: Thing | None
    version: str


class Told(NamedTuple):
    """What a server should answer: a code, a reason where it refuses, and the object it shows."""

    code: int
    reason: str = ""
    shown: Thing | None = None
    changed: bool = False


NOT_FOUND = Told(404, "NotFound")
EXISTS = Told(409, "AlreadyExists")
CONFLICT = Told(409, "Conflict")
INVALID = Told(422, "Invalid")


@dataclass(slots=True)
class World:
    """All objects of one namespace, and everything that ever happened to them."""

    things: dict[tuple[Kind, str], Thing] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)

    def get(self, kind: Kind, name: str) -> Told:
        """Read one."""
        thing = self.things.get((kind, name))
        return Told(200, shown=thing) if thing else NOT_FOUND

    def create(self, kind: Kind, name: str, leaves: Leaves, owner: Owner, *, dry: bool = False) -> Told:
        """Make one that is not there."""
        made = Thing(kind, name, {}, {}, generation=1 if kind == "widgets" else 0)
        made = _written(made, _without_status(leaves), owner)
        if not is_valid(made):
            return INVALID
        if (kind, name) in self.things:
            return EXISTS
        return self._keep(None, made, 201, dry=dry)

    def update(
        self, kind: Kind, name: str, leaves: Leaves, owner: Owner, *, version: str, dry: bool = False
    ) -> Told:
        """Replace what a user wants of one; an empty version means whichever is there."""
        thing = self.things.get((kind, name))
        if thing is None:
            return NOT_FOUND
        if not version and kind == "widgets":
            return INVALID
        if version and version != thing.version:
            return CONFLICT
        status = {path: value for path, value in thing.leaves.items() if path[0] == "status"}
        return self._change(thing, {**_without_status(leaves), **status}, owner, dry=dry)

    def merge(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[Path, Any],
        owner: Owner,
        *,
        version: str = "",
        dry: bool = False,
    ) -> Told:
        """Merge leaves; None removes one, and finalizers are replaced as a whole."""
        thing = self.things.get((kind, name))
        if thing is None:
            return NOT_FOUND
        if version and version != thing.version:
            return CONFLICT
        leaves = dict(thing.leaves)
        if any(path[:2] == FINALIZERS for path in patch):
            leaves = {path: value for path, value in leaves.items() if path[:2] != FINALIZERS}
        for path, value in patch.items():
            if (path[0] == "status") != (owner.subresource == "status"):
                continue
            if value is None or value is False:
                leaves.pop(path, None)
            else:
                leaves[path] = value
        return self._change(thing, leaves, owner, dry=dry)

    def apply(
        self, kind: Kind, name: str, applied: Leaves, manager: str, *, force: bool, dry: bool = False
    ) -> Told:
        """State the leaves one manager cares about."""
        me = Owner(manager, "Apply")
        thing = self.things.get((kind, name))
        applied = _without_status(applied)
        if thing is None:
            made = Thing(kind, name, {}, {}, generation=1 if kind == "widgets" else 0)
            made = _with_defaults(
                replace(made, leaves=applied, owners=dict.fromkeys(applied, frozenset({me})))
            )
            return self._keep(None, made, 201, dry=dry) if is_valid(made) else INVALID
        if not thing.owners:
            thing = replace(thing, owners=dict.fromkeys(thing.leaves, frozenset({BEFORE})))
        differ = {path for path, value in applied.items() if thing.leaves.get(path, value) != value}
        if not force and any(thing.owners.get(path, frozenset()) - {me} for path in differ):
            return CONFLICT
        leaves, owners = dict(thing.leaves), dict(thing.owners)
        for path in [path for path, whose in owners.items() if me in whose and path not in applied]:
            owners[path] -= {me}
            if not owners[path]:
                del owners[path]
                leaves.pop(path, None)
        for path, value in applied.items():
            owners[path] = frozenset({me}) if path in differ else owners.get(path, frozenset()) | {me}
            leaves[path] = value
        applied_to = _with_defaults(replace(thing, leaves=leaves, owners=owners))
        return self._settle(self.things[kind, name], applied_to, dry=dry)

    def delete(self, kind: Kind, name: str, *, uid: str = "", version: str = "", dry: bool = False) -> Told:
        """End one, or mark it where a finalizer holds it."""
        thing = self.things.get((kind, name))
        if thing is None:
            return NOT_FOUND
        if (uid and uid != thing.uid) or (version and version != thing.version):
            return CONFLICT
        if not thing.held:
            if not dry:
                self._forget(thing)
            return Told(200)
        if thing.ending:
            return Told(200, shown=thing)
        marked = replace(thing, ending=True, generation=thing.generation + bool(thing.generation))
        return self._keep(thing, marked, 200, dry=dry)

    def select(self, kind: Kind, label: tuple[Path, str] | None) -> list[Thing]:
        """Return the objects of a kind with a label, in the order of a list."""
        found = [thing for thing in self.things.values() if thing.kind == kind and matches(thing, label)]
        return sorted(found, key=lambda thing: thing.name)

    def events(self, kind: Kind, since: int, label: tuple[Path, str] | None) -> list[tuple[str, Thing, str]]:
        """Return what somebody who watches a selection is told of the log from a place on."""
        told = []
        for before, after, version in self.log[since:]:
            one = after or before
            assert one is not None
            was, is_ = (
                before is not None and matches(before, label),
                after is not None and matches(after, label),
            )
            if one.kind != kind or not (was or is_):
                continue
            if is_ and after is not None:
                told.append(("MODIFIED" if was else "ADDED", after, version))
            elif before is not None:
                told.append(("DELETED", before, version))
        return told

    def named(self, thing: Thing, version: str, uid: str) -> None:
        """Take note of what the server called the newest state of an object."""
        known = replace(thing, version=version, uid=uid)
        if (thing.kind, thing.name) in self.things:
            self.things[thing.kind, thing.name] = known
        before, after, _ = self.log[-1]
        last = after or before
        if last is not None and (last.kind, last.name) == (thing.kind, thing.name):
            self.log[-1] = Change(before, known if after else None, version if after else "")

    def _change(self, thing: Thing, leaves: Leaves, owner: Owner, *, dry: bool) -> Told:
        return self._settle(thing, _written(thing, leaves, owner), dry=dry)

    def _settle(self, thing: Thing, changed: Thing, *, dry: bool) -> Told:
        if not is_valid(changed) or (thing.ending and _adds_finalizers(thing, changed)):
            return INVALID
        if changed.leaves == thing.leaves and changed.owners == thing.owners:
            return Told(200, shown=thing)
        if _wanted(changed) != _wanted(thing) and thing.generation:
            changed = replace(changed, generation=thing.generation + 1)
        return self._keep(thing, changed, 200, dry=dry)

    def _keep(self, before: Thing | None, after: Thing, code: int, *, dry: bool) -> Told:
        if dry:
            return Told(code, shown=after)
        if after.ending and not after.held:
            self._forget(after)
            return Told(code, shown=after, changed=True)
        self.things[after.kind, after.name] = after
        self.log.append(Change(before, after, ""))
        return Told(code, shown=after, changed=True)

    def _forget(self, thing: Thing) -> None:
        before = self.things.pop((thing.kind, thing.name))
        self.log.append(Change(before, None, ""))


def matches(thing: Thing, label: tuple[Path, str] | None) -> bool:
    """Return whether an object is in a selection; None selects everything."""
    return label is None or thing.leaves.get(label[0]) == label[1]


def is_valid(thing: Thing) -> bool:
    """Return whether an object keeps the rules of its kind."""
    if thing.kind == "configmaps":
        return True
    size = thing.leaves.get(("spec", "size"))
    return isinstance(size, int) and 1 <= size <= LARGEST


def _written(thing: Thing, leaves: Leaves, owner: Owner) -> Thing:
    """Return an object after a plain write: whoever changes a leaf owns it, and nobody else."""
    made = _with_defaults(replace(thing, leaves=leaves, owners={}))
    if thing.uid and not thing.owners:
        # Nobody owned anything, and a plain write does not begin to keep books.
        return made
    owners = {
        path: thing.owners[path]
        if path in thing.owners and thing.leaves.get(path) == value
        else frozenset({owner})
        for path, value in made.leaves.items()
        if path in thing.owners or thing.leaves.get(path) != value
    }
    return replace(made, owners=owners)


def _with_defaults(thing: Thing) -> Thing:
    if thing.kind == "configmaps" or not any(path[0] == "spec" for path in thing.leaves):
        return thing
    return replace(thing, leaves={**DEFAULTS, **thing.leaves})


def _without_status(leaves: Leaves) -> Leaves:
    return {
        path: value for path, value in leaves.items() if path[0] != "status" and value not in (None, False)
    }


def _adds_finalizers(before: Thing, after: Thing) -> bool:
    return any(path[:2] == FINALIZERS and path not in before.leaves for path in after.leaves)


def _wanted(thing: Thing) -> Leaves:
    return {path: value for path, value in thing.leaves.items() if path[0] not in ("metadata", "status")}
