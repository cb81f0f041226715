"""Properties of all schemas and objects."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.errors import BadRequest
from lamina.server.kinds.custom.compiled_validator import compile_check, compiled
from lamina.server.kinds.custom.crd_validation import validate_create, validate_update, warn
from lamina.server.kinds.custom.default import defaulter, fresh, null_pruner
from lamina.server.kinds.custom.document import internal, normalised, walk
from lamina.server.kinds.custom.embedded import MetadataMismatch
from lamina.server.kinds.custom.go_values import same
from lamina.server.kinds.custom.kinds import kinds_of
from lamina.server.kinds.custom.listtypes import distinct
from lamina.server.kinds.custom.prune import closed, root_pruner
from lamina.server.kinds.custom.ratchet import Link
from lamina.server.kinds.custom.shape import Form
from lamina.server.kinds.custom.validator import Validator
from lamina.server.kinds.kind import Findings
from tests.unit.server.custom.golden import objects, ours
from tests.unit.server.custom.strategies import anything, roots, schemas, values
from tests.unit.server.custom.strategies import objects as any_objects

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100)
NAMED = sorted(objects.DEFINITIONS)


@patient
@given(schema=schemas(), value=values)
def test_what_the_fast_way_accepts_the_exact_one_does_too(schema: Any, value: Any) -> None:
    document = normalised(schema)
    check = compile_check(document)
    assert check is None or not check(value) or Validator(document).causes(value) == []


@patient
@given(schema=schemas(), value=values)
def test_the_exact_validation_raises_for_no_value(schema: Any, value: Any) -> None:
    document = normalised(schema)
    for as_default in (False, True):
        for cause in Validator(document, as_default=as_default).causes(value, "base"):
            assert cause.field.startswith("base") and cause.message


@patient
@given(schema=schemas(), new=values, old=values)
def test_an_update_is_never_refused_for_more_than_a_creation(schema: Any, new: Any, old: Any) -> None:
    document = normalised(schema)
    walker = Validator(document)
    told = walker.causes(new)
    assert all(cause in told for cause in walker.causes(new, "", Link(document, new, old)))
    again = Link(document, new, fresh(new))
    assert not again.equal or walker.causes(new, "", again) == []


@patient
@given(schema=roots, obj=any_objects)
def test_a_clean_object_has_nothing_to_prune_and_no_null_to_drop(schema: Any, obj: Any) -> None:
    document = normalised(schema)
    before = copy.deepcopy(obj)
    pruned: list[str] = []
    is_clean = compiled(closed(document, is_root=True) or {})(obj)
    root_pruner(document)(obj, "", pruned)
    if (drop := null_pruner(document)) is not None:
        drop(obj)
    assert not is_clean or (obj == before and pruned == [])
    assert (pruned == []) or obj != before


@patient
@given(schema=roots, obj=any_objects)
def test_cleaning_and_filling_twice_is_doing_it_once(schema: Any, obj: Any) -> None:
    form = Form(normalised(schema))
    obj.pop("metadata", None)
    try:
        form.clean(obj, Findings())
    except MetadataMismatch:
        return
    once, findings = copy.deepcopy(obj), Findings()
    form.clean(obj, findings)
    assert same(obj, once) and findings.sentences == []
    form.fill(obj)
    filled = copy.deepcopy(obj)
    form.fill(obj)
    assert same(obj, filled)


@patient
@given(schema=schemas(), value=values)
def test_defaults_only_add_and_take_the_place_of_nulls(schema: Any, value: Any) -> None:
    document = normalised(schema)
    before = copy.deepcopy(value)
    if (fill := defaulter(document)) is not None:
        fill(value)
    assert _keeps(before, value)


def _keeps(before: Any, after: Any) -> bool:
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(k in after and _keeps(v, after[k]) for k, v in before.items())
    if isinstance(before, list):
        return isinstance(after, list) and len(before) == len(after) and all(map(_keeps, before, after))
    return same(before, after)


def _all_sets(schema: Any) -> Any:
    """Return a schema in which every list is a set or a map, so that uniqueness is checked."""
    if schema.get("type") != "array":
        schema = {"type": "array", "items": schema}
    keys = ["a"] if schema["items"].get("type") == "object" else []
    return {**schema, "x-kubernetes-list-type": "map" if keys else "set", "x-kubernetes-list-map-keys": keys}


@patient
@given(schema=schemas(depth=2).map(_all_sets), value=values)
def test_a_quick_look_at_lists_never_misses_what_occurs_twice(schema: Any, value: Any) -> None:
    found = distinct(normalised(schema))
    assert found is not None
    assert not found.is_certainly_unique(value) or list(found.causes(value)) == []


@patient
@given(name=st.sampled_from(NAMED), body=any_objects)
def test_no_object_raises_anything_but_a_bad_request(name: str, body: Any) -> None:
    crd, _ = ours.create_definition(objects.DEFINITIONS[name])
    for kind in kinds_of(crd):
        shape, obj = kind.shape, copy.deepcopy(body)
        try:
            obj = shape.decode(obj, Findings())
        except BadRequest as refusal:
            assert refusal.message.startswith(f'{kind.kind} in version "{kind.version}" cannot be handled')
            continue
        obj.setdefault("metadata", {})
        shape.default(obj)
        old = copy.deepcopy(obj)
        shape.prepare_create(obj)
        shape.validate_create(obj)
        shape.prepare_update(obj, old, "")
        shape.validate_update(obj, old, "")
        shape.validate_update(obj, old, "status")
        assert shape.read(shape.store(obj)) is not None


@patient
@given(document=anything())
def test_normalising_twice_is_normalising_once(document: Any) -> None:
    once = normalised(document)
    assert same(normalised(once), once)
    assert list(walk(once)) and internal(once)


@patient
@given(document=anything(), has_status=st.booleans())
def test_no_document_raises_and_an_unchanged_one_has_the_same_errors(document: Any, has_status: bool) -> None:
    crd = copy.deepcopy(objects.DEFINITIONS["plain"])
    version = crd["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": normalised(document)}
    if has_status:
        version["subresources"] = {"status": {}}
    crd["status"] = {"storedVersions": ["v1"]}
    assert isinstance(warn(crd, None), list)
    told = validate_create(crd)
    assert validate_update(crd, crd, "") == told


@patient
@given(schema=roots)
def test_nothing_raises_for_an_accepted_schema(schema: Any) -> None:
    crd = copy.deepcopy(objects.DEFINITIONS["plain"])
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": normalised(schema)}
    crd["status"] = {"storedVersions": ["v1"]}
    if validate_create(crd):
        return
    form = Form(normalised(schema))
    obj: dict[str, Any] = {"metadata": {"name": "x"}}
    form.clean(obj, Findings())
    form.fill(obj)
    form.causes(obj)
