"""Asking the server itself."""

from dataclasses import dataclass, field
from typing import Any

from lamina.core.questions import Found, Refused, Rehearse
from lamina.errors import Invalid
from lamina.objects.types import Made, Obj
from lamina.runtime.asker import Asker


@dataclass
class Pretending:
    """A server that only pretends, and says how often."""

    refuses: bool = False
    asked: list[Obj] = field(default_factory=list)

    async def apply(
        self, obj: Obj, *, manager: str | None = None, force: bool = False, dry_run: bool = False
    ) -> Made:
        assert dry_run
        self.asked.append(obj)
        if self.refuses:
            raise Invalid("it cannot be changed")
        return dict(obj)

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
