"""
A model of the API as a plain dict.

ConfigMaps and Widgets, as leaves. Every verb either changes the dict and returns the expected
response, or returns the expected error. There is no storage, no encoding and no schema except
for a few rules, so that the model is small enough to be verified by reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tests.conformance.model.leaves import FINALIZERS, Leaves, Owner, Path

Kind = Literal["configmaps", "widgets"]
DEFAULTS: Leaves = {("spec", "color"): "red", ("spec", "replicas"): 1}
LARGEST = 10
BEFORE = Owner("before-first-apply", "Update")
"""The owner of all fields that existed before the first apply to an object without owners."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One object. `generation` is 0 for kinds that have none; `version` is the server's version of this state."""

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
        """Whether it has a finalizer."""
        return any(path[:2] == FINALIZERS for path in self.leaves)


class Change(NamedTuple):
    """A change of one object: before, after, and the version if it is known."""

    before: Thing | None
    after: Thing | None
    version: str


class Expected(NamedTuple):
    """The expected response: code, reason of an error, and object."""

    code: int
    reason: str = ""
    shown: Thing | None = None
    changed: bool = False


NOT_FOUND = Expected(404, "NotFound")
EXISTS = Expected(409, "AlreadyExists")
CONFLICT = Expected(409, "Conflict")
INVALID = Expected(422, "Invalid")


@dataclass(slots=True)
class World:
    """All objects of one namespace, and the log of their changes."""

    things: dict[tuple[Kind, str], Thing] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)

    def get(self, kind: Kind, name: str) -> Expected:
        """Read an object."""
        thing = self.things.get((kind, name))
        return Expected(200, shown=thing) if thing else NOT_FOUND

    def create(self, kind: Kind, name: str, leaves: Leaves, owner: Owner, *, dry: bool = False) -> Expected:
        """Create an object."""
        made = Thing(kind, name, {}, {}, generation=1 if kind == "widgets" else 0)
        made = _written(made, _without_status(leaves), owner)
        if not is_valid(made):
            return INVALID
        if (kind, name) in self.things:
            return EXISTS
        return self._keep(None, made, 201, dry=dry)

    def update(
        self, kind: Kind, name: str, leaves: Leaves, owner: Owner, *, version: str, dry: bool = False
    ) -> Expected:
        """Replace the user's fields of an object; an empty version matches any."""
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
    ) -> Expected:
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
    ) -> Expected:
        """Apply the leaves of one manager."""
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

    def delete(
        self, kind: Kind, name: str, *, uid: str = "", version: str = "", dry: bool = False
    ) -> Expected:
        """Delete an object, or mark it as terminating if it has a finalizer."""
        thing = self.things.get((kind, name))
        if thing is None:
            return NOT_FOUND
        if (uid and uid != thing.uid) or (version and version != thing.version):
            return CONFLICT
        if not thing.held:
            if not dry:
                self._forget(thing)
            return Expected(200)
        if thing.ending:
            return Expected(200, shown=thing)
        marked = replace(thing, ending=True, generation=thing.generation + bool(thing.generation))
        return self._keep(thing, marked, 200, dry=dry)

    def select(self, kind: Kind, label: tuple[Path, str] | None) -> list[Thing]:
        """Return the objects of a kind with a label, in the order of a list."""
        found = [thing for thing in self.things.values() if thing.kind == kind and matches(thing, label)]
        return sorted(found, key=lambda thing: thing.name)

    def events(self, kind: Kind, since: int, label: tuple[Path, str] | None) -> list[tuple[str, Thing, str]]:
        """Return the events of a watch with a selector from a position of the log on."""
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
        """Record the server's version and uid of an object's newest state."""
        known = replace(thing, version=version, uid=uid)
        if (thing.kind, thing.name) in self.things:
            self.things[thing.kind, thing.name] = known
        before, after, _ = self.log[-1]
        last = after or before
        if last is not None and (last.kind, last.name) == (thing.kind, thing.name):
            self.log[-1] = Change(before, known if after else None, version if after else "")

    def _change(self, thing: Thing, leaves: Leaves, owner: Owner, *, dry: bool) -> Expected:
        return self._settle(thing, _written(thing, leaves, owner), dry=dry)

    def _settle(self, thing: Thing, changed: Thing, *, dry: bool) -> Expected:
        if not is_valid(changed) or (thing.ending and _adds_finalizers(thing, changed)):
            return INVALID
        if changed.leaves == thing.leaves and changed.owners == thing.owners:
            return Expected(200, shown=thing)
        if _wanted(changed) != _wanted(thing) and thing.generation:
            changed = replace(changed, generation=thing.generation + 1)
        return self._keep(thing, changed, 200, dry=dry)

    def _keep(self, before: Thing | None, after: Thing, code: int, *, dry: bool) -> Expected:
        if dry:
            return Expected(code, shown=after)
        if after.ending and not after.held:
            self._forget(after)
            return Expected(code, shown=after, changed=True)
        self.things[after.kind, after.name] = after
        self.log.append(Change(before, after, ""))
        return Expected(code, shown=after, changed=True)

    def _forget(self, thing: Thing) -> None:
        before = self.things.pop((thing.kind, thing.name))
        self.log.append(Change(before, None, ""))


def matches(thing: Thing, label: tuple[Path, str] | None) -> bool:
    """Return whether an object matches a selector; None matches everything."""
    return label is None or thing.leaves.get(label[0]) == label[1]


def is_valid(thing: Thing) -> bool:
    """Return whether an object is valid."""
    if thing.kind == "configmaps":
        return True
    size = thing.leaves.get(("spec", "size"))
    return isinstance(size, int) and 1 <= size <= LARGEST


def _written(thing: Thing, leaves: Leaves, owner: Owner) -> Thing:
    """Return an object after an update: the writer owns exactly the leaves that it changes."""
    made = _with_defaults(replace(thing, leaves=leaves, owners={}))
    if thing.uid and not thing.owners:
        # Without owners, an update does not begin to track them.
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
