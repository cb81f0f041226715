"""A change on paper: who moves when and why, what goes wrong on request, and what it ends in."""

import json
from datetime import timedelta
from typing import Any

import pytest

from lamina.core.questions import Answer, Call, Said
from lamina.errors import Invalid, SettingsError
from lamina.families.every import chosen
from lamina.families.metacontroller.names import API_VERSION
from lamina.objects.types import Made, Ref
from lamina.paper.kinds import CONFIG_MAP, POD, SECRET, make
from lamina.simulation import Ending, Failures, Simulation, read_failures
from lamina.simulation.standins import Readiness
from lamina.stages import load_stages
from lamina.testing.builders import custom, definition, deployment, edited

HOUR = timedelta(hours=1)
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
    ("asked", "said"),
    [
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
