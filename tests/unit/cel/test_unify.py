"""Assignability of types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.cel.check.unify import Substitution, equivalent, most_general
from lamina.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    ObjectType,
    Type,
    list_of,
    map_of,
    opaque,
    optional_of,
    param,
    type_of,
    wrapper,
)

POD = ObjectType("Pod")


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (INT, INT, True),
        (INT, UINT, False),
        (DYN, INT, True),
        (INT, DYN, True),
        (ERROR, INT, True),
        (ANY, list_of(INT), True),
        (list_of(INT), list_of(DYN), True),
        (list_of(INT), list_of(STRING), False),
        (map_of(STRING, INT), map_of(STRING, INT), True),
        (map_of(STRING, INT), list_of(INT), False),
        (NULL, INT, False),
        (NULL, wrapper(INT), True),
        (wrapper(INT), INT, True),
        (wrapper(INT), NULL, True),
        (NULL, POD, True),
        (TIMESTAMP, NULL, True),
        (DURATION, NULL, True),
        (opaque("net.IP"), NULL, True),
        (NULL, list_of(INT), False),
        (POD, ObjectType("Pod"), True),
        (POD, ObjectType("Node"), False),
        (optional_of(INT), optional_of(INT), True),
        (optional_of(INT), INT, False),
        (type_of(INT), type_of(STRING), True),
    ],
)
def test_types_agree_as_the_checker_has_it(one: Type, other: Type, agree: bool) -> None:
    assert Substitution().assignable(one, other) is agree


def test_a_parameter_becomes_what_it_has_to_be() -> None:
    known = Substitution()
    assert known.assignable(map_of(STRING, list_of(INT)), map_of(param("K"), param("V")))
    assert known.resolve(list_of(param("V"))) == list_of(list_of(INT))
    assert not known.assignable(param("K"), INT)


def test_a_parameter_becomes_the_most_general_of_several() -> None:
    known = Substitution()
    assert known.assignable(INT, param("T"))
    assert known.assignable(DYN, param("T"))
    assert known.resolve(param("T")) is DYN


def test_a_parameter_is_never_part_of_itself() -> None:
    known = Substitution()
    assert not known.assignable(list_of(param("T")), param("T"))


def test_what_failed_leaves_no_trace() -> None:
    known = Substitution()
    assert not known.assignable_all([INT, STRING], [param("T"), BOOL])
    assert known.resolve(param("T")) == param("T")


def test_unbound_parameters_are_dyn_in_the_end() -> None:
    assert Substitution().resolve(list_of(param("T")), to_dyn=True) == list_of(DYN)


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        (list_of(map_of(STRING, DYN)), "list(map(string, dyn))"),
        (wrapper(INT), "wrapper(int)"),
        (optional_of(TIMESTAMP), "optional_type(timestamp)"),
        (type_of(DURATION), "type(duration)"),
        (NULL, "null"),
        (ERROR, "!error!"),
        (ANY, "any"),
        (param("T"), "T"),
        (POD, "Pod"),
    ],
)
def test_types_are_shown_as_cel_go_shows_them(type_: Type, shown: str) -> None:
    assert str(type_) == shown


simple = st.sampled_from(
    [BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, POD, wrapper(INT), param("A"), param("B")]
)
types = st.recursive(
    simple,
    lambda inner: st.one_of(inner.map(list_of), st.builds(map_of, inner, inner), inner.map(optional_of)),
)


@given(types)
def test_every_type_agrees_with_itself_and_with_dyn(type_: Type) -> None:
    assert Substitution().assignable(type_, type_)
    assert Substitution().assignable(DYN, type_)
    assert equivalent(type_, type_)
    assert most_general(type_, type_) is type_


@given(types, types)
def test_an_attempt_that_fails_can_be_made_again(one: Type, other: Type) -> None:
    known = Substitution()
    if not known.assignable(one, other):
        assert not known.assignable(one, other)
        assert known.resolve(one) == one
