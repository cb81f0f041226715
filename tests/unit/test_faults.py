"""Faults as values: which requests they are about, which of those they hit, how they are written."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from lamina.errors import SpecError, TooManyRequests
from lamina.faults import (
    Cut,
    Expire,
    Fault,
    Faults,
    Refuse,
    Silence,
    Slow,
    Stale,
    attributes_of,
    read_fault,
    shown,
)
from lamina.faults.table import applies, refusal
from lamina.faults.watch_faults import cut_short, delayed

PODS = "/api/v1/namespaces/default/pods"
MARK = b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "resource"),
    [
        ("GET",    PODS,                                {},                   "list",             "pods"),
        ("GET",    PODS,                                {"watch": "1"},       "watch",            "pods"),
        ("GET",    PODS,                                {"watch": "false"},   "list",             "pods"),
        ("GET",    "/api/v1/watch/pods",                {},                   "watch",            "pods"),
        ("GET",    f"{PODS}/a",                         {},                   "get",              "pods"),
        ("GET",    f"{PODS}/a",                         {"watch": "true"},    "get",              "pods"),
        ("POST",   PODS,                                {},                   "create",           "pods"),
        ("POST",   f"{PODS}/a/eviction",                {},                   "create",           "pods"),
        ("PUT",    f"{PODS}/a",                         {},                   "update",           "pods"),
        ("PATCH",  "/apis/apps/v1/namespaces/x/deployments/d/status", {},     "patch",            "deployments"),
        ("DELETE", f"{PODS}/a",                         {},                   "delete",           "pods"),
        ("DELETE", PODS,                                {},                   "deletecollection", "pods"),
        ("GET",    "/version",                          {},                   "get",              ""),
    ],
)  # fmt: skip
def test_what_is_asked(method: str, path: str, query: dict[str, str], verb: str, resource: str) -> None:
    request = attributes_of(method, path, query)

    assert (request.verb, request.resource) == (verb, resource)


@pytest.mark.parametrize(
    ("query", "resumes", "opens"),
    [
        ({"watch": "1", "resourceVersion": "7"}, True, False),
        ({"watch": "1", "resourceVersion": "0"}, False, False),
        ({"watch": "1", "allowWatchBookmarks": "true"}, False, True),
        ({"watch": "1", "resourceVersion": "7", "allowWatchBookmarks": "true"}, True, False),
        ({"watch": "1", "sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersion": "7"}, False, True),
        ({"continue": "abc"}, True, False),
        ({"resourceVersion": "7"}, False, False),
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact"}, True, False),
    ],
)  # fmt: skip
def test_who_goes_on_where_they_were(query: dict[str, str], resumes: bool, opens: bool) -> None:
    request = attributes_of("GET", PODS, query)

    assert (request.resumes, request.opens) == (resumes, opens)


GET, LIST, CREATE = (
    attributes_of("GET", f"{PODS}/a", {}),
    attributes_of("GET", PODS, {}),
    attributes_of("POST", PODS, {}, "jane"),
)
WATCH = attributes_of("GET", PODS, {"watch": "1", "resourceVersion": "7"})
STATUS, PAGE = attributes_of("PATCH", f"{PODS}/a/status", {}), attributes_of("GET", "/version", {})


@pytest.mark.parametrize(
    ("fault", "about"),
    [
        (Silence(), (GET, LIST, CREATE, WATCH, STATUS, PAGE)),
        (Slow(seconds=1, verbs=("list", "watch")), (LIST, WATCH)),
        (Refuse(resources=("pods",)), (GET, LIST, CREATE, WATCH, STATUS)),
        (Refuse(resources=("pods/status",)), (STATUS,)),
        (Refuse(path="/vers*"), (PAGE,)),
        (Refuse(users=("ja*",)), (CREATE,)),
        (Cut(events=3), (WATCH,)),
        (Expire(), (WATCH,)),
        (Stale(), (GET, LIST, WATCH, PAGE)),
        (Stale(verbs=("list",)), (LIST,)),
    ],
)
def test_a_fault_is_about_the_requests_it_names(fault: Fault, about: Sequence[object]) -> None:
    every = (GET, LIST, CREATE, WATCH, STATUS, PAGE)

    assert tuple(request for request in every if fault.selects(request)) == tuple(about)


def test_a_share_is_hit_and_the_same_one_every_time() -> None:
    def fates(seed: int) -> list[bool]:
        faults = Faults()
        faults.add(Refuse(rate=0.2, seed=seed))
        return [bool(faults.match(LIST).entries) for _ in range(1000)]

    assert fates(1) == fates(1) != fates(2)
    assert 150 < sum(fates(1)) < 250


def test_no_more_are_hit_than_were_asked_for() -> None:
    faults = Faults()
    faults.add(Refuse(times=2))

    assert [bool(faults.match(LIST).entries) for _ in range(4)] == [True, True, False, False]
    assert faults.entries[0].met == 2


def test_faults_have_names_and_are_taken_back_by_them() -> None:
    faults = Faults()
    assert not faults

    names = [faults.add(fault).id for fault in (Silence(), Slow(seconds=1), Refuse(id="mine"))]
    assert names == ["silence-1", "slow-2", "mine"]
    faults.add(Slow(id="mine", seconds=2))
    assert [entry.fault for entry in faults.entries][-1] == Slow(id="mine", seconds=2)

    faults.add(Refuse(id="refuse-3"))
    assert faults.add(Refuse()).id == "refuse-4"
    assert len(faults.entries) == 5
    assert faults.remove("mine")
    assert not faults.remove("mine")
    faults.clear()
    assert not faults


@pytest.mark.parametrize(
    "fault",
    [
        Silence(id="a", after=True),
        Slow(seconds=2, verbs=("list",)),
        Refuse(code=429, retry_after=3, rate=0.2),
        Cut(events=5, resources=("pods",)),
        Expire(users=("jane",)),
        Stale(seconds=30),
        Stale(versions=4, seed=1),
    ],
)
def test_what_is_written_is_what_is_read(fault: Fault) -> None:
    assert read_fault(shown(fault)) == fault


def test_a_fault_is_written_in_few_words() -> None:
    assert shown(Refuse(id="r", code=429, rate=0.2)) == {
        "fault": "refuse",
        "id": "r",
        "code": 429,
        "rate": 0.2,
    }


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({"fault": "slow"}, "object missing required field seconds"),
        ({"fault": "slow", "seconds": "2s"}, "seconds: expected float, got str"),
        ({"fault": "slow", "seconds": 0}, "seconds: expected float > 0.0"),
        ({"fault": "refuse", "rate": 20}, "rate: expected float <= 1.0"),
        ({"fault": "refuse", "code": 200}, "code: expected int >= 400"),
        ({"fault": "refuse", "cod": 500}, "object contains unknown field cod"),
        ({"fault": "explode"}, "fault: invalid value 'explode'"),
        ({"fault": "silence", "verbs": ["lists"]}, 'verbs: unknown verb "lists"'),
        ({"fault": "silence", "resources": ["Pods"]}, 'resources: no request is for "Pods"'),
        ({"fault": "silence", "resources": ["pods", "*"]}, 'resources: no request is for "*"'),
        ({"fault": "cut", "verbs": ["list"]}, "verbs: this fault does not apply to list"),
        ({"fault": "expire", "verbs": ["get"]}, "verbs: this fault does not apply to get"),
        ({"fault": "stale", "verbs": ["create"]}, "verbs: this fault does not apply to create"),
        ({"fault": "stale", "seconds": 1, "versions": 1}, "stale takes seconds or versions, and not both"),
        ([], "expected object, got array"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(written: object, complaint: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_fault(written)

    assert str(refused.value) == complaint


def test_only_a_429_asks_to_come_back_unless_it_is_told_to() -> None:
    busy = refusal(Refuse(id="x", code=429))

    assert isinstance(busy, TooManyRequests)
    assert busy.message == "Too many requests, please try again later: injected by fault x"
    after = [refusal(Refuse(code=code, retry_after=given)).retry_after for code, given in ((429, None), (429, 7), (429, 0), (503, None), (503, 2))]  # fmt: skip
    assert after == [1, 7, None, None, 2]
    assert refusal(Refuse(code=409)).code == 409


# ── streams ──


async def pieces(*those: bytes) -> AsyncIterator[bytes]:
    for one in those:
        yield one


async def test_a_watch_is_cut_after_so_many_events_and_bookmarks_are_none() -> None:
    source = pieces(b'{"type":"ADDED"}\n{"type":"BOOKMARK"}\n{"type":"MODI', b'FIED"}\n{"type":"DELETED"}\n')

    told = [piece async for piece in cut_short(source, 2, opens=False)]

    assert b"".join(told) == b'{"type":"ADDED"}\n{"type":"BOOKMARK"}\n{"type":"MODIFIED"}\n'


async def test_what_exists_at_the_beginning_of_a_watch_comes_whole() -> None:
    existing = b'{"type":"ADDED"}\n' * 5

    told = [piece async for piece in cut_short(pieces(existing, MARK, existing), 2, opens=True)]

    assert b"".join(told) == existing + MARK + b'{"type":"ADDED"}\n' * 2


async def test_what_is_held_back_comes_when_it_is_released() -> None:
    released = asyncio.Event()
    held = delayed(pieces(b"existing\n", MARK, b"news\n"), None, released, opens=True)
    told = [await anext(held), await anext(held)]
    waiting = asyncio.ensure_future(anext(held))
    for _ in range(10):
        await asyncio.sleep(0)
    assert told == [b"existing\n", MARK]
    assert not waiting.done()

    released.set()
    assert await waiting == b"news\n"
    await held.aclose()


def test_a_watch_that_is_open_is_hit_like_any_other() -> None:
    faults = Faults()
    heard: list[bool] = []
    faults.added = lambda entry: heard.extend(applies(entry, about) for about in (WATCH, LIST))

    faults.add(Cut())

    assert heard == [True, False]
    assert not faults
