"""The parity of the simulated API server is checked, and a difference is found."""

from typing import Any

import pytest

from lamina.core.model.plan import Action, Create, Patch
from lamina.errors import (
    ApiError,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from lamina.objects import meta
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, make
from tests.scenarios.parity import Parity, _changes, _code

A = CONFIG_MAP.ref("default", "a")
STALE = Patch(ref=A, uid="", version="1000", patch={"data": {"colour": "blue"}})


def written(**data: str) -> Any:
    cluster = SimulatedCluster()
    cluster.create(make(CONFIG_MAP, "a", data={"colour": "red"}))
    cluster.patch(A, {"data": data})
    return cluster.get(A)


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (written(colour="blue"), []),
        (written(colour="green"), ["data.colour: 'green' became 'blue'"]),
        (None, ["added"]),
    ],
)
def test_a_write_that_a_simulation_makes_otherwise_is_found(after: Any, found: list[str]) -> None:
    cluster = SimulatedCluster()
    before = cluster.create(make(CONFIG_MAP, "a", data={"colour": "red"}))
    patch = Patch(
        ref=A,
        uid=meta.uid(before),
        version=meta.resource_version(before),
        patch={"data": {"colour": "blue"}},
    )

    changes = [str(one) for one in _changes(SimulatedCluster(), patch, A, before, after)]

    if found == ["added"]:
        assert changes and all("added" in one for one in changes)
    else:
        assert changes == found


def test_a_write_that_a_simulation_refuses_is_found() -> None:
    changes = _changes(SimulatedCluster(), STALE, A, written(colour="blue"), written(colour="blue"))

    assert any("refused" in str(one) for one in changes)


@pytest.mark.parametrize(
    ("action", "there", "code"),
    [
        (STALE, True, 409),
        (STALE, False, 404),
        (Create(obj=make(CONFIG_MAP, "a")), True, 409),
        (Create(obj=make(CONFIG_MAP, "a")), False, 0),
    ],
)
def test_the_code_of_a_refusal_is_that_of_the_simulation(action: Action, there: bool, code: int) -> None:
    state = written(colour="blue") if there else None

    assert _code(SimulatedCluster(), action, state, Conflict("stale")) == code


def test_a_refusal_because_a_namespace_ends_is_repeated_with_such_a_namespace() -> None:
    create = Create(obj=make(CONFIG_MAP, "a"))
    error = Forbidden("no", causes=[Cause("NamespaceTerminating", "ends", "metadata.namespace")])

    assert _code(SimulatedCluster(), create, None, error) == 403


@pytest.mark.parametrize(
    ("error", "compared"),
    [
        (Conflict("stale"), 1),
        (NotFound("gone"), 1),
        (Invalid("no", causes=[Cause("FieldValueRequired", "", "spec.ready")]), 1),
        (Invalid("no", causes=[Cause("FieldValueRequired", "", "status.ready")]), 0),
        (Forbidden("may not"), 0),
        (BadRequest('admission webhook "a" denied the request: no'), 0),
        (TooManyRequests("busy"), 0),
        (Unavailable("down"), 0),
    ],
)
def test_a_refusal_is_compared_where_a_simulation_knows_the_rule(error: ApiError, compared: int) -> None:
    parity = Parity({})

    parity.recorder("a").refused(STALE, error)

    assert len(parity.refusals) == compared
