"""CRDs and custom objects have the exact responses of a real server."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ApiError
from lamina.server.kinds.kind import Kind
from tests.unit.server.custom.golden import definitions, objects, ours
from tests.unit.server.custom.golden.record import DEFINITIONS, OBJECTS, difference

Made = dict[str, Any]


@cache
def answers(path: Path) -> dict[str, Made]:
    return {answer.pop("case"): answer for answer in map(json.loads, path.read_text().splitlines())}


@cache
def definition(name: str) -> Made:
    return ours.create_definition(objects.DEFINITIONS[name])[0]


@cache
def kind_of(name: str, version: str) -> Kind:
    return ours.kinds_of(definition(name))[version]


@cache
def changed_kind_of(name: str, then: str, version: str) -> Kind:
    crd, _ = ours.update_definition(definition(name), objects.DEFINITIONS[then])
    return ours.kinds_of(crd)[version]


def refusal(error: ApiError) -> Made:
    """Return the recorded part of an error; causes are in random order."""
    said = ours.refused(error)
    told = {"causes": said["causes"]} if said["code"] == 422 else {"message": said["message"]}
    return {"code": said["code"], **told}


def accepted(code: int, warnings: list[str], different: Made | None = None) -> Made:
    """Return the recorded part of an accepted object; warnings about finalizers are added by the verbs."""
    kept: Made = {"code": code}
    if warnings:
        kept["warnings"] = sorted(warnings)
    if different:
        kept["different"] = different
    return kept


def without_finalizers(answer: Made) -> Made:
    warnings = [one for one in answer.get("warnings", []) if "domain-qualified finalizer" not in one]
    rest = {key: part for key, part in answer.items() if key != "warnings"}
    return {**rest, "warnings": warnings} if warnings else rest


CASES = dict(definitions.cases())


def test_every_case_has_an_answer_and_every_answer_a_case() -> None:
    assert set(answers(DEFINITIONS)) == set(CASES)
    assert set(answers(OBJECTS)) == {case.name for case in objects.cases()}


@pytest.mark.parametrize("name", CASES)
def test_a_definition_is_answered_as_by_a_real_server(name: str) -> None:
    try:
        _, warnings = ours.create_definition(CASES[name])
        ours_said = accepted(201, warnings)
    except ApiError as error:
        ours_said = refusal(error)
    assert ours_said == answers(DEFINITIONS)[name]


def answer_of(case: objects.Case) -> Made:
    kind = kind_of(case.definition, case.version)
    try:
        if case.before is None:
            obj, warnings = ours.create_object(kind, case.body)
            return accepted(201, warnings, difference(obj, case.body))
        old, _ = ours.create_object(kind, case.before)
        if case.then:
            kind = changed_kind_of(case.definition, case.then, case.version)
        obj, warnings = ours.update_object(kind, old, case.body, case.subresource)
        return accepted(200, warnings, difference(obj, case.body))
    except ApiError as error:
        return refusal(error)


def group(case: objects.Case) -> str:
    return case.name.rpartition(" ")[0] or case.name


@pytest.mark.parametrize("which", dict.fromkeys(map(group, objects.cases())))
def test_objects_are_answered_as_by_a_real_server(which: str) -> None:
    different = {
        case.name: (ours_said, theirs)
        for case in objects.cases()
        if group(case) == which
        and (ours_said := answer_of(case)) != (theirs := without_finalizers(answers(OBJECTS)[case.name]))
    }
    assert different == {}
