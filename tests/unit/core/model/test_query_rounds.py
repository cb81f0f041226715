"""A decision that needs answers is made again with each round of them."""

from collections.abc import Mapping, Sequence

import pytest

from lamina.core.model.effects import Ask
from lamina.core.model.queries import Absent, Answer, Answers, Query, Read
from lamina.core.model.query_rounds import decided
from lamina.core.model.reconcile import drive
from lamina.objects.types import Ref

READS = tuple(Read(Ref("v1", "ConfigMap", "default", name)) for name in "abc")


def absent(ask: Ask) -> Mapping[Query, Answer]:
    return {query: Absent() for query in ask.queries}


def one_by_one(answers: Answers) -> str | tuple[Query, ...]:
    missing = [read for read in READS if read not in answers]
    return (missing[0],) if missing else "all are absent"


def test_queries_are_answered_until_there_is_a_decision() -> None:
    rounds: list[Sequence[Query]] = []

    assert drive(decided(one_by_one, "toy", rounds.append), absent) == "all are absent"

    assert rounds == [(read,) for read in READS]


def test_a_decision_that_needs_no_answers_asks_nothing() -> None:
    def answer(ask: Ask) -> Mapping[Query, Answer]:
        raise AssertionError(f"asked {ask.queries}")

    assert drive(decided(lambda answers: "known", "toy"), answer) == "known"


def test_no_decision_is_a_decision() -> None:
    assert drive(decided(lambda answers: None, "toy"), absent) is None


def test_a_function_that_never_stops_asking_is_named() -> None:
    with pytest.raises(AssertionError, match="toy asks more than 32 rounds of queries"):
        drive(decided(lambda answers: (READS[0],), "toy"), absent)
