"""Before a write that cannot be taken back, what it depends on is read from the server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, sampled_from

from lamina.core.live_check import (
    Cached,
    Confirmation,
    Fact,
    LiveCheck,
    check_live,
    confirm,
    confirm_more_than,
    has_same_spec,
    is_current,
    lists_the_same,
)
from lamina.core.model.queries import (
    Absent,
    Answer,
    Answers,
    Found,
    Listed,
    Query,
    Read,
    ReadAll,
    Refused,
    Unserved,
)
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation.cluster.kinds import CONFIG_MAP, POD

FEW, MANY = 16, 17


def obj(name: str, version: str = "1", *, uid: str = "", namespace: str = "team") -> Made:
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def cached(count: int, kind: Kind | None = CONFIG_MAP, namespace: str = "team") -> dict[str, Cached]:
    return {f"{namespace}-c{n}": Cached(obj(f"c{n}", namespace=namespace), kind) for n in range(count)}


def read(one: Obj) -> Read:
    return Read(meta.ref(one))


# ── objects ──


def test_nothing_has_to_be_confirmed_where_nothing_is_relied_on() -> None:
    assert confirm({}, Answers()).is_confirmed


def test_an_object_is_confirmed_only_once_it_was_read() -> None:
    seen = obj("a")

    before = confirm({"a": Cached(seen)}, Answers())
    after = confirm({"a": Cached(seen)}, Answers({read(seen): Found(obj("a"))}))

    assert before == Confirmation(pending=(read(seen),))
    assert not before.is_confirmed
    assert after.is_confirmed


@pytest.mark.parametrize(
    ("answer", "is_outdated"),
    [
        (Found(obj("a")), False),
        (Found(obj("a", "2")), True),
        (Found(obj("a", uid="another")), True),
        (Absent(), True),
        (Unserved(), True),
        (Refused(403, "no"), True),
    ],
)
def test_another_version_and_none_at_all_are_outdated(answer: Answer, is_outdated: bool) -> None:
    seen = obj("a")

    found = confirm({"a": Cached(seen)}, Answers({read(seen): answer}))

    assert found.outdated == (frozenset({"a"}) if is_outdated else frozenset())
    assert found.is_confirmed is not is_outdated
    assert found.pending == ()


@pytest.mark.parametrize(
    ("count", "kind", "asked"),
    [
        (1,    CONFIG_MAP, 1),
        (FEW,  CONFIG_MAP, FEW),
        (MANY, CONFIG_MAP, 1),
        (MANY, None,       MANY),
    ],
)  # fmt: skip
def test_few_are_read_one_by_one_and_many_are_listed(count: int, kind: Kind | None, asked: int) -> None:
    pending = confirm(cached(count, kind), Answers()).pending

    assert len(pending) == asked
    is_listed = kind is not None and count > FEW
    assert pending[0] == (ReadAll(CONFIG_MAP, "team") if is_listed else read(obj("c0")))


def test_each_kind_and_namespace_is_counted_by_itself() -> None:
    few, many = cached(FEW, namespace="one"), cached(MANY, namespace="two")
    pods = {f"p{n}": Cached(obj(f"p{n}", namespace="two"), POD) for n in range(2)}

    pending = confirm({**few, **many, **pods}, Answers()).pending

    assert ReadAll(CONFIG_MAP, "two") in pending
    assert len(pending) == FEW + 1 + 2


def test_one_list_confirms_and_refutes_many() -> None:
    objects = cached(MANY)
    there = [obj(f"c{n}") for n in range(2, MANY)]

    found = confirm(objects, Answers({ReadAll(CONFIG_MAP, "team"): Listed((*there, obj("c1", "9")))}))

    assert found == Confirmation(outdated=frozenset({"team-c0", "team-c1"}))


def test_what_was_answered_counts_while_the_rest_is_asked() -> None:
    answers = Answers({read(obj("c0")): Absent(), read(obj("c1")): Found(obj("c1"))})

    found = confirm(cached(3), answers)

    assert found == Confirmation(pending=(read(obj("c2")),), outdated=frozenset({"team-c0"}))


def test_two_names_of_one_object_are_one_query() -> None:
    assert confirm({"a": Cached(obj("x")), "b": Cached(obj("x"))}, Answers()).pending == (read(obj("x")),)


@given(
    lists(sampled_from(["same", "changed", "gone"]), max_size=40),
    booleans(),
)
def test_a_server_that_answers_everything_ends_the_questions(states: list[str], may_list: bool) -> None:
    objects = {n: Cached(obj(f"c{n}"), CONFIG_MAP if may_list else None) for n in range(len(states))}
    there = {
        f"c{n}": obj(f"c{n}", "1" if state == "same" else "2")
        for n, state in enumerate(states)
        if state != "gone"
    }

    asked = confirm(objects, Answers()).pending
    found = confirm(objects, Answers({one: _answer(one, there) for one in asked}))

    assert len(asked) == (1 if may_list and len(states) > FEW else len(states))
    assert found.pending == ()
    assert found.outdated == {n for n, state in enumerate(states) if state != "same"}


def _answer(query: Query, there: dict[str, Made]) -> Answer:
    if isinstance(query, ReadAll):
        return Listed(tuple(there.values()))
    assert isinstance(query, Read)
    found = there.get(query.ref.name)
    return Found(found) if found is not None else Absent()


# ── facts ──


def look(name: str) -> Read:
    return Read(Ref("v1", "ConfigMap", "team", name), whole=True)


class Server:
    """Facts `f0`, `f1`, … of which some hold, each of one object and one they share."""

    def __init__(self, count: int, holding: set[int]) -> None:
        self.answers = Answers()
        self.asked: list[Read] = []
        self.facts = [
            Fact((look(f"f{n}"), look("shared")), lambda n=n: n in holding)  # type: ignore[misc]
            for n in range(count)
        ]
        self.holding = holding

    def refuted(self) -> list[int]:
        return [n for n in range(len(self.facts)) if look(f"f{n}") in self.answers and n not in self.holding]

    def run(self, tolerated: int, *, rounds: int = 40, refute: bool = True) -> Confirmation[Any]:
        for _ in range(rounds):
            # What a read has refuted is left out by a view with that read in it.
            refuted = self.refuted() if refute else []
            facts = [one for n, one in enumerate(self.facts) if n not in refuted]
            found = confirm_more_than(tolerated, facts, self.answers, refuted=len(refuted))
            if not found.pending:
                return found
            reads = [one for one in found.pending if isinstance(one, Read)]
            assert len(reads) == len(found.pending)
            assert not found.is_confirmed
            self.asked += reads
            self.answers = self.answers | {one: Found(obj(one.ref.name)) for one in reads}
        raise AssertionError("it goes on asking")


@pytest.mark.parametrize(
    ("count", "holding", "tolerated", "confirmed"),
    [
        (1, {0},          0, True),
        (1, set(),        0, False),
        (4, {0},          0, True),
        (4, {3},          0, True),
        (4, {0, 1},       1, True),
        (4, {0, 1},       2, False),
        (4, {0, 1, 2, 3}, 3, True),
        (4, {0, 1, 2, 3}, 4, False),
        (0, set(),        0, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("refute", [True, False])
def test_more_than_are_tolerated_have_to_hold(
    count: int, holding: set[int], tolerated: int, confirmed: bool, refute: bool
) -> None:
    found = Server(count, holding).run(tolerated, refute=refute)

    assert found.is_confirmed is confirmed
    assert found.too_few is not confirmed


def test_no_more_is_read_than_it_takes() -> None:
    server = Server(40, set(range(40)))

    assert server.run(3).is_confirmed
    assert server.asked == [look("f0"), look("shared"), look("f1"), look("f2"), look("f3")]


def test_many_that_hold_need_few_rounds() -> None:
    assert Server(200, set(range(200))).run(100, rounds=8).is_confirmed


def test_a_stale_cache_shows_after_a_few_reads() -> None:
    server = Server(300, set())

    assert server.run(0).too_few
    assert len(server.asked) <= 2 * 8


def test_where_most_hold_a_few_that_do_not_change_nothing() -> None:
    server = Server(40, set(range(7, 40)))

    assert server.run(20).is_confirmed


@given(lists(booleans(), max_size=31), integers(0, 12), booleans())
def test_it_is_confirmed_only_if_enough_hold_and_refuted_only_if_too_few_do_or_many_do_not(
    holds: list[bool], tolerated: int, refute: bool
) -> None:
    server = Server(len(holds), {place for place, held in enumerate(holds) if held})

    found = server.run(tolerated, rounds=100, refute=refute)

    if found.is_confirmed:
        assert sum(1 for n in server.holding if look(f"f{n}") in server.answers) > tolerated
    else:
        assert len(server.holding) <= tolerated or (refute and len(server.refuted()) >= 8)


@pytest.mark.parametrize(
    ("live", "current"),
    [
        ({"uid": "one", "generation": 2, "resourceVersion": "9"}, True),
        ({"uid": "one", "generation": 3}, False),
        ({"uid": "two", "generation": 2}, False),
        ({"uid": "one", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_a_cached_object_is_current_as_long_as_its_spec_is_and_it_is_not_deleted(
    live: dict[str, object], current: bool
) -> None:
    cached = {"metadata": {"uid": "one", "generation": 2, "resourceVersion": "7"}}

    assert is_current({"metadata": live}, cached) is current


# ── what has to be true of an object ──


def seen(version: str = "1", *, generation: int = 1, deleting: bool = False, uid: str = "") -> Made:
    made = obj("a", version, uid=uid)
    made["metadata"]["generation"] = generation
    if deleting:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


@pytest.mark.parametrize(
    ("live", "same_spec", "current"),
    [
        (seen(),                 True,  True),
        (seen("2"),              True,  True),
        (seen(generation=2),     False, False),
        (seen(uid="another"),    False, False),
        (seen("2", deleting=True), True, False),
    ],
)  # fmt: skip
def test_a_live_object_is_the_cached_one(live: Made, same_spec: bool, current: bool) -> None:
    assert has_same_spec(live, seen()) == same_spec
    assert is_current(live, seen()) == current


def test_a_check_holds_of_an_object_that_was_read() -> None:
    check = LiveCheck(cached=seen())

    assert check_live([check], Answers()) == Confirmation(pending=(Read(meta.ref(seen())),))
    assert check_live([check], Answers({check.read: Found(seen("2"))})).is_confirmed
    assert check_live([check], Answers({check.read: Found(seen(generation=2))})).outdated == {"uid-a"}
    assert check_live([check], Answers({check.read: Absent()})).outdated == {"uid-a"}
    assert check_live([check], Answers({check.read: Refused(403, "no")})).outdated == {"uid-a"}


def test_a_check_may_ask_for_the_whole_object_and_for_something_else_of_it() -> None:
    check = LiveCheck(cached=seen(), holds=lambda live, cached: live.get("spec") == "fine", whole=True)

    assert check.read == Read(meta.ref(seen()), whole=True)
    assert check_live(
        [check], Answers({check.read: Found({**seen("9", uid="x"), "spec": "fine"})})
    ).is_confirmed
    assert not check_live([check], Answers({check.read: Found(seen())})).is_confirmed


def test_several_checks_are_asked_together_and_all_have_to_hold() -> None:
    first, second = LiveCheck(cached=seen()), LiveCheck(cached=obj("b"))
    answered = Answers({first.read: Found(seen())})

    assert check_live([first, second], Answers()).pending == (first.read, second.read)
    assert check_live([first, second], answered).pending == (second.read,)
    assert check_live([first, second], answered | {second.read: Found(obj("b", "9"))}).is_confirmed
    assert check_live([first, second], answered | {second.read: Absent()}).outdated == {"uid-b"}
    assert check_live((), Answers()).is_confirmed


def owned(name: str, owner: str, *, controller: bool = True) -> Made:
    made = obj(name)
    reference = {"apiVersion": "v1", "kind": "Thing", "name": owner, "uid": owner, "controller": controller}
    made["metadata"]["ownerReferences"] = [reference]
    return made


@pytest.mark.parametrize(
    ("live", "same"),
    [
        ([owned("a", "me"), owned("b", "me")], True),
        ([owned("b", "me"), owned("a", "me"), owned("c", "other"), obj("d")], True),
        ([owned("a", "me"), owned("b", "me"), owned("c", "me")], False),
        ([owned("a", "me")], False),
        ([owned("a", "me"), owned("b", "me", controller=False)], False),
    ],
)
def test_a_cache_has_what_an_owner_controls(live: list[Obj], same: bool) -> None:
    assert lists_the_same(live, [owned("a", "me"), owned("b", "me")], "me") == same
