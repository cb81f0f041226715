"""
A server compared with a plain dict.

Hypothesis sends random requests to the server and to the model; both have to agree on every
response, on field ownership, on lists and on watch events. The requests are recorded, so
that the same sequence can be repeated with any server.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from lamina.testing.waiting import eventually_sync
from tests.bed.wire import Answer
from tests.conformance.model.leaves import FINALIZERS, LABELS, Leaves, Owner, Path, from_object, owners_of
from tests.conformance.model.speaker import Speaker
from tests.conformance.model.world import Expected, Kind, World
from tests.conformance.transcript.reach import Wire

KINDS = st.sampled_from(["configmaps", "widgets"])
NAMES = st.sampled_from(["a", "b", "c"])
MANAGERS = st.sampled_from(["one", "two", "three"])
FINALIZER: Path = (*FINALIZERS, "example.com/hold")
COLOUR: Path = (*LABELS, "colour")
SELECTIONS = st.sampled_from([None, (COLOUR, "red"), (COLOUR, "blue")])
SOME = st.sampled_from(["red", "blue"])
_MOST_PAGES = 1000
LEAVES: dict[str, dict[Path, st.SearchStrategy[Any]]] = {
    "configmaps": {COLOUR: SOME, ("data", "k"): SOME, ("data", "l"): SOME, FINALIZER: st.just(True)},
    "widgets": {
        COLOUR: SOME,
        ("spec", "size"): st.sampled_from([1, 2, 3, 11]),
        ("spec", "color"): SOME,
        ("spec", "note"): SOME,
        FINALIZER: st.just(True),
    },
}


def contents(kind: Kind) -> st.SearchStrategy[Leaves]:
    """Return leaves for an object of a kind; some objects are invalid."""
    return st.fixed_dictionaries({}, optional=LEAVES[kind])


def patches(kind: Kind) -> st.SearchStrategy[dict[Path, Any]]:
    """Return leaves to set and, if the value is None, to remove."""
    optional = {path: st.none() | values for path, values in LEAVES[kind].items() if path != FINALIZER}
    return st.fixed_dictionaries({}, optional={**optional, FINALIZER: st.booleans()})


class Said(NamedTuple):
    """One step: a rule, its arguments, and what it drew."""

    rule: str
    given: dict[str, Any]
    drawn: list[Any]


class Draws(Protocol):
    """The source of a rule's draws: hypothesis, or a record."""

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any: ...


class _Noting:
    def __init__(self, data: Draws, drawn: list[Any]) -> None:
        self._data, self._drawn = data, drawn

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        self._drawn.append(self._data.draw(strategy))
        return self._drawn[-1]


class Noted:
    """Returns recorded draws."""

    def __init__(self, drawn: list[Any]) -> None:
        self._left = iter(drawn)

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return next(self._left)


def noted(function: Callable[..., None]) -> Callable[..., None]:
    """Record a rule after it was carried out: hypothesis may stop in the middle of one."""

    @wraps(function)
    def noting(self: "Conversation", **given: Any) -> None:
        said = Said(function.__name__, {name: one for name, one in given.items() if name != "data"}, [])
        if "data" in given:
            given["data"] = _Noting(given["data"], said.drawn)
        function(self, **given)
        self.said.append(said)

    return noting


class Conversation(RuleBasedStateMachine):
    """All requests to one namespace."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self.said: list[Said] = []
        self.say = Speaker(wire)
        self.world = World()
        self.marks: list[tuple[int, str]] = []
        """Positions in the model's log, and the server's version at that time."""
        self.old: dict[tuple[Kind, str], str] = {}
        """An earlier version of each object."""

    def repeat(self, said: list[Said]) -> None:
        """Repeat recorded steps."""
        for rule_, given, drawn in said:
            getattr(self, rule_)(**given, **({"data": Noted(drawn)} if drawn else {}))

    # ── writing ──

    @rule(kind=KINDS, name=NAMES, manager=MANAGERS, data=st.data(), dry=st.booleans())
    @noted
    def create(self, kind: Kind, name: str, manager: str, data: Draws, dry: bool) -> None:
        leaves = data.draw(contents(kind))
        answer = self.say.create(kind, name, leaves, manager, dry=dry)
        self.agree(answer, self.world.create(kind, name, leaves, Owner(manager, "Update"), dry=dry), dry=dry)

    @rule(kind=KINDS, manager=MANAGERS, data=st.data())
    @noted
    def create_unnamed(self, kind: Kind, manager: str, data: Draws) -> None:
        """Let the server generate a name, and ignore the object afterwards."""
        leaves = {path: value for path, value in data.draw(contents(kind)).items() if path != FINALIZER}
        answer = self.say.generate(kind, "made-", leaves, manager)
        name = answer.json.get("metadata", {}).get("name", "invalid")
        assert (kind, name) not in self.world.things
        self.agree(answer, self.world.create(kind, name, leaves, Owner(manager, "Update")))
        if answer.code == 201:
            assert name.startswith("made-") and len(name) == len("made-") + 5
            self.agree(self.say.delete(kind, name, {}), self.world.delete(kind, name))

    @rule(
        kind=KINDS,
        name=NAMES,
        manager=MANAGERS,
        data=st.data(),
        which=st.sampled_from(["new", "old", "none"]),
        dry=st.booleans(),
    )
    @noted
    def update(self, kind: Kind, name: str, manager: str, data: Draws, which: str, dry: bool) -> None:
        leaves = data.draw(contents(kind))
        version = self.version(kind, name, which)
        answer = self.say.update(kind, name, leaves, manager, version=version, dry=dry)
        owner = Owner(manager, "Update")
        self.agree(answer, self.world.update(kind, name, leaves, owner, version=version, dry=dry), dry=dry)

    @rule(
        kind=KINDS,
        name=NAMES,
        manager=MANAGERS,
        data=st.data(),
        which=st.sampled_from(["new", "old", "none", "none"]),
        strategic=st.booleans(),
        dry=st.booleans(),
    )
    @noted
    def merge(
        self,
        kind: Kind,
        name: str,
        manager: str,
        data: Draws,
        which: str,
        strategic: bool,
        dry: bool,
    ) -> None:
        patch = data.draw(patches(kind))
        # A strategic patch adds to finalizers instead of replacing them; custom kinds do not support it.
        strategic = strategic and kind == "configmaps" and FINALIZER not in patch
        version = self.version(kind, name, which)
        answer = self.say.merge(kind, name, patch, manager, version=version, strategic=strategic, dry=dry)
        owner = Owner(manager, "Update")
        self.agree(answer, self.world.merge(kind, name, patch, owner, version=version, dry=dry), dry=dry)

    @rule(
        kind=KINDS,
        name=NAMES,
        manager=MANAGERS,
        data=st.data(),
        verb=st.sampled_from(["add", "replace", "remove"]),
    )
    @noted
    def patch(self, kind: Kind, name: str, manager: str, data: Draws, verb: str) -> None:
        path = data.draw(st.sampled_from([path for path in LEAVES[kind] if path != FINALIZER]))
        value = None if verb == "remove" else data.draw(LEAVES[kind][path])
        operation = {"op": verb, "path": "/" + "/".join(path)} | (
            {} if verb == "remove" else {"value": value}
        )
        thing = self.world.things.get((kind, name))
        answer = self.say.patch(kind, name, [operation], manager)
        if thing is not None and not _has_room(thing.leaves, path, verb):
            assert (answer.code, answer.json["reason"]) == (422, "Invalid"), answer.text
            return
        self.agree(answer, self.world.merge(kind, name, {path: value}, Owner(manager, "Update")))

    @rule(kind=KINDS, name=NAMES, manager=MANAGERS, data=st.data(), force=st.booleans(), dry=st.booleans())
    @noted
    def apply(self, kind: Kind, name: str, manager: str, data: Draws, force: bool, dry: bool) -> None:
        leaves = data.draw(contents(kind))
        answer = self.say.apply(kind, name, leaves, manager, force=force, dry=dry)
        self.agree(answer, self.world.apply(kind, name, leaves, manager, force=force, dry=dry), dry=dry)

    @rule(name=NAMES, manager=MANAGERS, phase=st.none() | SOME, size=st.none() | st.just(5))
    @noted
    def report(self, name: str, manager: str, phase: str | None, size: int | None) -> None:
        """Write a status; other fields of the patch are ignored."""
        thing = self.world.things.get(("widgets", name))
        if phase is None and thing is not None and ("status", "phase") not in thing.leaves:
            # Removing an absent field leaves an empty status, which is no leaf.
            return
        patch: dict[Path, Any] = {("status", "phase"): phase}
        if size:
            patch["spec", "size"] = size
        answer = self.say.merge("widgets", name, patch, manager, below="status")
        self.agree(answer, self.world.merge("widgets", name, patch, Owner(manager, "Update", "status")))

    # ── ending ──

    @rule(kind=KINDS, name=NAMES, dry=st.booleans(), which=st.sampled_from(["new", "old", "none", "none"]))
    @noted
    def delete(self, kind: Kind, name: str, dry: bool, which: str) -> None:
        version = self.version(kind, name, which)
        options: dict[str, Any] = {"preconditions": {"resourceVersion": version}} if version else {}
        if dry:
            options["dryRun"] = ["All"]
        answer = self.say.delete(kind, name, options)
        self.agree(answer, self.world.delete(kind, name, version=version, dry=dry), dry=dry)

    @rule(kind=KINDS, name=NAMES, policy=st.sampled_from(["Foreground", "Orphan"]))
    @noted
    def delete_in_steps(self, kind: Kind, name: str, policy: str) -> None:
        """Delete with a policy that controllers finish, and wait for them; the number of steps is not fixed."""
        thing = self.world.things.get((kind, name))
        answer = self.say.delete(kind, name, {"propagationPolicy": policy})
        expected = self.world.delete(kind, name)
        assert answer.code == expected.code, answer.text
        if thing is None:
            return
        settled = eventually_sync(
            lambda: self.say.get(kind, name), lambda one: _is_settled(one, held=thing.held)
        )
        if expected.shown is not None:
            self.world.named(expected.shown, *_called(settled))
        self.old.pop((kind, name), None)
        self.marks.clear()

    @rule(kind=KINDS, label=SELECTIONS, dry=st.booleans())
    @noted
    def delete_all(self, kind: Kind, label: tuple[Path, str] | None, dry: bool) -> None:
        """Delete a collection: the response is the list before, and each object is deleted as if alone."""
        chosen = self.world.select(kind, label)
        answer = self.say.delete_all(kind, dryRun="All" if dry else "", **self.selecting(kind, label))
        assert [one["metadata"]["name"] for one in answer.json["items"]] == [thing.name for thing in chosen]
        assert [one["metadata"]["resourceVersion"] for one in answer.json["items"]] == [
            thing.version for thing in chosen
        ]
        for thing in chosen:
            expected = self.world.delete(kind, thing.name, dry=dry)
            if expected.changed:
                self.agree(self.say.get(kind, thing.name), expected)

    # ── reading ──

    @rule(kind=KINDS, name=NAMES)
    @noted
    def get(self, kind: Kind, name: str) -> None:
        self.agree(self.say.get(kind, name), self.world.get(kind, name))

    @rule(kind=KINDS, label=SELECTIONS, limit=st.sampled_from(["", "1", "2"]))
    @noted
    def read_all(self, kind: Kind, label: tuple[Path, str] | None, limit: str) -> None:
        query = self.selecting(kind, label)
        found: list[Any] = []
        versions, token = set(), ""
        for _ in range(_MOST_PAGES):
            page = self.say.page(kind, limit=limit, **{"continue": token}, **query).json
            found += page["items"]
            versions.add(page["metadata"]["resourceVersion"])
            token = page["metadata"].get("continue", "")
            assert not limit or len(page["items"]) <= int(limit)
            if not token:
                break
        assert not token
        expected = self.world.select(kind, label)
        assert [one["metadata"]["name"] for one in found] == [thing.name for thing in expected]
        assert [one["metadata"]["resourceVersion"] for one in found] == [thing.version for thing in expected]
        assert [from_object(one) for one in found] == [thing.leaves for thing in expected]
        assert len(versions) == 1

    @rule(kind=KINDS)
    @noted
    def remember(self, kind: Kind) -> None:
        """Remember a version to watch from."""
        version = self.say.page(kind, limit="1").json["metadata"]["resourceVersion"]
        self.marks.append((len(self.world.log), version))

    @precondition(lambda self: self.marks)
    @rule(kind=KINDS, label=SELECTIONS, data=st.data())
    @noted
    def watch(self, kind: Kind, label: tuple[Path, str] | None, data: Draws) -> None:
        since, version = self.marks[data.draw(st.integers(0, len(self.marks) - 1))]
        expected = self.world.events(kind, since, label)
        query = self.selecting(kind, label)
        events = self.say.watch(kind, len(expected), resourceVersion=version, **query)
        assert [(one["type"], one["object"]["metadata"]["name"]) for one in events] == [
            (kind_, thing.name) for kind_, thing, _ in expected
        ]
        assert [from_object(one["object"]) for one in events] == [thing.leaves for _, thing, _ in expected]
        versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in events]
        assert versions == sorted(set(versions))
        for number, (_, _, known) in zip(versions, expected, strict=True):
            assert not known or number == int(known)

    # ── agreeing ──

    def selecting(self, kind: Kind, label: tuple[Path, str] | None) -> dict[str, str]:
        """Return the query that selects a label."""
        query = {"labelSelector": f"{label[0][2]}%3D{label[1]}"} if label else {}
        # A namespace has a ConfigMap of its own, which no program wrote.
        return query | (
            {"fieldSelector": "metadata.name!%3Dkube-root-ca.crt"} if kind == "configmaps" else {}
        )

    def version(self, kind: Kind, name: str, which: str) -> str:
        """Return a version for a write: the newest, an old one if there is one, or none."""
        thing = self.world.things.get((kind, name))
        if thing is None or which == "none":
            return ""
        return self.old.get((kind, name), "") if which == "old" else thing.version

    def agree(self, answer: Answer, expected: Expected, *, dry: bool = False) -> None:
        """Compare a response with the model's, and record new versions."""
        assert answer.code == expected.code, f"{expected} but {answer.text}"
        said = answer.json
        if expected.reason:
            assert said["reason"] == expected.reason, answer.text
            return
        if expected.shown is None:
            assert said["kind"] == "Status", answer.text
            return
        thing = expected.shown
        assert from_object(said) == thing.leaves, answer.text
        assert owners_of(said) == thing.owners, answer.text
        assert said["metadata"].get("generation", 0) == thing.generation, answer.text
        assert ("deletionTimestamp" in said["metadata"]) == thing.ending, answer.text
        version, uid = said["metadata"].get("resourceVersion", ""), said["metadata"]["uid"]
        if expected.changed:
            if thing.version:
                assert int(version) > int(thing.version) or thing.ending
                self.old[thing.kind, thing.name] = thing.version
            self.world.named(thing, version, uid)
        elif not dry:
            assert (version, uid) == (thing.version, thing.uid)


def _has_room(leaves: Leaves, path: Path, verb: str) -> bool:
    """Return whether a JSON patch finds its target."""
    # Replacing an absent key adds it, if its parent exists.
    if verb in ("add", "replace"):
        return path[:-1] == ("spec",) or any(one[:-1] == path[:-1] for one in leaves)
    return path in leaves


def _is_settled(answer: Answer, *, held: bool) -> bool:
    if not held:
        return answer.code == 404
    return answer.code == 200 and answer.json["metadata"]["finalizers"] == [FINALIZER[2]]


def _called(answer: Answer) -> tuple[str, str]:
    metadata = answer.json["metadata"]
    return metadata["resourceVersion"], metadata["uid"]
