"""Informers list, watch and index, against a server with scripted responses."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from lamina.client.client import Client
from lamina.core.model.world import Change, everything, identity_only
from lamina.errors import Forbidden, Gone, Invalid, NotFound
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.reflector import Reflector
from lamina.runtime.cache.watch_spec import WatchSpec
from lamina.testing.waiting import eventually
from tests.runtime.scripted import Reply, Script, Stream, bookmark, config_map, listing

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
PATH = "/api/v1/configmaps"


class Follower:
    """A running informer, and the changes it reported."""

    def __init__(self, script: Script, named: str = "", what: WatchSpec | None = None) -> None:
        self.changes: list[Change] = []
        what = what or WatchSpec(CONFIG_MAP, identity_only, metadata_only=True, named=named)
        self.informer = Informer(what, self._record)
        self._reflector = Reflector(
            Client(script),
            what,
            structlog.get_logger(),
            on_split=lambda others: None,
            min_delay=0.0,
            max_delay=0.0,
        )
        self._reflector.attach(self.informer)

    async def run(self) -> None:
        await self._reflector.run()

    def list_after_watch(self) -> None:
        self._reflector.list_after_watch()

    def _record(self, change: Change) -> None:
        self.changes.append(change)

    async def recorded(self, times: int) -> list[str]:
        await eventually(lambda: len(self.changes) >= times, interval=0.001)
        return [_said(change) for change in self.changes]

    def store_live(self, name: str, obj: Obj | None) -> None:
        """Have it learn what a look showed that took no time."""
        self.informer.store_live("default", name, obj, self.informer.indexer.get("default", name))

    @property
    def names(self) -> set[str]:
        return {meta.name(obj) for obj in self.informer.indexer.every()}


def _said(change: Change) -> str:
    sign = "+" if change.before is None else "-" if change.after is None else "~"
    return sign + meta.name(change.obj)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def follow(script: Script) -> AsyncIterator[Follower]:
    follower = Follower(script)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(follower.run())
        yield follower
        task.cancel()


async def settled(follow: Follower) -> None:
    async with asyncio.timeout(60):
        await follow.informer.synced.wait()


async def test_what_exists_and_what_happens_come_in_one_stream(script: Script, follow: Follower) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)

    stream.send("ADDED", config_map("a", 5))
    assert await follow.recorded(1) == ["+a"]
    assert not follow.informer.synced.is_set()
    stream.send("BOOKMARK", bookmark(9, end=True))
    await settled(follow)
    stream.send("MODIFIED", config_map("a", 10))
    stream.send("ADDED", config_map("b", 11))
    stream.send("DELETED", config_map("a", 12))

    assert await follow.recorded(4) == ["+a", "~a", "+b", "-a"]
    assert follow.names == {"b"}
    (asked,) = script.asked
    assert asked.query["sendInitialEvents"] == "true"
    assert asked.query["resourceVersionMatch"] == "NotOlderThan"
    assert "PartialObjectMetadata" in asked.headers["accept"]


async def test_nothing_counts_as_seen_before_everything_that_exists_was_seen(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)

    stream.send("ADDED", config_map("late", 500))
    await follow.recorded(1)
    assert follow.informer.version == 0
    stream.send("BOOKMARK", bookmark(600, end=True))
    await settled(follow)

    assert follow.informer.version == 600


async def test_a_stream_that_ends_is_taken_up_where_it_ended(script: Script, follow: Follower) -> None:
    first, second = Stream(), Stream()
    script.reply("GET", PATH, first, second)

    first.send("BOOKMARK", bookmark(9, end=True))
    first.send("ADDED", config_map("a", 10))
    first.send("BOOKMARK", bookmark(15))
    first.end()
    again = await script.nth_request(2, PATH)
    second.send("DELETED", config_map("a", 20))

    assert again.query["resourceVersion"] == "15"
    assert "sendInitialEvents" not in again.query
    assert await follow.recorded(2) == ["+a", "-a"]


async def test_a_custom_kind_is_listed_again_when_its_stream_ends_after_its_schema_has_changed(
    script: Script,
) -> None:
    kind = Kind("example.com/v1", "App", "apps", True, frozenset(("list", "watch")))
    first, second, third = Stream(), Stream(), Stream()
    script.reply("GET", "/apis/example.com/v1/apps", first, second, third)
    follower = Follower(script, what=WatchSpec(kind, everything, metadata_only=False, named=""))
    running = asyncio.ensure_future(follower.run())

    def app(**spec: str) -> Made:
        return {**config_map("a", 10), "apiVersion": "example.com/v1", "kind": "App", "spec": spec}

    # The schema has changed, and the old stream does not know its new field yet.
    first.send("BOOKMARK", bookmark(9, end=True))
    first.send("ADDED", app(name="x"))
    assert await follower.recorded(1) == ["+a"]
    follower.list_after_watch()
    first.end()
    again = await script.nth_request(2, "/apis/example.com/v1/apps")
    assert again.query["sendInitialEvents"] == "true"
    second.send("ADDED", app(name="x", color="red"))
    second.send("BOOKMARK", bookmark(12, end=True))
    assert await follower.recorded(2) == ["+a", "~a"]
    second.end()
    resumed = await script.nth_request(3, "/apis/example.com/v1/apps")
    assert resumed.query["resourceVersion"] == "12", "it is listed again once"
    third.send("BOOKMARK", bookmark(13))
    await eventually(lambda: follower.informer.version == 13, interval=0.001)
    running.cancel()

    assert [change.obj["spec"] for change in follower.changes] == [
        {"name": "x"},
        {"name": "x", "color": "red"},
    ]


async def test_a_stream_that_breaks_off_is_taken_up_too(script: Script, follow: Follower) -> None:
    first, second = Stream(), Stream()
    script.reply("GET", PATH, first, second)

    first.send("BOOKMARK", bookmark(9, end=True))
    first.send_bytes(b'{"type":"ADDED","object":{"metadata":{"name":"half')
    first.break_off()
    again = await script.nth_request(2, PATH)
    second.send("ADDED", config_map("half", 10))

    assert again.query["resourceVersion"] == "9"
    assert await follow.recorded(1) == ["+half"]


async def test_a_stream_that_breaks_off_before_everything_was_seen_starts_over(
    script: Script, follow: Follower
) -> None:
    first, second = Stream(), Stream()
    script.reply("GET", PATH, first, second)

    first.send("ADDED", config_map("a", 5))
    first.break_off()
    again = await script.nth_request(2, PATH)

    assert again.query["sendInitialEvents"] == "true"


@pytest.mark.parametrize("where", ["in the stream", "as the answer"])
async def test_an_informer_whose_version_expired_lists_again_and_reports_deletions(
    script: Script, follow: Follower, where: str
) -> None:
    first, second, third = Stream(), Stream(), Stream()
    expired = Gone("too old resource version: 9 (20)")
    script.reply("GET", PATH, first, second if where == "in the stream" else expired, third)

    first.send("ADDED", config_map("stays", 5))
    first.send("ADDED", config_map("goes", 6))
    first.send("BOOKMARK", bookmark(9, end=True))
    first.end()
    second.send("ERROR", expired.status())
    again = await script.nth_request(3, PATH)
    third.send("ADDED", config_map("stays", 5))
    third.send("ADDED", config_map("new", 21))
    third.send("BOOKMARK", bookmark(30, end=True))

    assert again.query["sendInitialEvents"] == "true"
    assert await follow.recorded(4) == ["+stays", "+goes", "+new", "-goes"]
    assert follow.names == {"stays", "new"}


async def test_a_server_without_streaming_lists_is_listed_first(script: Script, follow: Follower) -> None:
    stream, next_stream = Stream(), Stream()
    refused = Invalid("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
    page = listing(7, config_map("a", 5), token="more")
    script.reply("GET", PATH, refused, page, listing(7, config_map("b", 6)), stream, next_stream)

    await settled(follow)
    stream.send("ADDED", config_map("c", 8))

    assert await follow.recorded(3) == ["+a", "+b", "+c"]
    assert [one.query.get("continue") for one in script.asked] == [None, None, "more", None]
    assert script.asked[-1].query["resourceVersion"] == "7"


async def test_a_kind_that_is_forbidden_does_not_block_the_sync(script: Script, follow: Follower) -> None:
    stream = Stream()
    script.reply("GET", PATH, Forbidden("configmaps is forbidden"), stream)

    await settled(follow)
    stream.send("ADDED", config_map("a", 5))

    assert await follow.recorded(1) == ["+a"]


async def test_what_may_not_be_listed_is_not_known_until_a_list_succeeds(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, Forbidden("configmaps is forbidden"), stream)

    await settled(follow)
    assert isinstance(follow.informer.refused, Forbidden)
    stream.send("BOOKMARK", bookmark(9, end=True))
    await eventually(lambda: follow.informer.refused is None, interval=0.001)


async def test_what_was_listed_before_stays_known_where_a_later_list_is_refused(
    script: Script, follow: Follower
) -> None:
    first, last = Stream(), Stream()
    script.reply("GET", PATH, first, Gone("too old"), Forbidden("configmaps is forbidden"), last)

    first.send("ADDED", config_map("a", 5))
    first.send("BOOKMARK", bookmark(9, end=True))
    first.end()
    await script.nth_request(4, PATH)

    assert follow.informer.refused is None and follow.names == {"a"}


async def test_a_kind_that_is_not_served_has_no_objects(script: Script, follow: Follower) -> None:
    script.reply("GET", PATH, NotFound("the server could not find the requested resource"), Stream())

    await settled(follow)

    assert follow.informer.refused is None and follow.names == set()


async def test_an_object_that_was_replaced_unseen_is_one_change_from_one_uid_to_the_other(
    script: Script, follow: Follower
) -> None:
    first, second, third = Stream(), Stream(), Stream()
    script.reply("GET", PATH, first, Reply(410, Gone("gone").status()), third)

    first.send("ADDED", config_map("a", 5, uid="old"))
    first.send("BOOKMARK", bookmark(9, end=True))
    first.end()
    third.send("ADDED", config_map("a", 20, uid="new"))
    await follow.recorded(2)
    change = follow.changes[1]

    assert change.before is not None and change.after is not None
    assert (meta.uid(change.before), meta.uid(change.after)) == ("old", "new")
    del second


async def test_a_live_read_is_stored_unless_a_newer_version_is_known(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)
    stream.send("ADDED", config_map("a", 5))
    stream.send("BOOKMARK", bookmark(9, end=True))
    await settled(follow)

    follow.store_live("a", config_map("a", 12))
    follow.store_live("a", config_map("a", 11))
    stream.send("MODIFIED", config_map("a", 10))
    stream.send("MODIFIED", config_map("a", 12))
    stream.send("MODIFIED", config_map("a", 13))
    await follow.recorded(3)
    follow.store_live("a", None)

    assert [_said(change) for change in follow.changes] == ["+a", "~a", "~a", "-a"]
    assert [meta.resource_version(change.obj) for change in follow.changes] == ["5", "12", "13", "13"]


async def test_a_caller_may_wait_for_a_version_to_be_seen(script: Script, follow: Follower) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)
    waiting = asyncio.ensure_future(follow.informer.wait_until(lambda: follow.informer.version >= 12))

    stream.send("BOOKMARK", bookmark(9, end=True))
    stream.send("ADDED", config_map("a", 11))
    await follow.recorded(1)
    assert not waiting.done()
    stream.send("ADDED", config_map("b", 12))

    async with asyncio.timeout(60):
        await waiting


async def test_a_watch_for_one_name_asks_for_that_name_alone(script: Script) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)
    follower = Follower(script, named="kube-root-ca.crt")
    running = asyncio.ensure_future(follower.run())

    asked = await script.nth_request(1, PATH)
    running.cancel()

    assert asked.query["fieldSelector"] == "metadata.name=kube-root-ca.crt"


async def test_only_what_is_kept_is_remembered(script: Script, follow: Follower) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)

    stream.send("ADDED", config_map("a", 5, labels={"x": "y"}, managedFields=[{"manager": "m"}]))
    await follow.recorded(1)

    assert follow.informer.indexer.get("default", "a") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default", "uid": "uid-a", "resourceVersion": "5"},
    }


def test_how_much_is_kept_may_depend_on_the_object_and_changes_with_it() -> None:
    def keep(obj: Obj) -> Obj:
        return obj if "ours" in meta.labels(obj) else identity_only(obj)

    informer = Informer(WatchSpec(CONFIG_MAP, keep, False, ""), lambda change: None)

    def kept() -> bool:
        found = informer.indexer.get("default", "a")
        assert found is not None
        return "managedFields" in found["metadata"]

    ours: dict[str, Any] = {"labels": {"ours": "yes"}, "managedFields": [{"manager": "m"}]}
    informer.put(config_map("a", 5, **ours))
    assert kept()
    informer.put(config_map("a", 6, **{**ours, "labels": {}}))
    assert not kept()
    informer.store_live("default", "a", config_map("a", 7, **ours), None)
    assert kept()


async def test_an_object_that_goes_while_everything_is_shown_is_not_kept(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)

    stream.send("ADDED", config_map("a", 5))
    stream.send("DELETED", config_map("a", 7))
    stream.send("ADDED", config_map("b", 8))
    stream.send("BOOKMARK", bookmark(9, end=True))
    await settled(follow)

    assert await follow.recorded(3) == ["+a", "-a", "+b"]
    assert follow.names == {"b"}


async def _starting_over(script: Script, follow: Follower, seen: int, *names: str) -> Stream:
    """Have an informer see objects up to a version, and then everything anew."""
    first, again = Stream(), Stream()
    script.reply("GET", PATH, first, Gone("too old"), again)
    for name in names:
        first.send("ADDED", config_map(name, seen, uid=f"old-{name}"))
    first.send("BOOKMARK", bookmark(seen, end=True))
    await settled(follow)
    first.end()
    await script.nth_request(3, PATH)
    return again


async def test_what_was_read_while_everything_is_shown_anew_is_not_taken_for_gone(
    script: Script, follow: Follower
) -> None:
    stream = await _starting_over(script, follow, 9)

    follow.store_live("mine", config_map("mine", 12))
    stream.send("BOOKMARK", bookmark(11, end=True))
    stream.send("ADDED", config_map("mine", 12))
    stream.send("ADDED", config_map("next", 13))

    assert await follow.recorded(2) == ["+mine", "+next"]


async def test_a_look_that_found_nothing_says_nothing_of_what_came_meanwhile(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)
    stream.send("BOOKMARK", bookmark(9, end=True))
    stream.send("ADDED", config_map("a", 10))
    await follow.recorded(1)

    follow.informer.store_live("default", "a", None, cached=None)

    assert follow.names == {"a"}


async def test_a_look_at_something_that_has_gone_since_does_not_bring_it_back(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)
    stream.send("ADDED", config_map("a", 5))
    stream.send("BOOKMARK", bookmark(9, end=True))
    stream.send("DELETED", config_map("a", 12))
    await follow.recorded(2)

    follow.store_live("a", config_map("a", 11))

    assert follow.names == set()


async def test_the_end_of_an_object_is_not_that_of_the_next_one_of_its_name(
    script: Script, follow: Follower
) -> None:
    stream = Stream()
    script.reply("GET", PATH, stream)
    stream.send("ADDED", config_map("a", 5, uid="first"))
    stream.send("BOOKMARK", bookmark(9, end=True))
    await settled(follow)

    follow.store_live("a", config_map("a", 12, uid="second"))
    stream.send("DELETED", config_map("a", 11, uid="first"))
    stream.send("ADDED", config_map("b", 13))

    assert await follow.recorded(3) == ["+a", "~a", "+b"]
    assert follow.names == {"a", "b"}


@pytest.mark.parametrize(
    "version", [50, 6000], ids=["younger than what was seen", "older than what was seen"]
)
async def test_a_server_with_another_past_is_believed(script: Script, follow: Follower, version: int) -> None:
    """Another one has come in its place: nothing that was known is so any more, whatever the numbers say."""
    stream = await _starting_over(script, follow, 5000, "stays", "goes")

    stream.send("ADDED", config_map("stays", 40, uid="new"))
    stream.send("BOOKMARK", bookmark(version, end=True))
    await follow.recorded(4)

    (kept,) = follow.informer.indexer.every()
    assert (meta.uid(kept), follow.informer.version) == ("new", version)
