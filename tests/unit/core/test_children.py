"""Desired against observed."""

import pytest

from lamina.core.children import Child, Deed, Method, decide, sort_out
from lamina.objects.types import Obj

WANTED: Obj = {"metadata": {"name": "a"}}
THERE: Obj = {"metadata": {"name": "a", "uid": "1"}}
GOING: Obj = {"metadata": {"name": "a", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("desired", "observed", "differs", "on_delete", "recreate", "in_place"),
    [
        (WANTED, None,  False, Deed.CREATE, Deed.CREATE,  Deed.CREATE),
        (WANTED, THERE, False, Deed.KEEP,   Deed.KEEP,    Deed.KEEP),
        (WANTED, THERE, True,  Deed.LEAVE,  Deed.REPLACE, Deed.UPDATE),
        (WANTED, GOING, True,  Deed.WAIT,   Deed.WAIT,    Deed.WAIT),
        (WANTED, GOING, False, Deed.WAIT,   Deed.WAIT,    Deed.WAIT),
        (None,   THERE, False, Deed.DELETE, Deed.DELETE,  Deed.DELETE),
        (None,   GOING, False, Deed.WAIT,   Deed.WAIT,    Deed.WAIT),
        (None,   None,  False, Deed.KEEP,   Deed.KEEP,    Deed.KEEP),
    ],
)  # fmt: skip
def test_what_is_done_about_a_child(
    desired: Obj | None, observed: Obj | None, differs: bool, on_delete: Deed, recreate: Deed, in_place: Deed
) -> None:
    def deed(method: Method) -> Deed:
        return decide(Child(key="a", desired=desired, observed=observed, differs=differs, method=method))

    assert deed(Method.ON_DELETE) is on_delete
    assert deed(Method.RECREATE) is recreate
    assert deed(Method.IN_PLACE) is in_place


def test_children_are_sorted_out_in_the_order_given() -> None:
    new = [Child(key=key, desired=WANTED, observed=None) for key in "ba"]
    old = Child(key="c", desired=None, observed=THERE)

    assert sort_out([new[0], old, new[1]]) == {Deed.CREATE: tuple(new), Deed.DELETE: (old,)}
