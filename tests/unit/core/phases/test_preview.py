"""What a new revision would do with objects, before it is made."""

import pytest

from lamina.core.ownership.handover import Adoption
from lamina.core.phases.archive import RevisionFacts
from lamina.core.phases.contents import Contents
from lamina.core.phases.preview import given_up, object_change, refusal
from lamina.core.phases.targets import RevisionObjects
from lamina.core.rollout.preview import ChangeKind
from lamina.objects.types import Obj
from tests.unit.core.phases.objects import key, live, manifest, owner, owner_object

NEVER, ORPHANS, ANY = Adoption.NEVER, Adoption.ORPHANS, Adoption.ANY


@pytest.mark.parametrize(
    ("found", "adoption", "kind", "revision", "words"),
    [
        (None,                      NEVER,   ChangeKind.CREATE, 0, ""),
        (live(controller=4),        NEVER,   ChangeKind.UPDATE, 4, "taken over from Stack stack-4"),
        (live(controller=None),     ORPHANS, ChangeKind.ADOPT,  0, "adopted; it has no controller"),
        (live(controller="other"),  ANY,     ChangeKind.ADOPT,  0, "taken from Other other"),
    ],
)  # fmt: skip
def test_what_a_revision_would_gain(
    found: Obj | None, adoption: Adoption, kind: ChangeKind, revision: int, words: str
) -> None:
    change = object_change(owner(siblings=[4]), manifest(adoption=adoption), found)

    assert change is not None
    assert (change.kind, change.revision, change.message) == (kind, revision, words)
    assert change.target == "ConfigMap team/a"
    assert refusal(owner(siblings=[4]), manifest(adoption=adoption), found) == ""


@pytest.mark.parametrize("found", [live(controller=5), live(controller=6)], ids=["its own", "a newer one's"])
def test_what_a_revision_would_leave_as_it_is(found: Obj) -> None:
    assert object_change(owner(siblings=[6]), manifest(), found) is None
    assert refusal(owner(siblings=[6]), manifest(), found) == ""


@pytest.mark.parametrize("found", [live(controller=None), live(controller="other"), live(controller=4)])
def test_what_a_revision_would_be_refused(found: Obj) -> None:
    who = owner(siblings={4: 5})

    assert object_change(who, manifest(), found) is None
    assert refusal(who, manifest(), found).startswith("refused: re")


def test_an_unknown_adoption_creates_nothing() -> None:
    assert object_change(owner(), manifest(adoption=None), None) is None


def test_what_a_new_revision_does_not_contain_is_given_up() -> None:
    older = RevisionObjects(
        facts=RevisionFacts(
            obj=owner_object(4), number=4, contents=Contents({}), controlled=frozenset(map(key, "abc")),
            is_live=True, is_available=True, was_available=True, has_succeeded=True, is_in_transition=False,
            is_reported=True,
        ),
        manifests=(manifest("a"), manifest("b"), manifest("c", is_orphaned=True)),
    )  # fmt: skip

    changes = list(given_up(older, {key("a")}, 5))

    assert [(one.target, one.kind) for one in changes] == [
        ("ConfigMap team/b", ChangeKind.DELETE),
        ("ConfigMap team/c", ChangeKind.RELEASE),
    ]
    for one in changes:
        assert one.revision == 4
        assert one.message == "when revision 5 is available and stack team/stack-4 is archived"
