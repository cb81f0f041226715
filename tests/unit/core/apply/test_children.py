"""Desired against observed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.apply.children import Child, ChildAction, Method, decide, sort_out
from lamina.objects.types import Made, Obj

WANTED: Obj = {"metadata": {"name": "a"}}
THERE: Obj = {"metadata": {"name": "a", "uid": "1"}}
GOING: Obj = {"metadata": {"name": "a", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("desired", "observed", "differs", "on_delete", "recreate", "in_place"),
    [
        (WANTED, None,  False, ChildAction.CREATE, ChildAction.CREATE,  ChildAction.CREATE),
        (WANTED, THERE, False, ChildAction.KEEP,   ChildAction.KEEP,    ChildAction.KEEP),
        (WANTED, THERE, True,  ChildAction.LEAVE,  ChildAction.REPLACE, ChildAction.UPDATE),
        (WANTED, GOING, True,  ChildAction.WAIT,   ChildAction.WAIT,    ChildAction.WAIT),
        (WANTED, GOING, False, ChildAction.WAIT,   ChildAction.WAIT,    ChildAction.WAIT),
        (None,   THERE, False, ChildAction.DELETE, ChildAction.DELETE,  ChildAction.DELETE),
        (None,   GOING, False, ChildAction.WAIT,   ChildAction.WAIT,    ChildAction.WAIT),
        (None,   None,  False, ChildAction.KEEP,   ChildAction.KEEP,    ChildAction.KEEP),
    ],
)  # fmt: skip
def test_what_is_done_about_a_child(
    desired: Obj | None,
    observed: Obj | None,
    differs: bool,
    on_delete: ChildAction,
    recreate: ChildAction,
    in_place: ChildAction,
) -> None:
    def action(method: Method) -> ChildAction:
        return decide(Child(key="a", desired=desired, observed=observed, differs=differs, method=method))

    assert action(Method.ON_DELETE) is on_delete
    assert action(Method.RECREATE) is recreate
    assert action(Method.IN_PLACE) is in_place


def test_children_are_sorted_out_in_the_order_given() -> None:
    new = [Child(key=key, desired=WANTED, observed=None) for key in "ba"]
    old = Child(key="c", desired=None, observed=THERE)

    assert sort_out([new[0], old, new[1]]) == {ChildAction.CREATE: tuple(new), ChildAction.DELETE: (old,)}


# Applied again and again

NAMES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)
METHODS = st.sampled_from(Method)


class Cluster:
    """Children with one number each; a deletion takes two passes, and an object is made anew after that."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.objects: dict[str, Made] = {name: made(name, size) for name, size in sizes.items()}

    def sync(self, sizes: dict[str, int], method: Method) -> bool:
        """Act once on every child; return whether anything was done."""
        children = [
            Child(
                key=name,
                desired=made(name, sizes[name]) if name in sizes else None,
                observed=self.objects.get(name),
                differs=self.objects.get(name, {}).get("size") != sizes.get(name),
                method=method,
            )
            for name in sorted(sizes.keys() | self.objects.keys())
        ]
        is_busy = False
        for action, those in sort_out(children).items():
            for child in those:
                is_busy |= self._act(action, child)
        return is_busy

    def _act(self, action: ChildAction, child: Child[str]) -> bool:
        match action:
            case ChildAction.CREATE | ChildAction.UPDATE:
                assert child.desired is not None
                self.objects[child.key] = dict(child.desired)
            case ChildAction.DELETE | ChildAction.REPLACE:
                live = self.objects[child.key]
                self.objects[child.key] = {
                    **live,
                    "metadata": {**live["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
                }
            case ChildAction.WAIT:
                del self.objects[child.key]
            case _:
                return False
        return True

    @property
    def sizes(self) -> dict[str, int]:
        return {name: obj["size"] for name, obj in self.objects.items()}


def made(name: str, size: int) -> Made:
    return {"metadata": {"name": name}, "size": size}


def settle(cluster: Cluster, sizes: dict[str, int], method: Method) -> int:
    for count in range(6):
        if not cluster.sync(sizes, method):
            return count
    raise AssertionError("it never settles")


@given(before=NAMES, after=NAMES, method=st.sampled_from((Method.RECREATE, Method.IN_PLACE)))
def test_children_become_what_is_desired_and_then_nothing_is_done(
    before: dict[str, int], after: dict[str, int], method: Method
) -> None:
    cluster = Cluster(before)
    settle(cluster, after, method)

    assert cluster.sizes == after
    assert settle(cluster, after, method) == 0


@given(before=NAMES, after=NAMES)
def test_a_child_that_is_updated_on_delete_stays_until_it_is_deleted(
    before: dict[str, int], after: dict[str, int]
) -> None:
    cluster = Cluster(before)
    settle(cluster, after, Method.ON_DELETE)
    assert cluster.sizes == {name: before.get(name, size) for name, size in after.items()}

    cluster.objects.clear()
    settle(cluster, after, Method.ON_DELETE)
    assert cluster.sizes == after


@given(before=NAMES, after=NAMES, method=METHODS)
def test_every_child_is_in_one_place_of_what_is_done(
    before: dict[str, int], after: dict[str, int], method: Method
) -> None:
    children = [
        Child(
            key=name,
            desired=made(name, after[name]) if name in after else None,
            observed=made(name, before[name]) if name in before else None,
            differs=before.get(name) != after.get(name),
            method=method,
        )
        for name in sorted(before | after)
    ]
    done = sort_out(children)

    assert sorted(child.key for those in done.values() for child in those) == sorted(before | after)
    assert all(decide(child) is action for action, those in done.items() for child in those)


@given(sizes=NAMES, method=METHODS)
def test_a_child_that_is_being_deleted_is_only_waited_for(sizes: dict[str, int], method: Method) -> None:
    cluster = Cluster(sizes)
    cluster.sync({}, method)
    children = [
        Child(key=name, desired=wanted, observed=obj, differs=True, method=method)
        for name, obj in cluster.objects.items()
        for wanted in (None, made(name, 9))
    ]

    assert {decide(child) for child in children} <= {ChildAction.WAIT}
