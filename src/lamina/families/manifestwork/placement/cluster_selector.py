"""
Cluster selectors: by labels, by claims, and by expressions about the cluster.

An expression has the whole cluster as `managedCluster`. A selector that makes no
sense raises a SpecError, which names the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from lamina.errors import BadRequest, SpecError
from lamina.families.manifestwork.placement.api import ClusterSelector
from lamina.objects import meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import Obj

if TYPE_CHECKING:
    from lamina.cel.program import Program

Scores: TypeAlias = Mapping[str, Sequence[Obj]]
"""The scores that add-ons give a cluster, by the name of the object that holds them."""
Matches: TypeAlias = Callable[[Obj, Scores], bool]

_SCORES = "\0scores"
"""The key under which expressions find the scores of a cluster; no field has such a name."""


def selector(asked: ClusterSelector, field: str) -> Matches:
    """Return the function that says whether a selector matches a cluster."""
    labels = _labels(asked.label_selector, f"{field}.labelSelector")
    claims = _labels(
        {"matchExpressions": list(asked.claim_selector.match_expressions)}, f"{field}.claimSelector"
    )
    programs = tuple(
        _program(text, f"{field}.celSelector.celExpressions[{place}]")
        for place, text in enumerate(asked.cel_selector.cel_expressions)
    )

    def matches(cluster: Obj, scores: Scores) -> bool:
        return (
            labels.matches(meta.labels(cluster))
            and (claims.is_everything or claims.matches(claims_of(cluster)))
            and all(_holds(program, cluster, scores) for program in programs)
        )

    return matches


def claims_of(cluster: Obj) -> dict[str, str]:
    """Return the claims that a cluster reports, by name."""
    claims = (cluster.get("status") or {}).get("clusterClaims") or ()
    return {claim["name"]: claim["value"] for claim in claims if "name" in claim and "value" in claim}


def _labels(asked: Obj, field: str) -> LabelSelector:
    try:
        return selectors.from_object(asked) if asked else selectors.EVERYTHING
    except BadRequest as nonsense:
        raise SpecError(f"{field}: {nonsense}") from None


def _holds(program: Program, cluster: Obj, scores: Scores) -> bool:
    from lamina.cel.errors import EvaluationError

    known = {**cluster, _SCORES: {name: list(ones) for name, ones in scores.items()}}
    try:
        return program.evaluate({"managedCluster": known}) is True
    except EvaluationError:
        # A cluster without the field does not match; the others are still selected.
        return False


@cache
def _program(text: str, field: str) -> Program:
    # Imported on demand: most placements have no expressions.
    from lamina.cel.declarations import Function, Overload, Variable
    from lamina.cel.environment import KUBERNETES
    from lamina.cel.errors import CompileError
    from lamina.cel.program import compile_expression
    from lamina.cel.types import BOOL, DYN, STRING, list_of

    def method(name: str, params: tuple[Any, ...], result: Any, does: Callable[..., Any]) -> Function:
        made = Overload(f"{name}_of_a_cluster", params, result, member=True, implementation=does)
        return Function(name, (made,))

    environment = KUBERNETES.extend(
        variables=[Variable("managedCluster", DYN)],
        functions=[
            method("scores", (DYN, STRING), list_of(DYN), _scores),
            method("parseJSON", (STRING,), DYN, _parsed),
            method("versionIsLessThan", (STRING, STRING), BOOL, lambda one, two: _compared(one, two) < 0),
            method("versionIsGreaterThan", (STRING, STRING), BOOL, lambda one, two: _compared(one, two) > 0),
        ],
    )
    try:
        program = compile_expression(text, environment)
    except CompileError as wrong:
        raise SpecError(f"{field}: {wrong}") from None
    if program.result not in (BOOL, DYN):
        raise SpecError(f"{field}: must evaluate to bool but got {program.result}")
    return program


def _scores(cluster: Any, name: str) -> list[Any]:
    found: Mapping[str, list[Any]] = cluster.get(_SCORES) or {}
    return found.get(name, [])


def _parsed(text: str) -> Any:
    from lamina.cel.errors import EvaluationError

    try:
        return json.loads(text)
    except ValueError as wrong:
        raise EvaluationError(f"this is not JSON: {wrong}") from None


def _compared(one: str, two: str) -> int:
    from lamina.cel.library.semver import compare, parse

    # Clusters report their version as v1.30.2.
    return compare(parse(one.removeprefix("v")), parse(two.removeprefix("v")))
