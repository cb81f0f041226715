"""Many works that mean one object: each marks it, and none is troubled by the marks of others."""

from typing import Any

import pytest

from lamina.core.plan import Replace
from lamina.families.manifestwork.names import WORK_VERSION
from lamina.families.manifestwork.spoke.ownership import marked_anew
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.manifestwork.spoke.story import Spoke, config_map


def mark(name: str, uid: str = "") -> Made:
    return {
        "apiVersion": WORK_VERSION,
        "kind": "AppliedManifestWork",
        "name": name,
        "uid": uid or f"uid-{name}",
    }


def stated(manager: str, fields: Made, time: str = "1") -> Made:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


def obj(*owners: Made, data: str = "1", **metadata: Any) -> Made:
    made = config_map(a=data)
    return {**made, "metadata": {**made["metadata"], "ownerReferences": list(owners), **metadata}}


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d"}
OWNERS: Made = {"f:metadata": {"f:ownerReferences": {"k:1": {}}}}
DATA: Made = {"f:data": {"f:a": {}}}


@pytest.mark.parametrize(
    ("before", "after", "whom"),
    [
        (obj(mark("a")), obj(mark("a"), mark("b")), {"b"}),
        (obj(mark("a"), mark("b")), obj(mark("a")), {"b"}),
        (obj(mark("a")), obj(mark("a", "another")), {"a"}),
        (obj(mark("a")), obj(mark("b")), {"a", "b"}),
        (obj(mark("a"), resourceVersion="1"), obj(mark("a"), resourceVersion="2"), set()),
        (obj(), obj(mark("b"), data="2"), None),
        (obj(), obj(mark("b"), labels={"x": "y"}), None),
        (obj(), obj(DEPLOYMENT), None),
        (
            obj(managedFields=[stated("agent", DATA)]),
            obj(mark("b"), managedFields=[stated("agent", {**DATA, **OWNERS}, "2")]),
            {"b"},
        ),
        (obj(), obj(mark("b"), managedFields=[stated("agent", OWNERS)]), {"b"}),
        (
            obj(managedFields=[stated("agent", DATA), stated("other", DATA)]),
            obj(managedFields=[stated("agent", DATA)]),
            None,
        ),
    ],
    ids=["got", "lost", "made-anew", "swapped", "nothing", "content", "label", "other-owner", "stated", "stated-first", "given-up"],
)  # fmt: skip
def test_a_mark_is_news_to_its_work_and_anything_else_to_everybody(
    before: Made, after: Made, whom: set[str] | None
) -> None:
    found = marked_anew(before, after)
    assert (set(found) if found is not None else None) == whom


def test_each_of_many_works_marks_what_they_share_once() -> None:
    spoke, names = Spoke(), [f"w{number}" for number in range(12)]
    for name in names:
        spoke.want(config_map(a="1"), name=name)
    spoke.run()

    assert {owner["name"] for owner in meta.owner_refs(spoke.there())} == {f"hash-{name}" for name in names}
    written = [one for one in spoke.home.journal if isinstance(one, Replace)]
    assert len(written) == len(names) - 1, "the first one made it"
    assert all(spoke.said("Applied", name) == ("True", "AppliedManifestWorkComplete") for name in names)


def test_what_is_shared_is_mended_and_goes_with_the_last_of_its_works() -> None:
    spoke = Spoke()
    for name in ("one", "two"):
        spoke.want(config_map(a="1"), name=name)
    spoke.run()
    spoke.home.patch(meta.ref(spoke.there()), {"data": {"a": "drifted"}})
    spoke.run()
    assert spoke.there()["data"] == {"a": "1"}

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()
    assert [owner["name"] for owner in meta.owner_refs(spoke.there())] == ["hash-two"]
    spoke.hub.delete(spoke.work_ref("two"))
    spoke.run()
    assert not spoke.has()
