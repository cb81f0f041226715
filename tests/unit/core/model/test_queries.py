"""Queries: which are the same, what they match, and where they are answered."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.queries import (
    Absent,
    Answer,
    Answers,
    Call,
    Credentials,
    DryRun,
    Follow,
    Found,
    HookResponse,
    Query,
    Read,
    ReadAll,
    ReadSchema,
    Refused,
    Review,
    answering_cluster,
)
from lamina.objects.kinds import Kind
from lamina.objects.selectors import parse_label_selector
from lamina.objects.types import Made, Ref

POD = Kind("v1", "Pod", "pods", True)
REF = Ref("v1", "Pod", "one", "a")
NAMES, NAMESPACES = st.sampled_from(("a", "b")), st.sampled_from(("one", "two"))


def pod(name: str = "a", namespace: str = "one", **labels: str) -> Made:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def call(**changed: Any) -> Call:
    settings: dict[str, Any] = {"url": "http://hook", "body": b"{}", "seconds": 10.0, "purpose": "sync"}
    return Call(**{**settings, **changed})


def dry_run(**changed: Any) -> DryRun:
    settings: dict[str, Any] = {"obj": pod(), "manager": "m", "key": "k"}
    return DryRun(**{**settings, **changed})


# Follow


@pytest.mark.parametrize(
    ("follow", "obj", "expected"),
    [
        (Follow(kind=POD),                                           pod(),           True),
        (Follow(kind=POD, names=("a", "b")),                         pod("b"),        True),
        (Follow(kind=POD, names=("a",)),                             pod("b"),        False),
        (Follow(kind=POD, names=()),                                 pod(),           False),
        (Follow(kind=POD, namespaces=("one",)),                      pod(),           True),
        (Follow(kind=POD, namespaces=("two",)),                      pod(),           False),
        (Follow(kind=POD, namespaces=()),                            pod(),           False),
        (Follow(kind=POD, labels=parse_label_selector("app=web")),   pod(app="web"),  True),
        (Follow(kind=POD, labels=parse_label_selector("app=web")),   pod(app="db"),   False),
        (Follow(kind=POD, labels=parse_label_selector("app")),       pod(),           False),
        (Follow(kind=POD, names=("a",), namespaces=("two",)),        pod("a", "two"), True),
        (Follow(kind=POD, names=("a",), namespaces=("two",)),        pod("a", "one"), False),
    ],
)  # fmt: skip
def test_a_follow_matches_names_namespaces_and_labels(follow: Follow, obj: Made, expected: bool) -> None:
    assert follow.matches(obj) is expected


@given(
    names=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    namespaces=st.none() | st.lists(NAMESPACES, max_size=2).map(tuple),
    name=NAMES,
    namespace=NAMESPACES,
)
def test_a_follow_matches_what_each_of_its_parts_matches(
    names: tuple[str, ...] | None, namespaces: tuple[str, ...] | None, name: str, namespace: str
) -> None:
    obj = pod(name, namespace)
    both = Follow(kind=POD, names=names, namespaces=namespaces).matches(obj)

    assert both is (
        Follow(kind=POD, names=names).matches(obj) and Follow(kind=POD, namespaces=namespaces).matches(obj)
    )


# Answers


def test_what_was_not_asked_has_no_answer() -> None:
    assert Answers().get(Read(REF)) is None
    assert Read(REF) not in Answers()


def test_a_read_of_all_of_an_object_is_another_query_than_one_of_its_metadata() -> None:
    known = Answers({Read(REF): Found(pod())})

    assert Read(REF) in known
    assert Read(REF, whole=True) not in known
    assert Read(REF, refusable=True) not in known


def test_answers_are_added_and_newer_ones_replace_older_ones() -> None:
    first = Answers({Read(REF): Absent()})
    more = first | {Read(REF): Found(pod()), ReadAll(POD, "one"): Refused(403, "no")}

    assert isinstance(more.get(Read(REF)), Found)
    assert isinstance(more.get(ReadAll(POD, "one")), Refused)
    assert isinstance(first.get(Read(REF)), Absent), "the answers before are another value"


@pytest.mark.parametrize(
    ("purpose", "about", "body"),
    [("sync", "web", b"1"), ("sync", "db", b"2"), ("finalize", "web", None), ("sync", "", None)],
)
def test_the_response_of_a_hook_is_found_by_its_purpose_and_what_it_is_about(
    purpose: str, about: str, body: bytes | None
) -> None:
    known: dict[Query, Answer] = {
        call(about="web"): HookResponse(b"1"),
        call(about="db"): HookResponse(b"2"),
        call(purpose="finalize", about="web"): Absent(),
        Read(REF): Absent(),
    }

    assert Answers(known).hook_body(purpose, about) == body


# Which queries are the same


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "http://other"},
        {"body": b"[]"},
        {"seconds": 5.0},
        {"purpose": "finalize"},
        {"about": "web"},
        {"memo": "m"},
        {"memo_seconds": 3.0},
        {"etag": True},
        {"credentials": Credentials(authority="pem")},
    ],
)
def test_a_call_that_differs_in_anything_is_another_call(changed: dict[str, Any]) -> None:
    assert call() == call()
    assert call() != call(**changed)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"obj": pod("b")}, True),
        ({"manager": "other"}, True),
        ({"key": "other"}, False),
        ({"force": False}, False),
        ({"creates": True}, False),
        ({"replaces": True}, False),
        ({"cluster": "east"}, False),
        ({"user": "jane"}, False),
    ],
)
def test_a_dry_run_is_identified_by_its_key_and_how_it_is_done(changed: dict[str, Any], same: bool) -> None:
    assert (dry_run() == dry_run(**changed)) is same
    if same:
        assert hash(dry_run()) == hash(dry_run(**changed))


@pytest.mark.parametrize(
    ("changed", "same"),
    [({"body": {"kind": "TokenReview"}}, True), ({"key": "x"}, False), ({"cluster": "east"}, False)],
)
def test_a_review_is_identified_by_its_key(changed: dict[str, Any], same: bool) -> None:
    settings: dict[str, Any] = {"body": {}, "key": "k"}

    assert (Review(**settings) == Review(**{**settings, **changed})) is same


@pytest.mark.parametrize(
    "query",
    [
        Read(REF), ReadAll(POD, "one"), ReadSchema(POD), Follow(kind=POD), call(), dry_run(),
        Review(body={}, key="k"),
    ],
)  # fmt: skip
def test_every_query_can_be_the_key_of_its_answer(query: Query) -> None:
    assert Answers({query: Absent()}).get(query) == Absent()


def test_secrets_are_not_printed() -> None:
    secret = Credentials(key="private", authorization="Bearer token", certificate="public")

    assert "private" not in repr(secret) and "token" not in repr(secret)
    assert "public" in repr(secret)
    assert "secret body" not in repr(call(body=b"secret body"))
    assert "answer" not in repr(HookResponse(b"answer"))


# Where they are answered


@pytest.mark.parametrize("cluster", ["", "east"])
@pytest.mark.parametrize(
    "make",
    [
        lambda cluster: Read(REF._replace(cluster=cluster)),
        lambda cluster: ReadAll(POD, "one", cluster),
        lambda cluster: ReadSchema(POD, cluster),
        lambda cluster: Follow(kind=POD, cluster=cluster),
        lambda cluster: dry_run(cluster=cluster),
        lambda cluster: Review(body={}, key="k", cluster=cluster),
    ],
)
def test_a_query_is_answered_by_the_cluster_that_it_names(make: Callable[[str], Query], cluster: str) -> None:
    assert answering_cluster(make(cluster)) == cluster


def test_a_hook_is_called_from_the_primary_cluster() -> None:
    assert answering_cluster(call()) == ""
