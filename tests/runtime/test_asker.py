"""Asking the server itself."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.core.questions import Found, Read, Refused, Rehearse, Review
from lamina.errors import Forbidden, Invalid, UnknownCluster, Unreachable
from lamina.objects.types import Made, Obj
from lamina.runtime.asker import Asker
from tests.runtime.cluster import at
from tests.runtime.scripted import Script, groups


@dataclass(eq=False)
class Pretending:
    """A server that only pretends, and says how often."""

    refuses: bool = False
    asked: list[Obj] = field(default_factory=list)
    name: str = "ourselves"

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

    def acting_as(self, user: str) -> "Pretending":
        return Pretending(self.refuses, self.asked, name=user)

    async def update(self, *arguments: Any, **options: Any) -> Made:
        raise AssertionError("nobody asked for that")

    async def get(self, *arguments: Any, **options: Any) -> Made:
        raise AssertionError("nobody asked for that")

    async def list(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("nobody asked for that")


def rehearsal(key: str) -> Rehearse:
    return Rehearse(obj={"key": key}, manager="m", key=key)


async def test_a_rehearsal_of_the_same_is_held_once_whatever_comes_of_it() -> None:
    for refuses in (False, True):
        server = Pretending(refuses)
        asker = Asker(server)
        answers = [(await asker.ask([rehearsal(key)]))[rehearsal(key)] for key in ("a", "a", "b", "a")]

        assert [obj["key"] for obj in server.asked] == ["a", "b"]
        assert all(isinstance(one, Refused if refuses else Found) for one in answers)
        assert answers[0] == answers[1] == answers[3]


async def test_what_a_user_may_do_is_asked_as_that_user_and_asked_again_each_time() -> None:
    server = Pretending()
    asker = Asker(server)
    for creates in (True, False):
        asked = Rehearse(obj={"key": "a"}, manager="m", key="a", user="ann", creates=creates)
        for _ in range(2):
            await asker.ask([asked])

    assert len(server.asked) == 4
    review = Review(body={"spec": {}}, key="may-ann", user="ann")
    assert (await asker.ask([review]))[review] == Found({"spec": {}, "status": {"allowed": "ann"}})


async def test_a_review_that_is_refused_is_an_answer() -> None:
    review = Review(body={}, key="a")
    refused = (await Asker(Pretending(refuses=True)).ask([review]))[review]

    assert refused == Refused(403, "that is not yours to make")


async def test_each_cluster_is_asked_for_itself() -> None:
    home, hub = Pretending(), Pretending()
    asker = Asker(home, others={"hub": hub})
    here, there = rehearsal("a"), Rehearse(obj={"key": "a"}, manager="m", key="a", cluster="hub")
    answers = await asker.ask([here, there])

    assert len(home.asked) == len(hub.asked) == 1
    assert set(answers) == {here, there}
    with pytest.raises(
        UnknownCluster, match="nobody said which cluster 'east' is: the clusters bound are hub"
    ):
        await asker.ask([Review(body={}, key="a", cluster="east")])


async def test_what_one_cluster_pretended_is_not_asked_of_it_when_another_has_its_name() -> None:
    old, new, asked = Pretending(), Pretending(refuses=True), replace(rehearsal("a"), cluster="b")
    others = {"b": old}
    asker = Asker(Pretending(), others=others)
    begun = asker.as_of_now()
    assert isinstance((await begun.ask([asked]))[asked], Found)

    others["b"] = new

    assert isinstance((await asker.as_of_now().ask([asked]))[asked], Refused)
    assert isinstance((await begun.ask([asked]))[asked], Found)


async def test_an_answer_that_is_no_json_is_none() -> None:
    script = Script()
    script.reply("GET", "/api", groups(("v1", "ConfigMap", "configmaps")))
    script.reply("GET", "/apis", groups(group="none.example.com"))
    script.reply("GET", "/api/v1/namespaces/default/configmaps/a", b"<html>come in</html>")

    with pytest.raises(Unreachable, match="no JSON"):
        await Asker(Client(script)).ask([Read(at("a"))])
