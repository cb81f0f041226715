"""A change on paper: who moves when and why, what goes wrong on request, and what it ends in."""

import json
from datetime import timedelta
from typing import Any

import pytest

from lamina.core.questions import Answer, Call, Said
from lamina.errors import Conflict, Invalid, NotFound, SettingsError, Unexplained
from lamina.families.every import chosen
from lamina.families.metacontroller.names import API_VERSION
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Ref
from lamina.paper.kinds import CONFIG_MAP, NAMESPACE, POD, SECRET, make
from lamina.simulation import Ending, Failures, Simulation, read_failures
from lamina.simulation.applying import Manner
from lamina.simulation.standing import complaint
from lamina.simulation.standins import Readiness
from lamina.stages import load_stages
from lamina.testing.builders import custom, definition, deployment, edited, node

HOUR = timedelta(hours=1)
MAIN = {"name": "main", "image": "web:1"}
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
    return Said(json.dumps({"children": birds}).encode())


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
    return sorted(one["spec"]["containers"][0]["image"] for one in played.paper.listed(POD))


def ended(played: Simulation) -> Ending:
    return next(one for one in played.endings() if one.ref == FLOCK)


def test_a_deployment_rolls_out_with_what_a_server_fills_in() -> None:
    played = simulation()
    played.apply(deployment("web"))
    played.run(timedelta(minutes=1))

    played.apply(deployment("web", image="web:2"))
    played.run(HOUR)

    assert images(played) == ["web:2"] * 3
    assert [one.well for one in played.endings()] == [True]


def test_a_deployment_of_a_broken_image_misses_its_deadline_and_does_not_end_well() -> None:
    played = simulation()
    played.apply(deployment("web", image="web:bad"))

    played.run(HOUR)

    (ending,) = played.endings()
    assert (ending.ref, ending.well) == (WEB, False)
    assert ending.state == "Available=False"


def test_a_roll_is_told_in_the_sentences_of_its_conditions() -> None:
    played = rolled()

    moved = [one.because for one in played.story if one.ours and one.because.startswith("moving Pod")]
    assert [sentence.split(" to ")[0] for sentence in moved] == [
        f"moving Pod geese-{one}" for one in range(3)
    ]
    ending = ended(played)
    assert (ending.ref, ending.well, ending.state) == (FLOCK, True, "settled")
    assert ending.account is not None
    assert ending.account.arrived == 3


def test_an_image_that_crashes_holds_the_roll_at_the_first() -> None:
    played = rolled({"images": [{"image": "goose:2", "fails": "crash"}]})

    assert images(played) == ["goose:1", "goose:1", "goose:2"]
    ending = ended(played)
    assert (ending.well, ending.state) == (False, "waiting")
    assert "geese-0" in ending.because


def test_a_child_that_never_becomes_ready_holds_the_roll_there() -> None:
    played = rolled({"objects": [{"kind": "Pod", "name": "geese-1"}]})

    assert not ended(played).well


def test_hooks_that_fail_for_a_while_are_asked_again_and_the_roll_goes_on() -> None:
    played = rolled({"hooks": [{"url": "*/sync", "from": "1m", "until": "5m"}]})

    failed = [one for one in played.story if "does not answer, as was asked" in one.failure]
    assert failed
    assert all(timedelta(minutes=1) <= one.after < timedelta(minutes=5) for one in failed)
    assert images(played) == ["goose:2"] * 3
    assert ended(played).well


def test_a_node_that_goes_takes_readiness_with_it_until_it_is_back() -> None:
    played = rolled({"nodes": [{"name": "sim-0", "from": "1m", "until": "30m"}]})

    moved = [one.after for one in played.story if one.because.startswith("moving Pod geese-1")]
    assert moved
    assert moved[0] >= timedelta(minutes=30)
    assert ended(played).well


def test_without_hooks_nothing_is_rolled_and_it_says_why() -> None:
    played = Simulation(families=chosen("metacontroller"), stages=load_stages())
    for manifest in (definition("Flock"), FLOCKS, flock("goose:1")):
        played.apply(manifest)

    played.run(timedelta(minutes=10))

    ending = ended(played)
    assert not ending.well
    assert "was not called" in ending.because


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
        return failures.fate(pod)["metadata"]["annotations"]

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

    assert played.paper.get(CONFIG_MAP.ref("default", "settings"))["data"] == {"size": "4", "mine": "x"}


def test_a_container_that_is_not_stated_any_more_is_rolled_out_of_its_pods() -> None:
    played = simulation()
    side = {"name": "side", "image": "side:1"}
    both = edited(deployment("web"), spec={"template": {"spec": {"containers": [MAIN, side]}}})
    played.apply(both)
    played.run(timedelta(minutes=1))

    played.apply(edited(both, spec={"template": {"spec": {"containers": [MAIN]}}}))
    played.run(HOUR)

    assert {len(one["spec"]["containers"]) for one in played.paper.listed(POD)} == {1}


def test_whoever_applies_by_the_server_is_told_of_others_unless_these_are_to_give_way() -> None:
    stated = make(CONFIG_MAP, "settings", data={"colour": "red", "size": "3"})

    def written(force: bool) -> Any:
        played = simulation(manner=Manner(server_side=True, force=force))
        played.apply(stated)
        played.paper.patch(meta.ref(stated), {"data": {"colour": "blue"}})
        return played.apply(make(CONFIG_MAP, "settings", data={"colour": "green"}))["data"]

    with pytest.raises(Conflict, match="data.colour") as refused:
        written(force=False)
    assert refused.value.hint == "have them give way with --force-conflicts"
    assert written(force=True) == {"colour": "green"}


def test_what_was_applied_by_the_server_is_applied_so_again() -> None:
    there = simulation(manner=Manner(server_side=True)).apply(
        make(CONFIG_MAP, "settings", data={"colour": "red", "size": "3"})
    )
    played = simulation(objects=[there])

    played.apply(make(CONFIG_MAP, "settings", data={"size": "3"}))

    assert played.paper.get(meta.ref(there))["data"] == {"size": "3"}


def test_a_field_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Unexplained, match=r"\.datta: field not declared in schema"):
        simulation().apply({**make(CONFIG_MAP, "settings"), "datta": {}})


def test_what_was_to_go_is_gone_or_says_what_holds_it() -> None:
    held = make(CONFIG_MAP, "held", finalizers=["example.com/nobody"])
    played = simulation(objects=[make(CONFIG_MAP, "free"), held])

    for name in ("free", "held"):
        played.delete(CONFIG_MAP.ref("default", name))
    played.run(HOUR)

    assert [(one.ref.name, one.well, one.state, one.because) for one in played.endings()] == [
        ("free", True, "gone", ""),
        ("held", False, "still there", "its finalizers hold it: example.com/nobody"),
    ]


def test_kinds_that_nobody_here_makes_ready_are_made_so_on_request() -> None:
    played = simulation(readiness=[Readiness(CONFIG_MAP, ("Ready",), timedelta(seconds=30))])
    played.apply(custom("v1", "ConfigMap", "a"))

    played.run(timedelta(minutes=1))

    (condition,) = played.paper.get(CONFIG_MAP.ref("default", "a"))["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")


def test_a_kind_is_fetched_when_somebody_first_looks_at_it() -> None:
    asked: list[str] = []

    def fetch(kind: Any) -> list[Made]:
        asked.append(kind.plural)
        there = make(SECRET, "settings", data={"colour": "cmVk"})
        there["metadata"] |= {"uid": "u", "resourceVersion": "7"}
        return [there] if kind.kind == "Secret" else []

    played = simulation(fetch=fetch)
    before = list(asked)

    played.apply(custom("v1", "Secret", "settings", data={"size": "Mw=="}))

    assert "secrets" not in before
    assert len(asked) == len(set(asked))
    there = played.paper.get(SECRET.ref("default", "settings"))
    assert (there["metadata"]["uid"], there["metadata"]["resourceVersion"]) == ("u", "8")
    assert there["data"] == {"colour": "cmVk", "size": "Mw=="}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "state"),
    [
        ("apps/v1/Deployment", {"replicas": 3}, {"updatedReplicas": 1, "availableReplicas": 3}, "not updated"),
        ("apps/v1/Deployment", {"replicas": 3}, {"updatedReplicas": 3, "availableReplicas": 2}, "not available"),
        ("apps/v1/Deployment", {"replicas": 3, "paused": True}, {"updatedReplicas": 1}, "there"),
        ("apps/v1/StatefulSet", {"replicas": 3}, {"readyReplicas": 2}, "not ready"),
        ("apps/v1/StatefulSet", {"replicas": 0}, {}, "there"),
        ("apps/v1/ReplicaSet", {}, {}, "not ready"),
        ("v1/ReplicationController", {"replicas": 1}, {"readyReplicas": 1}, "there"),
        ("apps/v1/DaemonSet", {}, {"desiredNumberScheduled": 2, "numberReady": 1}, "not ready"),
        ("apps/v1/DaemonSet", {}, {"desiredNumberScheduled": 2, "numberReady": 2}, "there"),
        ("v1/Pod", {}, {}, "Pending"),
        ("v1/Pod", {}, {"phase": "Failed"}, "Failed"),
        ("v1/Pod", {}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, "Ready=False"),
        ("v1/Pod", {}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, "there"),
        ("v1/Pod", {}, {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}, "there"),
        ("batch/v1/Job", {}, {"conditions": [{"type": "Failed", "status": "True"}]}, "Failed=True"),
    ],
)  # fmt: skip
def test_an_object_without_a_family_is_well_by_what_it_says(
    kind: str, spec: Made, status: Made, state: str
) -> None:
    version, _, name = kind.rpartition("/")
    group = version.rpartition("/")[0]

    said = complaint(GroupKind(group, name), custom(version, name, "web", spec=spec, status=status))

    assert (said[0] if said else "there") == state


def test_every_node_that_a_pattern_means_falls_silent_and_is_back() -> None:
    played = simulation(
        {"nodes": [{"name": "sim-*", "from": "20m", "until": "30m"}]},
        objects=[node("sim-0"), node("sim-1"), node("other")],
    )
    played.apply(deployment("web"))
    played.run(HOUR)

    told = [(one.after, one.because) for one in played.story if one.by == "failures"]
    assert told == [
        (timedelta(minutes=20), "node sim-0 falls silent"),
        (timedelta(minutes=20), "node sim-1 falls silent"),
        (timedelta(minutes=30), "node sim-0 is back"),
        (timedelta(minutes=30), "node sim-1 is back"),
    ]


def test_a_node_that_is_not_there_cannot_fall_silent() -> None:
    played = simulation({"nodes": [{"name": "sim-7", "from": "20m"}]})

    with pytest.raises(NotFound, match="there is no node sim-7 to fall silent"):
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
