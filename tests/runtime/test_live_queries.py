"""Asking the server itself."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.core.model.queries import DryRun, Found, Read, Refused, Review
from lamina.errors import Forbidden, Invalid, UnknownCluster, Unreachable
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj
from lamina.runtime.controller.live_queries import LiveQueries
from tests.runtime.cluster import at
from tests.runtime.scripted import Script, groups


@dataclass(eq=False)
class Pretending:
    """A server that only pretends, and says how often."""

    refuses: bool = False
    asked: list[Obj] = field(default_factory=list)
    name: str = "ourselves"
    known_kinds: Kinds = field(default_factory=Kinds)

    async def apply(
        self, obj: Obj, *, manager: str | None = None, force: bool = False, dry_run: bool = False
    ) -> Made:
        assert dry_run
        self.asked.append(obj)
        if self.refuses:
            raise Invalid("it cannot be changed")
        return dict(obj)

    async def create(self, obj: Obj, *, manager: str | None = None, dry_run: bool = False) -> Made:
        self.asked.append(obj)
        if self.refuses:
            raise Forbidden("that is not yours to make")
        return {**obj, "status": {"allowed": self.name}}

    def impersonating(self, user: str) -> "Pretending":
        return Pretending(self.refuses, self.asked, name=user)

    async def update(self, *arguments: Any, **options: Any) -> Made:
        raise AssertionError("unexpected update")

    async def get(self, *arguments: Any, **options: Any) -> Made:
        raise AssertionError("unexpected get")

    async def list(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("unexpected list")

    async def kind(self, *arguments: Any) -> Any:
        raise AssertionError("unexpected kind")

    async def openapi_documents(self) -> Any:
        raise AssertionError("unexpected list of documents")

    async def openapi(self, url: str) -> Made:
        raise AssertionError("unexpected document")


def rehearsal(key: str) -> DryRun:
    return DryRun(obj={"key": key}, manager="m", key=key)


async def test_equal_dry_runs_are_sent_once_whatever_their_result() -> None:
    for refuses in (False, True):
        server = Pretending(refuses)
        queries = LiveQueries(server)
        answers = [(await queries.ask([rehearsal(key)]))[rehearsal(key)] for key in ("a", "a", "b", "a")]

        assert [obj["key"] for obj in server.asked] == ["a", "b"]
        assert all(isinstance(one, Refused if refuses else Found) for one in answers)
        assert answers[0] == answers[1] == answers[3]


async def test_a_fresh_dry_run_is_sent_each_time() -> None:
    server = Pretending(refuses=True)
    queries = LiveQueries(server)
    asked = replace(rehearsal("a"), fresh=True)
    for query in (rehearsal("a"), asked, asked, rehearsal("a")):
        await queries.ask([query])

    assert len(server.asked) == 3


async def test_what_a_user_may_do_is_asked_as_that_user_and_asked_again_each_time() -> None:
    server = Pretending()
    queries = LiveQueries(server)
    for creates in (True, False):
        asked = DryRun(obj={"key": "a"}, manager="m", key="a", user="ann", creates=creates)
        for _ in range(2):
            await queries.ask([asked])

    assert len(server.asked) == 4
    review = Review(body={"spec": {}}, key="may-ann", user="ann")
    assert (await queries.ask([review]))[review] == Found({"spec": {}, "status": {"allowed": "ann"}})


async def test_a_review_that_is_refused_is_an_answer() -> None:
    review = Review(body={}, key="a")
    refused = (await LiveQueries(Pretending(refuses=True)).ask([review]))[review]

    assert refused == Refused(403, "that is not yours to make")


async def test_each_cluster_is_asked_for_itself() -> None:
    home, hub = Pretending(), Pretending()
    queries = LiveQueries(home, others={"hub": hub})
    here, there = rehearsal("a"), DryRun(obj={"key": "a"}, manager="m", key="a", cluster="hub")
    answers = await queries.ask([here, there])

    assert len(home.asked) == len(hub.asked) == 1
    assert set(answers) == {here, there}
    with pytest.raises(UnknownCluster, match="cluster 'east' is not bound: the bound clusters are hub"):
        await queries.ask([Review(body={}, key="a", cluster="east")])


async def test_what_one_cluster_pretended_is_not_asked_of_it_when_another_has_its_name() -> None:
    old, new, asked = Pretending(), Pretending(refuses=True), replace(rehearsal("a"), cluster="b")
    others = {"b": old}
    queries = LiveQueries(Pretending(), others=others)
    begun = queries.with_current_bindings()
    assert isinstance((await begun.ask([asked]))[asked], Found)

    others["b"] = new

    assert isinstance((await queries.with_current_bindings().ask([asked]))[asked], Refused)
    assert isinstance((await begun.ask([asked]))[asked], Found)


async def test_an_answer_that_is_no_json_is_none() -> None:
    script = Script()
    script.reply("GET", "/api", groups(("v1", "ConfigMap", "configmaps")))
    script.reply("GET", "/apis", groups(group="none.example.com"))
    script.reply("GET", "/api/v1/namespaces/default/configmaps/a", b"<html>come in</html>")

    with pytest.raises(Unreachable, match="invalid JSON"):
        await LiveQueries(Client(script)).ask([Read(at("a"))])
