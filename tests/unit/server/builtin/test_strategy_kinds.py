"""The built-in kinds, as in the registry."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lamina.errors import BadRequest
from lamina.merge.schema import Schema, Schemas
from lamina.server.kinds.builtin.catalogue import CATALOGUE
from lamina.server.kinds.builtin.definitions import definition
from lamina.server.kinds.builtin.kinds import LazySchema, builtin_kinds
from lamina.server.kinds.kind import Findings, Kind
from tests.unit.server.builtin.golden.cases import cases
from tests.unit.server.builtin.golden.compare import answers

KINDS = {kind.definition: kind for kind in builtin_kinds()}
CASES = list(cases())


def kind_of(plural: str, version: str = "v1") -> Kind:
    return next(kind for kind in KINDS.values() if (kind.plural, kind.version) == (plural, version))


def test_every_resource_of_the_catalogue_is_a_kind() -> None:
    assert [kind.definition for kind in builtin_kinds()] == [resource.definition for resource in CATALOGUE]


def test_only_kinds_with_two_forms_convert() -> None:
    assert [kind.definition for kind in builtin_kinds() if kind.converts] == [
        "io.k8s.api.events.v1.Event",
        "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
    ]


def test_versions_of_one_thing_share_a_bucket() -> None:
    assert (
        kind_of("horizontalpodautoscalers", "v1").bucket == kind_of("horizontalpodautoscalers", "v2").bucket
    )
    events = {kind.bucket for kind in KINDS.values() if kind.plural == "events"}
    assert len(events) == 1


def test_a_schema_is_compiled_when_it_is_first_looked_at() -> None:
    lazy = LazySchema("io.k8s.api.core.v1.ConfigMap")
    compiled = Schemas(definition).named("io.k8s.api.core.v1.ConfigMap")

    assert isinstance(lazy, Schema)
    assert lazy.properties.keys() == compiled.properties.keys()
    assert {slot: getattr(lazy, slot) for slot in ("type", "required", "name", "open")} == {
        slot: getattr(compiled, slot) for slot in ("type", "required", "name", "open")
    }
    with pytest.raises(AttributeError):
        lazy.nonsense  # noqa: B018


def test_a_body_that_does_not_fit_is_a_bad_request_that_names_the_kind() -> None:
    with pytest.raises(BadRequest) as refused:
        kind_of("configmaps").shape.decode({"data": {"a": 1}}, Findings())

    assert refused.value.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_nothing_is_wrong_with_what_a_real_server_accepted(case: Any) -> None:
    shape, recorded = KINDS[case.definition].shape, answers()[case.name]

    assert list(shape.validate_create(_bare(recorded["created"]))) == []
    for (endpoint, _), change in zip(case.updates, recorded["updates"], strict=True):
        assert list(shape.validate_update(_bare(change["after"]), _bare(change["before"]), endpoint)) == []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_a_real_server_shows_is_stored_and_shown_again(case: Any) -> None:
    shape, shown = KINDS[case.definition].shape, _bare(answers()[case.name]["created"])

    findings = Findings()
    again = shape.decode(copy.deepcopy(shown), findings)
    shape.default(again)

    assert findings.sentences == []
    assert shape.read(shape.store(again)) == shown


def _bare(obj: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy({name: part for name, part in obj.items() if name not in ("kind", "apiVersion")})
