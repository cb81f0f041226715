"""The errors of lamina.testing name the mistake and the remedy."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.actors.stages import failures
from lamina.clock import ManualClock
from lamina.errors import SpecError
from lamina.testing import Cluster, Refuse, Stale, SyncCluster
from lamina.testing.builders import config_map, deployment

MARKS = {
    "nodez=3": "unknown setting nodez: a lamina mark takes families, hooks, simulate, nodes",
    "'metacontroller'": "a lamina mark takes keywords, as nodes=3, got ('metacontroller',)",
    "families='metacontrolle'": "unknown family 'metacontrolle': the families are ",
    "families=['metacontroller']": "families of a lamina mark: expected text, as families='metacontroller'",
    "simulate='some'": "invalid simulate: 'some'",
    "nodes='3'": "nodes of a lamina mark: expected a number, as nodes=3, got '3'",
    "nodes=2.5": "nodes of a lamina mark: expected a number, as nodes=3, got 2.5",
    "hooks=[__file__]": "hooks of a lamina mark need a family that calls them, as families='metacontroller'",
    "families='metacontroller', hooks=['nowhere.py']": "nowhere.py does not exist",
}


def test_a_mark_that_makes_no_sense_says_what_would(tmp_path: Path) -> None:
    fixtures = ("async def test_{}(cluster): ...", "def test_{}(blocking_cluster): ...")
    tests = [
        f"@pytest.mark.lamina({mark})\n{fixture.format(f'{number}_{place}')}"
        for number, mark in enumerate(MARKS)
        for place, fixture in enumerate(fixtures)
    ]
    (tmp_path / "test_marks.py").write_text("\n\n".join(["import pytest", *tests]))
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert f"{2 * len(MARKS)} errors" in done.stdout, done.stdout
    # Once where it happened, of each fixture; some say it once more at the end.
    told = done.stdout.partition("short test summary")[0]
    assert {said: told.count(said) for said in MARKS.values()} == dict.fromkeys(MARKS.values(), 2)


def test_one_file_of_hooks_needs_no_list(tmp_path: Path) -> None:
    hooks = Path(__file__).parents[2] / "examples" / "testing" / "flocks.py"
    (tmp_path / "hooks.py").write_text(hooks.read_text())
    (tmp_path / "test_hooks.py").write_text(
        "import pytest\nfrom pathlib import Path\n\n"
        "@pytest.mark.lamina(families='metacontroller', hooks=Path(__file__).with_name('hooks.py'))\n"
        "def test_it(blocking_cluster):\n"
        "    assert [file.name for file in blocking_cluster.cluster.embedded.settings.hooks] == ['hooks.py']\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert "1 passed" in done.stdout, done.stdout


def test_a_cluster_that_blocks_says_that_it_has_not_begun_or_has_ended() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster = SyncCluster()
        with pytest.raises(RuntimeError, match="is not started: use it in `with SyncCluster"):
            cluster.get(config_map("settings"))
        with cluster:
            assert cluster.is_gone(config_map("settings"))
        for use in (
            lambda: cluster.get(config_map("settings")),
            lambda: cluster.kubeconfig,
            lambda: cluster.pass_time(minutes=1),
            lambda: cluster.now,
        ):
            with pytest.raises(RuntimeError, match="this cluster has been stopped"):
                use()
        # No coroutine is left that is never awaited, which would fail a later test.
        gc.collect()


def test_a_cluster_that_blocks_can_begin_again_empty() -> None:
    cluster = SyncCluster(simulate="off")

    with cluster:
        cluster.given(config_map("settings"))
    with cluster:
        assert cluster.is_gone(config_map("settings"))


def test_a_timeout_names_the_object_and_its_last_state(blocking_cluster: SyncCluster) -> None:
    settings = config_map("settings", {"colour": "red"})

    with pytest.raises(AssertionError, match="not met within 0.1s; .* configmap default/settings: not found"):
        blocking_cluster.eventually(settings, lambda seen: True, seconds=0.1)
    blocking_cluster.given(settings)
    with pytest.raises(AssertionError, match="not met within 0.1s; .* configmap default/settings: .*red"):
        blocking_cluster.eventually(settings, lambda seen: False, seconds=0.1)


@pytest.mark.lamina(simulate="off")
async def test_time_does_not_pass_backwards(cluster: Cluster, clock: ManualClock) -> None:
    began = clock.now()

    with pytest.raises(ValueError, match="cannot advance the clock"):
        await cluster.pass_time(minutes=-5)

    assert clock.now() == began


@pytest.mark.lamina(simulate="off")
async def test_a_fault_that_would_never_meet_anything_is_refused(cluster: Cluster) -> None:
    with (
        pytest.raises(SpecError, match='verbs: unknown verb "lisst"'),
        cluster.broken(Refuse(verbs=("lisst",))),
    ):
        pass
    with pytest.raises(SpecError, match="code: .*400"), cluster.broken(Refuse(code=200)):
        pass
    with pytest.raises(SpecError, match="seconds or versions"), cluster.broken(Stale(seconds=1, versions=1)):
        pass
    with pytest.raises(SpecError, match="verbs: expected"), cluster.broken(Refuse(verbs="list")):  # type: ignore[arg-type]
        pass
    with pytest.raises(TypeError, match="expected a fault such as Refuse"), cluster.broken(Refuse):  # type: ignore[arg-type]
        pass

    assert not cluster.faults


def test_what_a_builder_makes_can_be_written_copied_and_sent_to_another_process() -> None:
    web = deployment("web")

    assert yaml.safe_load(yaml.safe_dump(web)) == web
    assert yaml.safe_load(yaml.dump([web], Dumper=yaml.CSafeDumper)) == [web]
    sent = pickle.loads(pickle.dumps(web))
    assert sent == web
    with pytest.raises(TypeError, match="frozen"):
        sent["spec"]["template"]["spec"]["containers"].append({})
    shallow: Any = copy.copy(web)
    shallow["kind"] = "Other"
    assert web["kind"] == "Deployment"
    deep = copy.deepcopy(web)
    deep["spec"]["template"]["spec"]["containers"].append({})
    assert len(web["spec"]["template"]["spec"]["containers"]) == 1


async def test_a_cluster_that_has_ended_says_so() -> None:
    async with Cluster(simulate="off") as cluster:
        pass

    with pytest.raises(RuntimeError, match="has been stopped"):
        await cluster.given(config_map("settings"))
    with pytest.raises(RuntimeError, match="has been stopped"):
        await cluster.pass_time(minutes=1)


async def test_a_cluster_that_has_not_begun_says_so() -> None:
    with pytest.raises(RuntimeError, match="is not started"):
        await Cluster(simulate="off").given(config_map("settings"))


async def test_a_cluster_that_has_ended_is_not_entered_again() -> None:
    cluster = Cluster()
    async with cluster:
        pass

    with pytest.raises(RuntimeError, match="has been stopped"):
        async with cluster:
            pass


@pytest.mark.lamina(simulate="controllers")
async def test_objects_without_pods_and_annotations_without_effect_are_refused(cluster: Cluster) -> None:
    await cluster.given(deployment("web"), config_map("settings"))

    with pytest.raises(SpecError, match="crashshare"):
        await cluster.fail(deployment("web"), crashshare="100%")
    with pytest.raises(SpecError, match="configmap default/settings has no pods that could fail"):
        await cluster.fail(config_map("settings"))


def test_the_marks_that_may_be_set_are_those_that_the_usual_stages_heed() -> None:
    usual = files("lamina.actors.stages").joinpath("defaults.yaml").read_text()

    assert sorted(set(re.findall("sim/[a-z-]+", usual))) == list(failures.ANNOTATIONS)
