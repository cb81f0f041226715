"""Validation and tables never fail, whatever a decoder accepts."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

from lamina.errors import Cause
from lamina.server.kinds.builtin.catalogue import CATALOGUE, Resource
from lamina.server.kinds.builtin.columns import cells_of, columns_of
from lamina.server.kinds.builtin.field_labels import field_labels_of
from lamina.server.kinds.builtin.validate import validate_create, validate_update
from tests.unit.server.builtin.anything import anything

_NOW = datetime(2026, 2, 1, tzinfo=UTC)
_RESOURCES = [one for one in CATALOGUE if one.kind != "CustomResourceDefinition"]


@pytest.mark.parametrize("resource", _RESOURCES, ids=lambda one: f"{one.kind}.{one.group}")
@given(seed=integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_no_object_raises_in_validation_or_tables(resource: Resource, seed: int) -> None:
    chance = Random(seed)
    kind, group = resource.kind, resource.group
    new, old = anything(resource.definition, chance), anything(resource.definition, chance)

    judged = [validate_create(kind, group, new)]
    judged += [validate_update(kind, group, new, old, below.name) for below in resource.subresources]
    judged += [validate_update(kind, group, new, old), validate_update(kind, group, old, old)]

    assert all(isinstance(cause, Cause) for causes in judged for cause in causes)
    if resource.stored and resource.storage[0] == group:
        assert len(cells_of(group, resource.plural)(new, _NOW)) == len(columns_of(group, resource.plural))
    assert all(isinstance(read(new), str) for read in field_labels_of(group, resource.plural).values())
