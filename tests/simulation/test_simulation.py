"""Simulated changes: the steps, requested failures, and the state at the end."""

import json
from datetime import timedelta
from typing import Any

import pytest

from lamina.control_plane.load_stages import load_stages
from lamina.core.model.queries import Answer, Call, HookResponse
from lamina.errors import Conflict, Invalid, NotFound, SettingsError, Unclassified
from lamina.families.metacontroller.labels import API_VERSION
from lamina.families.registry import chosen
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation.cluster.kinds import CONFIG_MAP, NAMESPACE, POD, SECRET, make
from lamina.simulation.scenario import Failures, FinalState, Simulation, read_failures
from lamina.simulation.scenario.final_state import of_object
from lamina.simulation.scenario.kubectl_apply import ApplyOptions
from lamina.simulation.scenario.readiness_stub import Readiness
from lamina.testing.builders import custom, definition, deployment, edited, node

HOUR = timedelta(hours=1)
MAIN = {"name": "main", "image": "web:1"}
AVAILABLE_FALSE = {"type": "Available", "status": "False", "message": "not yet"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WEB = Ref("apps/v1", "Deployment", "default", "web")
FLOCK = Ref("example.com/v1", "Flock", "default", "geese")
ROLLING = {"method": "RollingRecreate", "statusChecks": {"conditions": [{"type": "Ready", "status": "True"}]}}
FLOCKS = custom(
    API_VERSION, "CompositeController", "flocks", namespace=None,
    spec={
        "parentResource": {
            "apiVersion": "example.com/v1", "resource": "flocks",
            "revisionHistory": {"fieldPaths": ["spec.image"]},
        },
        "childResources": [{"apiVersion": "v1", "resource": "pods", "updateStrategy": ROLLING}],
        "hooks": {"sync": {"webhook": {"url": "http://hooks/sync"}}},
    },
)  # fmt: skip


def flock(image: str, size: int = 3) -> Any:
    spec = {"size": size, "image": image, "selector": {"matchLabels": {"flock": "geese"}}}
    return custom("example.com/v1", "Flock", "geese", spec=spec)


def hook(call: Call) -> Answer:
    """Want as many pods as the flock says, of the image it says."""
    spec = json.loads(call.body)["parent"]["spec"]
    containers = [{"name": "bird", "image": spec["image"]}]
    birds = [
        make(POD, f"geese-{number}", labels={"flock": "geese"}, spec={"containers": containers})
        for number in range(spec["size"])
    ]
    return HookResponse(json.dumps({"children": birds}).encode())


def simulation(failures: Made | None = None, **settings: Any) -> Simulation:
    return Simulation(
        families=chosen("metacontroller"),
        stages=load_stages(),
        failures=read_failures(failures, "failures"),
        call=hook,
        **settings,
    )


def rolled(failures: Made | None = None, **settings: Any) -> Simulation:
    """Return a flock that was there for a minute, and then wanted another image."""
    played = simulation(failures, **settings)
    for manifest in (definition("Flock"), FLOCKS, flock("goose:1")):
        played.apply(manifest)
    played.run(timedelta(minutes=1))
    played.apply(flock("goose:2"))
    played.run(HOUR)
    return played


def images(played: Simulation) -> list[str]:
    return sorted(one["spec"]["containers"][0]["image"] for one in played.cluster.listed(POD))


def final_state(played: Simulation) -> FinalState:
    return next(one for one in played.final_states() if one.ref == FLOCK)


def test_a_deployment_rolls_out_with_what_a_server_fills_in() -> None:
    played = simulation()
    played.apply(deployment("web"))
    played.run(timedelta(minutes=1))

    played.apply(deployment("web", image="web:2"))
    played.run(HOUR)

    assert images(played) == ["web:2"] * 3
    assert [one.healthy for one in played.final_states()] == [True]


def test_a_deployment_of_a_broken_image_misses_its_deadline_and_does_not_end_well() -> None:
    played = simulation()
    played.apply(deployment("web", image="web:bad"))

    played.run(HOUR)

    (found,) = played.final_states()
    assert (found.ref, found.healthy) == (WEB, False)
    assert found.state == "Degraded"
    assert "has timed out progressing" in found.because


def test_a_roll_is_told_in_the_sentences_of_its_conditions() -> None:
    played = rolled()

    moved = [one.because for one in played.timeline if one.ours and one.because.startswith("moving Pod")]
    assert [sentence.split(" to ")[0] for sentence in moved] == [
        f"moving Pod geese-{one}" for one in range(3)
    ]
    found = final_state(played)
    assert (found.ref, found.healthy, found.state) == (FLOCK, True, "Healthy")
    assert found.owner_status is not None
    assert found.owner_status.updated == 3


def test_an_image_that_crashes_holds_the_roll_at_the_first() -> None:
    played = rolled({"images": [{"image": "goose:2", "fails": "crash"}]})

    assert images(played) == ["goose:1", "goose:1", "goose:2"]
    found = final_state(played)
    assert (found.healthy, found.state) == (False, "Progressing")
    assert "geese-0" in found.because


def test_a_child_that_never_becomes_ready_holds_the_roll_there() -> None:
    played = rolled({"objects": [{"kind": "Pod", "name": "geese-1"}]})

    assert not final_state(played).healthy


def test_hooks_that_fail_for_a_while_are_asked_again_and_the_roll_goes_on() -> None:
    played = rolled({"hooks": [{"url": "*/sync", "from": "1m", "until": "5m"}]})

    failed = [one for one in played.timeline if "does not answer (injected failure)" in one.failure]
    assert failed
    assert all(timedelta(minutes=1) <= one.after < timedelta(minutes=5) for one in failed)
    assert images(played) == ["goose:2"] * 3
    assert final_state(played).healthy


def test_a_node_that_goes_takes_readiness_with_it_until_it_is_back() -> None:
    played = rolled({"nodes": [{"name": "sim-0", "from": "1m", "until": "30m"}]})

    moved = [one.after for one in played.timeline if one.because.startswith("moving Pod geese-1")]
    assert moved
    assert moved[0] >= timedelta(minutes=30)
    assert final_state(played).healthy


def test_without_hooks_nothing_is_rolled_and_it_says_why() -> None:
    played = Simulation(families=chosen("metacontroller"), stages=load_stages())
    for manifest in (definition("Flock"), FLOCKS, flock("goose:1")):
        played.apply(manifest)

    played.run(timedelta(minutes=10))

    found = final_state(played)
    assert not found.healthy
    assert "was not called" in found.because


def test_going_back_is_a_change_like_any_other() -> None:
    played = rolled()
    kept = edited(
        FLOCKS, spec={"parentResource": {"revisionHistory": {"fieldPaths": ["spec.image"], "limit": 3}}}
    )
    played.apply(kept)
    played.apply(flock("goose:3"))
    played.run(timedelta(minutes=10))

    played.rollback(FLOCK, None)
    played.run(HOUR)

    assert images(played) == ["goose:2"] * 3


def test_what_a_server_would_refuse_is_refused() -> None:
    with pytest.raises(Invalid, match="spec.selector: Required value"):
        simulation().apply(edited(deployment("web"), spec={"selector": None}))


def test_a_namespace_that_the_cluster_does_not_have_holds_nothing() -> None:
    def fetch(kind: Any) -> list[Made]:
        return [make(NAMESPACE, "there")] if kind.kind == "Namespace" else []

    played = simulation(fetch=fetch)

    played.apply(make(CONFIG_MAP, "settings", namespace="there"))
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        played.apply(make(CONFIG_MAP, "settings", namespace="nowhere"))
    played.apply(make(NAMESPACE, "nowhere"))
    played.apply(make(CONFIG_MAP, "settings", namespace="nowhere"))


def test_a_pod_is_marked_by_the_image_it_has_now_and_keeps_what_it_asks_for_itself() -> None:
    failures = read_failures(
        {"images": [{"image": "web:2", "share": "30%"}, {"image": "db:*", "fails": "unready"}]}, ""
    )

    def marks(image: str, **said: str) -> Any:
        pod = make(POD, "p", annotations=said, spec={"containers": [{"name": "main", "image": image}]})
        return failures.mutate(pod)["metadata"]["annotations"]

    assert marks("web:2") == {"sim/crash-share": "0.3"}
    assert marks("web:1", **{"sim/crash-share": "0.3", "other": "x"}) == {"other": "x"}
    assert marks("db:1", **{"sim/crash-share": "0.3"}) == {"sim/ready-probability": "0.0"}
    assert marks("web:1", **{"sim/crash-share": "20%"}) == {"sim/crash-share": "20%"}


def test_what_was_applied_before_and_is_not_stated_any_more_is_taken_away() -> None:
    before = make(CONFIG_MAP, "settings", data={"colour": "red", "size": "3"})
    there = {**before, "data": {**before["data"], "mine": "x"}}
    there["metadata"] = {**before["metadata"], "annotations": {LAST_APPLIED: json.dumps(before)}}
    played = simulation(objects=[there])

    played.apply(make(CONFIG_MAP, "settings", data={"size": "4"}))

    assert played.cluster.get(CONFIG_MAP.ref("default", "settings"))["data"] == {"size": "4", "mine": "x"}


def test_a_container_that_is_not_stated_any_more_is_rolled_out_of_its_pods() -> None:
    played = simulation()
    side = {"name": "side", "image": "side:1"}
    both = edited(deployment("web"), spec={"template": {"spec": {"containers": [MAIN, side]}}})
    played.apply(both)
    played.run(timedelta(minutes=1))

    played.apply(edited(both, spec={"template": {"spec": {"containers": [MAIN]}}}))
    played.run(HOUR)

    assert {len(one["spec"]["containers"]) for one in played.cluster.listed(POD)} == {1}


def test_server_side_apply_reports_conflicts_unless_they_are_forced() -> None:
    stated = make(CONFIG_MAP, "settings", data={"colour": "red", "size": "3"})

    def written(force: bool) -> Any:
        played = simulation(apply_options=ApplyOptions(server_side=True, force=force))
        played.apply(stated)
        played.cluster.patch(meta.ref(stated), {"data": {"colour": "blue"}})
        return played.apply(make(CONFIG_MAP, "settings", data={"colour": "green"}))["data"]

    with pytest.raises(Conflict, match="data.colour") as refused:
        written(force=False)
    assert refused.value.hint == "take the fields over with --force-conflicts"
    assert written(force=True) == {"colour": "green"}


def test_what_was_applied_by_the_server_is_applied_so_again() -> None:
    there = simulation(apply_options=ApplyOptions(server_side=True)).apply(
        make(CONFIG_MAP, "settings", data={"colour": "red", "size": "3"})
    )
    played = simulation(objects=[there])

    played.apply(make(CONFIG_MAP, "settings", data={"size": "3"}))

    assert played.cluster.get(meta.ref(there))["data"] == {"size": "3"}


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(Unclassified, match=r"\.datta: field not declared in schema"):
        simulation().apply({**make(CONFIG_MAP, "settings"), "datta": {}})


def test_what_was_to_go_is_deleted_or_says_what_holds_it() -> None:
    held = make(CONFIG_MAP, "held", finalizers=["example.com/nobody"])
    played = simulation(objects=[make(CONFIG_MAP, "free"), held])

    for name in ("free", "held"):
        played.delete(CONFIG_MAP.ref("default", name))
    played.run(HOUR)

    assert [(one.ref.name, one.healthy, one.state, one.because) for one in played.final_states()] == [
        ("free", True, "deleted", ""),
        ("held", False, "Deleting", "waits for finalizers: example.com/nobody"),
    ]


def test_kinds_without_a_simulated_controller_become_ready_on_request() -> None:
    played = simulation(readiness=[Readiness(CONFIG_MAP, ("Ready",), timedelta(seconds=30))])
    played.apply(custom("v1", "ConfigMap", "a"))

    played.run(timedelta(minutes=1))

    (condition,) = played.cluster.get(CONFIG_MAP.ref("default", "a"))["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")


def test_a_kind_is_fetched_at_its_first_read() -> None:
    asked: list[str] = []

    def fetch(kind: Any) -> list[Made]:
        asked.append(kind.plural)
        there = make(SECRET, "settings", type="Opaque", data={"colour": "cmVk"})
        there["metadata"] |= {"uid": "u", "resourceVersion": "7"}
        return [there] if kind.kind == "Secret" else []

    played = simulation(fetch=fetch)
    before = list(asked)

    played.apply(custom("v1", "Secret", "settings", data={"size": "Mw=="}))

    assert "secrets" not in before
    assert len(asked) == len(set(asked))
    there = played.cluster.get(SECRET.ref("default", "settings"))
    assert (there["metadata"]["uid"], there["metadata"]["resourceVersion"]) == ("u", "8")
    assert there["data"] == {"colour": "cmVk", "size": "Mw=="}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "state", "because"),
    [
        ("apps/v1/Deployment", {"replicas": 3}, {"updatedReplicas": 1}, "Progressing", "1 of 3 replicas are updated"),
        ("apps/v1/Deployment", {"replicas": 3, "paused": True}, {"updatedReplicas": 1}, "Paused", "1 of 3 replicas are updated"),
        ("apps/v1/Deployment", {"replicas": 3, "paused": True}, {"conditions": [AVAILABLE_FALSE]}, "Progressing", "0 of 3 replicas are updated"),
        ("apps/v1/Deployment", {"replicas": 0}, {}, "Healthy", ""),
        ("apps/v1/ReplicaSet", {}, {}, "Progressing", "0 of 1 replicas are available"),
        ("v1/Pod", {}, {"phase": "Failed"}, "Degraded", "it has failed"),
        ("v1/Pod", {}, {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}, "Healthy", ""),
        ("example.com/v1/Flock", {}, {"conditions": [AVAILABLE_FALSE]}, "Progressing", "Available is False: not yet"),
        ("example.com/v1/Flock", {}, {"conditions": [{"type": "Degraded", "status": "True"}]}, "Degraded", "Degraded is True"),
        ("v1/ConfigMap", {}, {}, "Healthy", ""),
    ],
)  # fmt: skip
def test_an_object_that_no_family_rolls_out_has_the_state_of_its_own_health(
    kind: str, spec: Made, status: Made, state: str, because: str
) -> None:
    version, _, name = kind.rpartition("/")
    obj = custom(version, name, "web", spec=spec, status={"observedGeneration": 1, **status})

    found = of_object(meta.ref(obj), obj, chosen("metacontroller"))

    assert (found.state, found.because) == (state, because)
    assert found.healthy is (state in ("Healthy", "Paused"))


def test_a_changed_object_that_is_being_deleted_says_what_it_waits_for() -> None:
    obj = make(CONFIG_MAP, "held", finalizers=["example.com/nobody"])
    obj["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"

    found = of_object(meta.ref(obj), obj, ())

    assert (found.healthy, found.state, found.because) == (
        False,
        "Deleting",
        "waits for finalizers: example.com/nobody",
    )


def test_every_node_that_a_pattern_matches_becomes_unready_and_ready_again() -> None:
    played = simulation(
        {"nodes": [{"name": "sim-*", "from": "20m", "until": "30m"}]},
        objects=[node("sim-0"), node("sim-1"), node("other")],
    )
    played.apply(deployment("web"))
    played.run(HOUR)

    told = [(one.after, one.because) for one in played.timeline if one.by == "failures"]
    assert told == [
        (timedelta(minutes=20), "node sim-0 becomes NotReady"),
        (timedelta(minutes=20), "node sim-1 becomes NotReady"),
        (timedelta(minutes=30), "node sim-0 becomes Ready again"),
        (timedelta(minutes=30), "node sim-1 becomes Ready again"),
    ]


def test_a_pattern_of_nodes_that_matches_none_is_refused() -> None:
    played = simulation({"nodes": [{"name": "sim-7", "from": "20m"}]})

    with pytest.raises(NotFound, match='failures.nodes: no node matches "sim-7"'):
        played.run(HOUR)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"images": [{"image": "a", "share": "most"}]},
            'images.share: expected a share such as 0.3 .* got "most"',
        ),
        ({"nodes": [{"name": "n", "from": "10m", "until": "5m"}]}, 'n: expected "from" before "until"'),
        ({"hooks": [{"url": "h", "from": "-5m"}]}, 'h: expected "from" before "until"'),
        ({"image": []}, "unknown field `image`"),
        ({"images": [{"image": "a", "share": "200%"}]}, "expected a share"),
        ({"images": [{"image": "a", "fails": "melt"}]}, "expected one of crash, unready"),
        ({"nodes": [{"name": "n", "from": "soon"}]}, "expected a duration"),
    ],
)
def test_failures_that_make_no_sense_are_refused(asked: Made, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        read_failures(asked, "f.yaml")

    assert str(refused.value).startswith("f.yaml: ")


def test_no_failures_are_no_failures() -> None:
    assert read_failures(None, "f.yaml") == Failures()
