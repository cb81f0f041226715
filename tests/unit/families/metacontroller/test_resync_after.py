"""When the hook is called again because it asked for it."""

from datetime import timedelta

import pytest

from lamina.errors import HookError
from lamina.objects.types import Made
from tests.unit.families.metacontroller.catset import PARENT, Cats, planned


class Resyncing(Cats):
    """The hook asks to be called again, after seconds that the parent's spec has."""

    def hook(self, said: Made) -> Made:
        spec = said["parent"]["spec"]
        return {**super().hook(said), "resyncAfterSeconds": spec["template"].get("again", 0)}

    def pod(self, number: int, image: str) -> Made:
        pod = super().pod(number, image)
        if image == "mislabelled":
            pod["metadata"]["labels"] = {"app": "another"}
        return pod


def resyncing(**template: object) -> Resyncing:
    cats = Resyncing()
    cats.start()
    cats.want(template=template)
    return cats


@pytest.mark.parametrize("applies", [False, True])
def test_an_answer_whose_children_are_refused_has_the_hook_called_again_all_the_same(applies: bool) -> None:
    cats = resyncing(image="one", again=100)
    cats.roll(applies=applies)
    cats.want(template={"image": "mislabelled", "again": 200})

    plan = planned(cats, cats.controller(applies=applies), PARENT)

    assert isinstance(plan.failure, HookError)
    assert "labels on desired child pod default/nginx-0 don't match parent selector" in str(plan.failure)
    assert plan.stages == ()
    assert plan.appointment == timedelta(seconds=100)


def test_of_several_revisions_the_earliest_counts() -> None:
    cats = resyncing(image="one", again=500)
    cats.roll()
    cats.want(template={"image": "two", "again": 1000})
    cats.settle()

    assert planned(cats, cats.controller(), PARENT).appointment == timedelta(seconds=500)
    cats.roll()

    assert planned(cats, cats.controller(), PARENT).appointment == timedelta(seconds=1000)


def test_a_hook_that_does_not_ask_is_not_called_again() -> None:
    cats = resyncing(image="one")
    cats.roll()

    assert planned(cats, cats.controller(), PARENT).appointment is None
