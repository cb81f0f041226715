"""Objects with the label of a revision that are none: nothing waits for them, and no number is issued twice."""

import pytest

from lamina.families.resourcegraph.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    REVISION_KIND,
    Definitions,
    app,
    resource,
)


def handmade(number: int, stated: int) -> Made:
    """An object with the name and the labels of one revision, and the number of another in its spec."""
    return {
        "apiVersion": API_VERSION,
        "kind": REVISION_KIND.kind,
        "metadata": {
            "name": f"app-rev-{number}",
            "labels": {"kro.run/rgd-name": "app", "kro.run/revision-number": str(number)},
        },
        "spec": {"revision": stated, **app()["spec"]},
    }


@pytest.fixture
def there() -> Definitions:
    made = Definitions()
    made.apply(app())
    return made


@pytest.mark.parametrize(("number", "next_one"), [(7, 2), (2, 3)])
def test_a_revision_is_published_beside_an_object_that_is_none(
    there: Definitions, number: int, next_one: int
) -> None:
    there.cluster.create(handmade(number, 40))
    there.apply(app(resource(more="one")))

    assert there.status["currentRevision"] == next_one
    assert there.revision(next_one)["spec"]["revision"] == next_one
    assert there.condition("RevisionCurrent")[0] == "True"


def test_a_current_revision_whose_number_was_changed_gets_a_successor(there: Definitions) -> None:
    there.cluster.patch(REVISION_KIND.ref("", "app-rev-1"), {"spec": {"revision": 40}})
    there.run(60)

    assert there.status["currentRevision"] == 2
    assert there.revision(2)["spec"]["revision"] == 2


def test_a_revision_without_the_label_of_its_number_is_one_all_the_same(there: Definitions) -> None:
    there.cluster.patch(
        REVISION_KIND.ref("", "app-rev-1"), {"metadata": {"labels": {"kro.run/revision-number": None}}}
    )
    there.apply(app(resource(more="one")))

    assert there.status["currentRevision"] == 2
    assert meta.is_controlled_by(there.revision(2), meta.uid(there.cluster.get(APP)))
