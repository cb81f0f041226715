"""What every namespace has."""

from lamina.actors.accounts import accounts
from lamina.core.plan import Create, Patch
from lamina.objects import meta
from lamina.paper import Paper, settle
from lamina.paper.kinds import ACCOUNT, CONFIG_MAP, NAMESPACE, make

ACTOR = accounts("CERT")


def furnished() -> Paper:
    paper = Paper()
    paper.create(make(NAMESPACE, "web"))
    settle(paper, ACTOR)
    return paper


def test_every_namespace_gets_an_account_and_the_root_certificate() -> None:
    paper = furnished()

    assert ACCOUNT.ref("web", "default") in paper.objects
    root = paper.get(CONFIG_MAP.ref("web", "kube-root-ca.crt"))
    assert root["data"] == {"ca.crt": "CERT"}
    assert meta.annotations(root)["kubernetes.io/description"].startswith("Contains a CA bundle")


def test_a_furnished_namespace_needs_nothing() -> None:
    paper = furnished()
    paper.journal.clear()

    settle(paper, ACTOR)

    assert paper.journal == []


def test_what_is_deleted_comes_back() -> None:
    paper = furnished()
    paper.delete(ACCOUNT.ref("web", "default"))
    paper.delete(CONFIG_MAP.ref("web", "kube-root-ca.crt"))

    settle(paper, ACTOR)

    assert ACCOUNT.ref("web", "default") in paper.objects
    assert CONFIG_MAP.ref("web", "kube-root-ca.crt") in paper.objects


def test_a_certificate_that_somebody_changed_is_put_right_and_nothing_else_is_touched() -> None:
    paper = furnished()
    ref = CONFIG_MAP.ref("web", "kube-root-ca.crt")
    annotations = {"mine": "kept", "kubernetes.io/description": None}
    paper.patch(ref, {"data": {"ca.crt": "FORGED", "more": "x"}, "metadata": {"annotations": annotations}})
    paper.journal.clear()

    settle(paper, ACTOR)

    root = paper.get(ref)
    assert root["data"] == {"ca.crt": "CERT"}
    assert meta.annotations(root)["mine"] == "kept"
    assert "kubernetes.io/description" in meta.annotations(root)
    assert [type(action) for action in paper.journal] == [Patch]


def test_other_accounts_and_config_maps_concern_nobody() -> None:
    paper = furnished()
    other = paper.create(make(ACCOUNT, "robot", "web"))
    world = paper.world(ACTOR)

    assert paper.concerned(ACTOR, None, other, world) == []
    assert paper.concerned(ACTOR, other, None, world) == []


def test_a_namespace_on_its_way_out_gets_nothing() -> None:
    paper = Paper()
    web = paper.create(make(NAMESPACE, "web", finalizers=["ex.example.com/hold"]))
    paper.delete(meta.ref(web))

    settle(paper, ACTOR)

    assert not [action for action in paper.journal if isinstance(action, Create)]
