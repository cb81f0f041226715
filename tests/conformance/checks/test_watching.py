"""Watches: C44 to C50, and C80."""

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, islice, pairwise
from threading import Event, Thread
from typing import Any

import pytest

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import config_map, widget


def _version(api: Api, path: str) -> str:
    return str(api.get(f"{path}?limit=1").json["metadata"]["resourceVersion"])


def _grows(events: list[Any]) -> bool:
    versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in events]
    return all(before < after for before, after in pairwise(versions))


@check("C44")
def test_a_watch_from_a_version_tells_every_change_in_order(api: Api, configmaps: str) -> None:
    version = _version(api, configmaps)
    api.post(configmaps, config_map("wa", v="1"))
    api.patch(f"{configmaps}/wa", {"data": {"v": "2"}})
    api.delete(f"{configmaps}/wa")

    query = f"watch=1&resourceVersion={version}&timeoutSeconds=2&fieldSelector=metadata.name%3Dwa"
    events = list(api.lines(f"{configmaps}?{query}"))

    told = [(one["type"], one["object"]["kind"], one["object"]["data"]["v"]) for one in events]
    assert told == [
        ("ADDED", "ConfigMap", "1"),
        ("MODIFIED", "ConfigMap", "2"),
        ("DELETED", "ConfigMap", "2"),
    ]
    assert _grows(events)


@check("C45")
@pytest.mark.parametrize("version", ["", "&resourceVersion=0"])
def test_a_watch_from_anywhere_starts_with_what_exists(api: Api, configmaps: str, version: str) -> None:
    api.post(configmaps, config_map("here"))
    query = f"watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dhere{version}"

    assert [one["type"] for one in api.lines(f"{configmaps}?{query}")] == ["ADDED"]


@check("C46")
def test_a_streamed_list_ends_with_its_bookmark(api: Api, configmaps: str) -> None:
    api.post(configmaps, config_map("here"))
    query = "watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true"
    matched = f"{query}&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Dhere"

    # Bookmarks may follow after other writes.
    added, bookmark, *later = api.lines(f"{configmaps}?{matched}")

    assert (added["type"], added["object"]["kind"], added["object"]["apiVersion"]) == (
        "ADDED",
        "ConfigMap",
        "v1",
    )
    assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["object"]["metadata"]["resourceVersion"].isdigit()
    assert {one["type"] for one in later} <= {"BOOKMARK"}
    assert not any("annotations" in one["object"]["metadata"] for one in later)
    assert api.get(f"{configmaps}?{query}").code == 422
    assert api.get(f"{configmaps}?sendInitialEvents=true").code == 422


@check("C47")
def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(api: Api, configmaps: str) -> None:
    version = _version(api, configmaps)
    api.post(configmaps, config_map("sel", {"z": "1"}, v="old"))
    api.patch(f"{configmaps}/sel", {"metadata": {"labels": {"z": "2"}}, "data": {"v": "new"}})
    api.patch(f"{configmaps}/sel", {"metadata": {"labels": {"z": "1"}}})

    query = f"watch=1&labelSelector=z%3D1&resourceVersion={version}&timeoutSeconds=1"
    events = list(api.lines(f"{configmaps}?{query}"))

    told = [
        (one["type"], one["object"]["metadata"]["labels"]["z"], one["object"]["data"]["v"]) for one in events
    ]
    assert told == [("ADDED", "1", "old"), ("DELETED", "1", "old"), ("ADDED", "1", "new")]
    assert _grows(events)


@check("C48")
def test_a_watch_ends_when_its_time_is_up(api: Api, configmaps: str) -> None:
    query = f"watch=1&resourceVersion={_version(api, configmaps)}&timeoutSeconds=2"

    assert list(api.lines(f"{configmaps}?{query}&fieldSelector=metadata.name%3Dnone", timeout=60)) == []


@check("C48")
@pytest.mark.parametrize("kind", ["PartialObjectMetadata", "Table"])
def test_a_watch_can_tell_metadata_or_tables(api: Api, configmaps: str, kind: str) -> None:
    api.post(configmaps, config_map("here"))
    query = "watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dhere"
    accept = {"Accept": f"application/json;as={kind};v=v1;g=meta.k8s.io"}

    [event] = api.lines(f"{configmaps}?{query}", headers=accept)

    assert (event["type"], event["object"]["kind"]) == ("ADDED", kind)
    assert kind != "Table" or len(event["object"]["rows"]) == 1


@check("C49")
def test_a_quiet_watch_gets_bookmarks(api: Api, configmaps: str) -> None:
    version = _version(api, configmaps)
    api.post(configmaps, {"metadata": {"generateName": "bm-"}})
    query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=100"

    events = api.lines(f"{configmaps}?{query}&fieldSelector=metadata.name%3Dnever", timeout=110)
    bookmark = next(events)

    assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
    assert list(bookmark["object"]["metadata"]) == ["resourceVersion"]
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) > int(version)


@contextmanager
def _lines_of(kubectl: Kubectl, *arguments: str) -> Iterator[Iterator[str]]:
    with subprocess.Popen(kubectl.line(*arguments), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield iter(running.stdout)
        finally:
            running.terminate()


@contextmanager
def _again_and_again(change: Callable[[int], object], start: int) -> Iterator[None]:
    """Repeat a change until it has been observed."""
    seen = Event()

    def run() -> None:
        for number in count(start):
            change(number)
            if seen.wait(0.5):
                return

    changing = Thread(target=run)
    changing.start()
    try:
        yield
    finally:
        seen.set()
        changing.join()


@check("C50")
def test_kubectl_prints_a_line_when_something_changes(api: Api, kubectl: Kubectl, widgets: str) -> None:
    api.post(widgets, widget("pr", size=1))

    with _lines_of(kubectl, "get", "wd", "pr", "--watch", "--no-headers") as lines:
        before = next(lines).split()
        # kubectl begins to watch after it has printed, and omits what exists by then.
        with _again_and_again(lambda size: api.patch(f"{widgets}/pr", {"spec": {"size": size}}), start=7):
            after = next(lines).split()

    assert before[:2] == ["pr", "1"]
    assert after[0] == "pr"
    assert int(after[1]) >= 7


@check("C80")
def test_every_watcher_sees_the_same_order(api: Api, configmaps: str) -> None:
    version = _version(api, configmaps)
    path = f"{configmaps}?watch=1&labelSelector=fan%3D1&resourceVersion={version}&timeoutSeconds=30"

    def watch(number: int) -> list[tuple[str, str]]:
        events = islice(api.lines(path), 30)
        return [(one["type"], one["object"]["metadata"]["resourceVersion"]) for one in events]

    def create(number: int) -> int:
        return api.post(configmaps, config_map(f"fan-{number}", {"fan": "1"})).code

    with ThreadPoolExecutor(25) as threads:
        watching = [threads.submit(watch, number) for number in range(10)]
        assert set(threads.map(create, range(15))) == {201}
        api.delete(f"{configmaps}?labelSelector=fan%3D1")
        seen = [one.result() for one in watching]

    assert len(seen[0]) == 30
    assert all(one == seen[0] for one in seen)
