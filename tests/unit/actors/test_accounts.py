"""The service account and the root CA of every namespace."""

from lamina.actors.service_accounts import accounts
from lamina.core.model.plan import Create, Patch
from lamina.objects import meta
from lamina.simulation import SimulatedCluster, settle
from lamina.simulation.cluster.kinds import ACCOUNT, CONFIG_MAP, NAMESPACE, make

ACTOR = accounts("CERT")


def furnished() -> SimulatedCluster:
    cluster = SimulatedCluster()
    cluster.create(make(NAMESPACE, "web"))
    settle(cluster, ACTOR)
    return cluster


def test_every_namespace_gets_an_account_and_the_root_certificate() -> None:
    cluster = furnished()

    assert ACCOUNT.ref("web", "default") in cluster.objects
    root = cluster.get(CONFIG_MAP.ref("web", "kube-root-ca.crt"))
    assert root["data"] == {"ca.crt": "CERT"}
    assert meta.annotations(root)["kubernetes.io/description"].startswith("Contains a CA bundle")


def test_a_furnished_namespace_needs_nothing() -> None:
    cluster = furnished()
    cluster.journal.clear()

    settle(cluster, ACTOR)

    assert cluster.journal == []


def test_what_is_deleted_comes_back() -> None:
    cluster = furnished()
    cluster.delete(ACCOUNT.ref("web", "default"))
    cluster.delete(CONFIG_MAP.ref("web", "kube-root-ca.crt"))

    settle(cluster, ACTOR)

    assert ACCOUNT.ref("web", "default") in cluster.objects
    assert CONFIG_MAP.ref("web", "kube-root-ca.crt") in cluster.objects


def test_a_changed_certificate_is_put_right_and_nothing_else_is_touched() -> None:
    cluster = furnished()
    ref = CONFIG_MAP.ref("web", "kube-root-ca.crt")
    annotations = {"mine": "kept", "kubernetes.io/description": None}
    cluster.patch(ref, {"data": {"ca.crt": "FORGED", "more": "x"}, "metadata": {"annotations": annotations}})
    cluster.journal.clear()

    settle(cluster, ACTOR)

    root = cluster.get(ref)
    assert root["data"] == {"ca.crt": "CERT"}
    assert meta.annotations(root)["mine"] == "kept"
    assert "kubernetes.io/description" in meta.annotations(root)
    assert [type(action) for action in cluster.journal] == [Patch]


def test_other_accounts_and_config_maps_enqueue_nothing() -> None:
    cluster = furnished()
    other = cluster.create(make(ACCOUNT, "robot", "web"))
    world = cluster.world(ACTOR)

    assert cluster.keys_for(ACTOR, None, other, world) == []
    assert cluster.keys_for(ACTOR, other, None, world) == []


def test_a_namespace_on_its_way_out_gets_nothing() -> None:
    cluster = SimulatedCluster()
    web = cluster.create(make(NAMESPACE, "web", finalizers=["ex.example.com/hold"]))
    cluster.delete(meta.ref(web))

    settle(cluster, ACTOR)

    assert not [action for action in cluster.journal if isinstance(action, Create)]
