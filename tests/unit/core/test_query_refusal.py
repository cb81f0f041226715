"""The refusal of a query is an answer, or leaves it open."""

import pytest

from lamina.core.model.queries import (
    Absent,
    Answer,
    DryRun,
    Follow,
    Query,
    Read,
    ReadAll,
    ReadSchema,
    Refused,
    Review,
    Unserved,
)
from lamina.core.model.query_refusal import answer_of
from lamina.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    CacheNotSynced,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    LaminaError,
    MethodNotAllowed,
    NotFound,
    UnknownKind,
    Unreachable,
)
from lamina.objects.types import Ref
from lamina.simulation.cluster.kinds import CONFIG_MAP, make

A = Ref("v1", "ConfigMap", "default", "a")
OBJECT = make(CONFIG_MAP, "a")
READ, REFUSABLE = Read(A), Read(A, refusable=True)
FOLLOW, REFUSABLE_FOLLOW = Follow(kind=CONFIG_MAP), Follow(kind=CONFIG_MAP, refusable=True)
LIST = ReadAll(CONFIG_MAP, "default")
SCHEMA = ReadSchema(CONFIG_MAP)
REVIEW = Review(body=OBJECT, key="k")


def dry_run(*, creates: bool = False, replaces: bool = False, force: bool = True) -> DryRun:
    return DryRun(obj=OBJECT, manager="m", key="k", creates=creates, replaces=replaces, force=force)


NAMED = NotFound('configmaps "a" not found', details={"name": "a"})


@pytest.mark.parametrize(
    ("query", "error", "answer"),
    [
        (READ, NAMED, Absent()),
        (READ, NotFound("the server could not find the requested resource"), Unserved()),
        (READ, UnknownKind("v1", "ConfigMap"), Unserved()),
        (READ, MethodNotAllowed("no"), Unserved()),
        (REFUSABLE, Forbidden("no"), Refused(403, "no")),
        (REFUSABLE, NAMED, Absent()),
        (REFUSABLE_FOLLOW, Forbidden("no"), Refused(403, "list and watch of configmaps are refused: no")),
        (LIST, NotFound("no"), Unserved()),
        (LIST, MethodNotAllowed("no"), Unserved()),
        (SCHEMA, NotFound("no"), Unserved()),
        (dry_run(), Conflict("disputed"), Refused(409, "disputed")),
        (dry_run(), Invalid("wrong"), Refused(422, "wrong")),
        (dry_run(), BadRequest("wrong"), Refused(400, "wrong")),
        (dry_run(), Forbidden("no"), Refused(403, "no")),
        (dry_run(), NAMED, Unserved()),
        (dry_run(creates=True), AlreadyExists("taken"), Refused(409, "taken")),
        (dry_run(creates=True, replaces=True), Conflict("disputed"), Refused(409, "disputed")),
        (dry_run(replaces=True), InternalError("webhook down"), Refused(500, "webhook down")),
        (dry_run(force=False), InternalError("webhook down"), Refused(500, "webhook down")),
        (REVIEW, Forbidden("no"), Refused(403, "no")),
        (REVIEW, UnknownKind("authentication.k8s.io/v1", "TokenReview"), Unserved()),
        (
            dry_run(),
            InternalError("failed to create typed patch object (default/a): .data: expected map"),
            Refused(500, "failed to create typed patch object (default/a): .data: expected map"),
        ),
    ],
)
def test_it_is_an_answer(query: Query, error: LaminaError, answer: Answer) -> None:
    assert answer_of(query, error) == answer


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (READ, Forbidden("no")),
        (READ, Unreachable("no route")),
        (REFUSABLE, InternalError("broken")),
        (LIST, Forbidden("no")),
        (FOLLOW, Forbidden("no")),
        (SCHEMA, Forbidden("no")),
        (SCHEMA, ApiError("the server answered 301")),
        (dry_run(), InternalError("webhook down")),
        (dry_run(), Unreachable("no route")),
        (REVIEW, InternalError("broken")),
        (READ, ApiError("any other")),
    ],
)
def test_it_leaves_the_query_open(query: Query, error: LaminaError) -> None:
    with pytest.raises(type(error)):
        answer_of(query, error)


def test_a_replacement_whose_original_has_changed_waits_for_the_cache() -> None:
    with pytest.raises(CacheNotSynced, match="modified"):
        answer_of(dry_run(replaces=True), Conflict("the object has been modified"))
